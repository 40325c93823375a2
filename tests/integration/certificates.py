"""Certificates for tests, made by the command openssl: an authority, and the certificates that it signs.

    ca = certificates.Authority(folder, 'ca'); cert, key = ca.sign('server', names='IP:127.0.0.1')
"""
import os
import subprocess

import wire


def run(*arguments):
    subprocess.run(['openssl', *arguments], check=True, capture_output=True, timeout=wire.WAIT)


class Authority:
    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.key, self.certificate = self.path(f'{name}.key'), self.path(f'{name}.pem')
        run('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', self.key, '-out',
            self.certificate, '-days', '30', '-subj', f'/CN={name}', '-addext', 'basicConstraints=critical,CA:TRUE', '-addext',
            'keyUsage=critical,keyCertSign,cRLSign')

    def path(self, file):
        return os.path.join(self.folder, file)

    def sign(self, name, names=None, days=30, use='serverAuth,clientAuth', file=None):
        """Makes a certificate; returns the paths of it and of its key. days: negative for an expired one."""
        file = file or name
        key, request, certificate, extensions = (self.path(f'{file}.{ending}') for ending in ('key', 'csr', 'pem', 'ext'))
        run('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key, '-out', request,
            '-subj', f'/CN={name}')
        with open(extensions, 'w') as f:
            f.write(f'basicConstraints=CA:FALSE\nextendedKeyUsage={use}\n' + (f'subjectAltName={names}\n' if names else ''))
        run('x509', '-req', '-in', request, '-CA', self.certificate, '-CAkey', self.key, '-CAcreateserial', '-out', certificate,
            '-days', str(days), '-extfile', extensions)
        return certificate, key

    def revoke(self, file, *certificates, until='20400101000000Z', since='20200101000000Z'):
        """Makes a list of revoked certificates (paths); returns its path."""
        database, settings, out = (self.path(f'{file}.{ending}') for ending in ('index', 'cnf', 'crl'))
        with open(database, 'w') as f:
            for certificate in certificates:
                serial = subprocess.run(['openssl', 'x509', '-in', certificate, '-noout', '-serial'], check=True, capture_output=True,
                                        text=True, timeout=wire.WAIT).stdout.strip().split('=')[1]
                f.write(f'R\t400101000000Z\t200101000000Z\t{serial}\tunknown\t/CN=revoked\n')
        with open(settings, 'w') as f:
            f.write(f'[ca]\ndefault_ca = a\n[a]\ndatabase = {database}\ndefault_md = sha256\n')
        run('ca', '-gencrl', '-config', settings, '-keyfile', self.key, '-cert', self.certificate, '-out', out, '-crl_lastupdate',
            since, '-crl_nextupdate', until)
        return out
