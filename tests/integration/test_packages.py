#!/usr/bin/env python3
"""scripts/package: the contents of the packages, and the effects of installing, upgrading, removing and purging them. They contain the programs that
have been built, so nothing is compiled here; exit code 0 of the script means that lintian, where it is, found nothing."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import harness

NEEDED = ('dh', 'dpkg-deb', 'git')
UNCHECKED = [] if shutil.which('lintian') else ['--no-lintian']  # scripts/test installs it for the whole
ENVIRONMENT = {**os.environ, 'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'DEBIAN_FRONTEND': 'noninteractive'}
WAIT = 5 * harness.WAIT
with open(os.path.join(harness.ROOT, 'meson.build'), encoding='utf-8') as f:
    VERSION = re.search(r"version: '(.*)'", f.read()).group(1)


@unittest.skipUnless(all(map(shutil.which, NEEDED)) and os.path.exists(os.path.join(harness.ROOT, '.git')), 'packages cannot be built here')
class TestPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='hankeld-packages-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.out = os.path.join(cls.folder, 'out')
        run = subprocess.run([os.path.join(harness.ROOT, 'scripts', 'package'), '--built', os.path.dirname(harness.HANKELD), '--out', cls.out, *UNCHECKED], cwd=harness.ROOT,
                             capture_output=True, text=True, timeout=WAIT)
        assert run.returncode == 0, run.stdout + run.stderr
        assert not re.search('^[EW]: ', run.stdout, re.M), run.stdout

    def deb(self, name):
        found = glob.glob(os.path.join(self.out, f'{name}_{VERSION}-1_*.deb'))
        self.assertEqual(len(found), 1, os.listdir(self.out))
        return found[0]

    def test_contents(self):
        for name, there in (('hankeld', ('/etc/hankeld.conf', '/usr/lib/hankeld/cpu/hankeld', '/usr/lib/hankeld/cpu/hankel', '/usr/share/man/man8/hankeld.8.gz',
                                         '/usr/lib/sysusers.d/hankeld.conf', '/lib/systemd/system/hankeld.service', '/lib/systemd/system/hankeld.socket',
                                         '/usr/share/bash-completion/completions/hankel', '/usr/share/doc/hankeld/PROTOCOL.md.gz')),
                            ('libhankel0', (r'/usr/lib/\S+/libhankel.so.0', )), ('libhankel-dev', ('/usr/include/hankel.h', r'/usr/lib/\S+/pkgconfig/hankel.pc', r'/usr/lib/\S+/libhankel.a')),
                            ('python3-hankeld', ('/usr/lib/python3/dist-packages/hankeld/client.py', '/usr/lib/python3/dist-packages/hankeld/py.typed'))):
            listed = subprocess.run(['dpkg-deb', '-c', self.deb(name)], capture_output=True, text=True, check=True, timeout=harness.WAIT).stdout
            for path in there:
                self.assertRegex(listed, re.compile(rf' root/root .* \.{path}( -> \S+)?$', re.M), name)
        depends = subprocess.run(['dpkg-deb', '-f', self.deb('hankeld'), 'Depends'], capture_output=True, text=True, check=True, timeout=harness.WAIT).stdout
        self.assertNotIn('libhankel0', depends)  # the programs have it in them
        self.assertRegex(depends, r'libuv1 \(>=')

    def test_install_upgrade_remove_purge(self):
        """Installs into a folder: scripts run as on an image that is being made."""
        if os.geteuid() != 0:
            self.skipTest('only root installs packages')
        root = os.path.join(self.folder, 'root')
        dpkg = os.path.join(root, 'var/lib/dpkg')
        for folder in ('updates', 'info', 'triggers', 'alternatives'):
            os.makedirs(os.path.join(dpkg, folder))
        for folder in ('etc/alternatives', 'usr/sbin', 'usr/bin', 'var/log'):
            os.makedirs(os.path.join(root, folder))
        open(os.path.join(dpkg, 'status'), 'w', encoding='utf-8').close()

        def run(*arguments):
            done = subprocess.run(['dpkg', f'--root={root}', '--force-script-chrootless', '--force-depends', '--force-confold', *arguments], env=ENVIRONMENT, capture_output=True,
                                  text=True, timeout=harness.WAIT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        def path(name):
            return os.path.join(root, name)

        run('--install', self.deb('hankeld'), self.deb('libhankel0'), self.deb('libhankel-dev'))
        self.assertEqual((os.readlink(path('usr/sbin/hankeld')), os.readlink(path('etc/alternatives/hankeld'))), ('/etc/alternatives/hankeld', '/usr/lib/hankeld/cpu/hankeld'))
        self.assertEqual(os.readlink(path('etc/alternatives/hankel')), '/usr/lib/hankeld/cpu/hankel')
        for program in ('hankeld', 'hankel'):
            said = subprocess.run([path(f'usr/lib/hankeld/cpu/{program}'), '--version'], capture_output=True, text=True, timeout=harness.WAIT).stdout
            self.assertEqual(said, f'{program} {VERSION}\n')
        with open(path('lib/systemd/system/hankeld.service'), encoding='utf-8') as unit:
            self.assertIn('\nExecStart=/usr/sbin/hankeld -c /etc/hankeld.conf\n', unit.read())
        shutil.copytree(os.path.join(harness.DATA, 'state-0.1'), path('var/lib/hankeld'))
        with open(path('etc/hankeld.conf'), 'a', encoding='utf-8') as configuration:
            configuration.write('# mine\n')
        kept = sorted(os.listdir(path('var/lib/hankeld')))
        run('--install', self.deb('hankeld'))  # as an upgrade: the scripts get the version that was there
        self.assertEqual(sorted(os.listdir(path('var/lib/hankeld'))), kept)
        verified = subprocess.run([path('usr/lib/hankeld/cpu/hankel'), 'state', 'verify', path('var/lib/hankeld')], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        with open(path('etc/hankeld.conf'), encoding='utf-8') as configuration:
            self.assertTrue(configuration.read().endswith('# mine\n'))
        self.assertTrue(os.path.islink(path('usr/sbin/hankeld')))
        run('--remove', 'hankeld')
        self.assertEqual(sorted(os.listdir(path('var/lib/hankeld'))), kept)
        self.assertTrue(os.path.exists(path('etc/hankeld.conf')))
        self.assertFalse(os.path.lexists(path('usr/sbin/hankeld')) or os.path.lexists(path('usr/bin/hankel')))
        os.makedirs(path('var/lib/private/hankeld'))
        run('--purge', 'hankeld', 'libhankel0', 'libhankel-dev')
        left = [name for name in ('var/lib/hankeld', 'var/lib/private/hankeld', 'etc/hankeld.conf', 'usr/lib/hankeld', 'usr/include/hankel.h') if os.path.exists(path(name))]
        self.assertEqual(left, [])

    def test_the_unit_of_the_gpu_comes_behind_that_of_the_cpu(self):
        """Drop-ins apply in the order of their names."""
        with open(os.path.join(harness.ROOT, 'conf', 'debian', 'hankeld-cuda.install'), encoding='utf-8') as f:
            self.assertIn('debian/gpu.conf lib/systemd/system/hankeld.service.d', f.read())
        self.assertLess('cpu-only.conf', 'gpu.conf')

        def settings(*path):
            with open(os.path.join(harness.ROOT, 'conf', *path), encoding='utf-8') as f:
                return dict(line.strip().split('=', 1) for line in f if '=' in line and not line.startswith('#'))

        self.assertEqual(settings('cpu-only.conf').keys() - settings('debian', 'gpu.conf').keys(), set())

    def test_wheel_and_sdist(self):
        wheel = os.path.join(self.out, f'hankeld-{VERSION}-py3-none-any.whl')
        self.assertLessEqual({f'hankeld/{name}' for name in ('__init__.py', 'aio.py', 'client.py', 'items.py', 'wire.py', 'py.typed')}, set(zipfile.ZipFile(wheel).namelist()))
        run = subprocess.run([sys.executable, '-c', 'import hankeld; print(hankeld.__version__, hankeld.__file__)'], env={**os.environ, 'PYTHONPATH': wheel}, cwd='/', capture_output=True,
                             text=True, timeout=harness.WAIT)
        self.assertEqual(run.stdout, f'{VERSION} {wheel}/hankeld/__init__.py\n', run.stderr)
        with tarfile.open(os.path.join(self.out, f'hankeld-{VERSION}.tar.gz')) as sdist:
            self.assertLessEqual({f'hankeld-{VERSION}/pyproject.toml', f'hankeld-{VERSION}/README.md', f'hankeld-{VERSION}/hankeld/aio.py'}, set(sdist.getnames()))

    def rpm(self, *arguments, code=0):
        done = subprocess.run(['rpm', *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def rpms(self):
        return {name: glob.glob(os.path.join(self.out, f'{name}-{VERSION}-1.*.rpm'))[0] for name in ('hankeld', 'libhankel', 'libhankel-devel')}

    @unittest.skipUnless(shutil.which('rpmbuild'), 'there is no rpmbuild')
    def test_rpm(self):
        """The package is installed into a folder, upgraded, and erased."""
        rpm, packages = self.rpm, self.rpms()
        listed = {name: set(rpm('-qlp', package).split()) for name, package in packages.items()}
        self.assertLessEqual({'/etc/hankeld.conf', '/usr/bin/hankel', '/usr/sbin/hankeld', '/usr/lib/systemd/system/hankeld.service', '/usr/lib/systemd/system/hankeld.socket',
                              '/usr/lib/sysusers.d/hankeld.conf', '/usr/share/man/man8/hankeld.8', '/usr/share/doc/hankeld/PROTOCOL.md'}, listed['hankeld'])
        self.assertTrue(any(path.endswith('/libhankel.so.0') for path in listed['libhankel']))
        self.assertTrue('/usr/include/hankel.h' in listed['libhankel-devel'] and any(path.endswith('/pkgconfig/hankel.pc') for path in listed['libhankel-devel']))
        self.assertRegex(rpm('-qp', '--requires', packages['hankeld']), r'(?m)^libuv\.so\.1')
        self.assertNotIn('libhankel', rpm('-qp', '--requires', packages['hankeld']))  # the programs have it in them
        self.assertEqual(rpm('-qpc', packages['hankeld']), '/etc/hankeld.conf\n')
        if os.geteuid() != 0:
            self.skipTest('only root installs packages')
        root = os.path.join(self.folder, 'rpm')
        os.mkdir(root)
        at = ('--root', root, '--dbpath', '/var/lib/rpm', '--nodeps', '--noscripts')  # there is no shell in it
        rpm('-i', *at, *packages.values())
        for program in ('usr/sbin/hankeld', 'usr/bin/hankel'):
            said = subprocess.run([os.path.join(root, program), '--version'], capture_output=True, text=True, timeout=harness.WAIT, check=True).stdout
            self.assertEqual(said, f'{os.path.basename(program)} {VERSION}\n')
        with open(os.path.join(root, 'usr/lib/systemd/system/hankeld.service'), encoding='utf-8') as unit:
            self.assertIn('\nExecStart=/usr/sbin/hankeld -c /etc/hankeld.conf\n', unit.read())
        with open(os.path.join(root, 'etc/hankeld.conf'), 'a', encoding='utf-8') as configuration:
            configuration.write('# mine\n')
        rpm('-U', *at, '--replacepkgs', packages['hankeld'])
        with open(os.path.join(root, 'etc/hankeld.conf'), encoding='utf-8') as configuration:
            self.assertTrue(configuration.read().endswith('# mine\n'))
        rpm('-e', *at, *packages)
        self.assertFalse(os.path.exists(os.path.join(root, 'usr/sbin/hankeld')))

    def system(self, systemctl):
        """Makes a folder with a shell and the programs that scriptlets call. systemctl: systemd's own, or a script in its place."""
        root = tempfile.mkdtemp(prefix='rpm-', dir=self.folder)
        for folder in ('usr/bin', 'usr/sbin', 'usr/lib64', 'dev', 'etc', 'run', 'var'):
            os.makedirs(os.path.join(root, folder))
        open(os.path.join(root, 'dev/null'), 'w', encoding='utf-8').close()
        for link in ('bin', 'sbin', 'lib64'):
            os.symlink(f'usr/{link}', os.path.join(root, link))
        programs = {'/bin/sh': 'usr/bin/sh', '/sbin/ldconfig': 'usr/sbin/ldconfig', shutil.which('systemd-sysusers'): 'usr/bin/systemd-sysusers', systemctl: 'usr/bin/systemctl'}
        for program, at in programs.items():
            shutil.copy(program, os.path.join(root, at))
            needs = subprocess.run(['ldd', program], capture_output=True, text=True, timeout=harness.WAIT, check=False).stdout
            for library in re.findall(r'(/\S+) \(0x', needs):
                os.makedirs(root + os.path.dirname(library), exist_ok=True)
                shutil.copy(library, root + library)
        return root

    @unittest.skipUnless(shutil.which('rpmbuild') and shutil.which('systemctl') and shutil.which('systemd-sysusers') and os.geteuid() == 0, 'there is no rpmbuild or systemd, or this is not root')
    def test_scriptlets_on_an_image(self):
        """Without a running systemd: the user is made, and the unit is enabled according to presets, and disabled."""
        root, packages = self.system(shutil.which('systemctl')), self.rpms()
        at = ('--root', root, '--dbpath', '/var/lib/rpm', '--nodeps')
        enabled = os.path.join(root, 'etc/systemd/system/multi-user.target.wants/hankeld.service')

        def users():
            with open(os.path.join(root, 'etc/passwd'), encoding='utf-8') as f:
                return [line.split(':')[0] for line in f]

        self.rpm('-i', *at, *packages.values())
        self.assertEqual(users().count('hankeld'), 1)
        self.assertTrue(os.path.islink(enabled), os.listdir(os.path.join(root, 'etc')))
        os.makedirs(os.path.join(root, 'var/lib/hankeld/journal'))
        os.remove(enabled)  # by an operator
        self.rpm('-U', *at, '--replacepkgs', packages['hankeld'])
        self.assertFalse(os.path.islink(enabled))
        os.symlink('/usr/lib/systemd/system/hankeld.service', enabled)
        self.rpm('-e', *at, *packages)
        self.assertFalse(os.path.islink(enabled))
        self.assertTrue(os.path.isdir(os.path.join(root, 'var/lib/hankeld/journal')))

    @unittest.skipUnless(shutil.which('rpmbuild') and shutil.which('systemd-sysusers') and os.geteuid() == 0, 'there is no rpmbuild or systemd, or this is not root')
    def test_scriptlets_ask_systemd(self):
        """With a running systemd: the requests that it gets, and their order; rpm continues if systemd refuses one."""
        script = os.path.join(self.folder, 'systemctl')
        with open(script, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\necho "$*" >>/run/asked\nexit 1\n')
        os.chmod(script, 0o755)
        root, packages = self.system(script), self.rpms()
        os.makedirs(os.path.join(root, 'run/systemd/system'))
        at = ('--root', root, '--dbpath', '/var/lib/rpm', '--nodeps')

        def asked():
            path = os.path.join(root, 'run/asked')
            with open(path, encoding='utf-8') as f:
                said = f.read().splitlines()
            os.remove(path)
            return said

        self.rpm('-i', *at, packages['hankeld'])
        self.assertEqual(asked(), ['--no-reload preset hankeld.service', 'daemon-reload'])
        self.rpm('-U', *at, '--replacepkgs', packages['hankeld'])
        self.assertEqual(asked(), ['daemon-reload', 'daemon-reload', 'try-restart hankeld.service'])
        self.rpm('-e', *at, 'hankeld')
        self.assertEqual(asked(), ['stop hankeld.socket hankeld.service', '--no-reload disable hankeld.service hankeld.socket', 'daemon-reload'])

    def test_npm(self):
        """The archive for npm: all files that package.json names, under package/, of this version."""
        with tarfile.open(os.path.join(self.out, f'hankeld-{VERSION}.tgz')) as packed:
            told = json.load(packed.extractfile('package/package.json'))
            self.assertEqual((told['name'], told['version']), ('hankeld', VERSION))
            self.assertLessEqual({f'package/{name}' for name in told['files']}, set(packed.getnames()))


if __name__ == '__main__':
    harness.main(needs_gpu=False)
