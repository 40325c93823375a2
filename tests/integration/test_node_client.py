#!/usr/bin/env python3
"""The Node client: the vectors that all clients share, a real daemon, and its types."""
import os
import shutil
import subprocess
import tempfile
import unittest

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = os.path.join(harness.ROOT, 'proto', 'node')
DETECTOR = '[detector all]\nmatch = warm*\nwindow = 8\ninterval = 1s\nalert = 0.6\n'
PICTURES = '[detector tiles]\nmatch = oven*/*\nwindow = 8\nalert = off\n[pictures ovens]\nmatch = oven*\ntile = 8\nmedian = off\nsubtract = off\n'
USE = '''
import { Client, Item, Scores, level } from 'hankeld';

export async function use(times: BigInt64Array): Promise<string[]> {
  const client = await Client.connect({ address: '127.0.0.1:7410', tls: { ca: 'x' } });
  await client.send('pump', new Date(), 1.5);
  await client.sendColumns('pump', times, [1, 2, 3]);
  await client.sendPicture('oven', [[1, 2], [3, 4]], { time: 0n });
  await client.sendPicture('oven', new Uint16Array(4), { width: 2, scale: 0.01 });
  await client.subscribe({ glob: 'pump*', columns: true, since: 0n });
  const said: string[] = [];
  for await (const item of client) {
    if (item.type === 'event' && item.kind === 'raised')
      said.push(item.sensor + level(item.severity ?? 0));
    else if (item.type === 'scores')
      said.push(item.names[item.sensor[0]]);
    else if (item.type === 'result')
      said.push(`${item.sensor}: ${item.score?.toFixed(3)}`);
  }
  for await (const sensor of client.sensors())
    said.push(sensor.name + sensor.threshold?.mode);
  return said;
}
'''


def node_is_new():
    node = shutil.which('node')
    return bool(node) and int(subprocess.run([node, '--version'], capture_output=True, text=True, check=False).stdout[1:].split('.')[0] or 0) >= 18


@unittest.skipUnless(node_is_new(), 'there is no node of version 18 or later')
class NodeClient(harness.Case):
    def node(self, *arguments):
        run = subprocess.run(['node', os.path.join(HERE, 'node_client.mjs'), *arguments], capture_output=True, text=True, timeout=2 * harness.WAIT)
        self.assertEqual((run.returncode, run.stderr), (0, ''), '\n'.join(line for line in run.stdout.splitlines() if not line.startswith('ok')))
        return sum(line.startswith('ok') for line in run.stdout.splitlines())

    def test_vectors(self):
        self.assertGreater(self.node('vectors', os.path.join(harness.ROOT, 'proto', 'vectors', 'frames.json')), 30)

    def test_a_real_daemon(self):
        d = self.daemon(DETECTOR)
        self.assertEqual(self.node('daemon', f"127.0.0.1:{d.port['binary tcp']}"), 7)

    def test_pictures(self):
        d = self.daemon(PICTURES)
        self.assertEqual(self.node('pictures', f"127.0.0.1:{d.port['binary tcp']}"), 2)
        self.assertEqual(d.status()['points']['late'], 0)

    @unittest.skipUnless(shutil.which('tsc'), 'there is no compiler of TypeScript')
    def test_types(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, 'node_modules'))
            os.symlink(NODE, os.path.join(folder, 'node_modules', 'hankeld'))
            wrong = USE.replace("'pump', new Date(), 1.5", "'pump', 'today', 1.5")
            for name, text in (('use.ts', USE), ('wrong.ts', wrong)):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
                    f.write(text)
            # Types of the language alone, and not checked themselves: those of browsers take three quarters of the time.
            run = subprocess.run(['tsc', '--strict', '--noEmit', '--target', 'es2020', '--lib', 'es2020', '--skipDefaultLibCheck', '--module', 'es2020', '--moduleResolution', 'node',
                                  'use.ts', 'wrong.ts'], cwd=folder, capture_output=True, text=True, timeout=harness.WAIT)
            line = next(n for n, (a, b) in enumerate(zip(USE.splitlines(), wrong.splitlines()), 1) if a != b)
            self.assertEqual([said.split(',')[0] for said in run.stdout.splitlines()], [f'wrong.ts({line}'], run.stdout)


if __name__ == '__main__':
    harness.main()
