#!/usr/bin/env python3
"""Makes tables and plots of the batched bidiagonalisation and SVD from the output of bench_svd_batch, beside the papers'
figures.

    tests/bench/scripts/plot_svd_batch.py [FILE]

FILE (tests/bench/results/cuda-bidiagonal.txt) holds JSON objects, one a line; other lines are ignored, and the later of
two rows of a kind for the same shape counts. Writes cuda-bidiagonal-tables.txt, cuda-bidiagonal.svg and cuda-svd.svg (which git leaves out) next to
it. Needs matplotlib.

The papers (Ueno and Suzumura, 2010 and 2011; one Tesla C1060, times include copies) name two points of their curves in the text: 17.22 times
one core for the bidiagonalisation of 256 matrices of 320, 4.14 times four cores for the SVD of 256 matrices of 416."""
import json
import os
import sys

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt  # noqa: E402

RESULTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'results')
PAPER_BIDIAGONAL = (320, 256, 17.22)
PAPER_SVD = (416, 256, 4.14)


def read(path):
    """{table: [row]}, rows by n and tasks; and the text of the line 'Version: ...'."""
    tables, version = {}, ''
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            if line.startswith('Version: '):
                version = line.removeprefix('Version: ').strip()
            if line.startswith('{'):
                row = json.loads(line)
                if 'table' in row:
                    tables.setdefault(row['table'], {})[(row.get('n', 0), row.get('tasks', 0))] = row
    return {name: [rows[key] for key in sorted(rows)] for name, rows in tables.items()}, version


def table(title, rows, columns):
    """columns: (heading, key, format)."""
    columns = [c for c in columns if any(c[1] in row for row in rows)]
    cells = [[c[0] for c in columns]] + [[format(row[c[1]], c[2]) if c[1] in row else '-' for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return title + '\n\n' + ''.join('  '.join(c.rjust(w) for c, w in zip(line, widths)).rstrip() + '\n' for line in cells)


def tables_text(t, version):
    size = [('n', 'n', 'd'), ('tasks', 'tasks', 'd')]
    reduction = size + [('GPU ms', 'gpu', '.3f'), ('with copies', 'copied', '.3f'), ('SGEBRD, 1 core', 'sgebrd_1_core', '.1f'),
                        ('times', 'times', '.1f'), ('times with copies', 'times_copied', '.1f'), ('TFLOP/s', 'tflops', '.2f')]
    parts = [version + '\n']
    if 'head' in t:
        parts.append(table('Bidiagonalisation of the papers\' example. They: 584 ms with copies, 10060 ms on one core, 17.22 times.', t['head'],
                           reduction))
    if 'tasks' in t:
        parts.append(table('Bidiagonalisation, number of tasks at n = 448. The papers: fewer than 30 do not fill their 30 multiprocessors.',
                           t['tasks'], reduction))
    if 'sizes' in t:
        parts.append(table('Bidiagonalisation, n at 64 and 256 tasks.', sorted(t['sizes'], key=lambda r: (r['tasks'], r['n'])), reduction))
    if 'svd' in t:
        rows = sorted(t['svd'], key=lambda r: (r['tasks'], r['n']))
        threads = sorted({k for r in rows for k in r if k.startswith('qr_on_')}, key=lambda k: int(k.split('_')[2]))
        parts.append(table('SVD with both sets of vectors. The papers: 4.14 times SGESVD on 4 cores at n = 416, 256 tasks, with copies.', rows,
                           size + [('GPU ms', 'gpu', '.2f'), ('with copies', 'copied', '.2f'), ('values alone', 'values_alone', '.2f')] +
                           [('QR on ' + k.split('_')[2] + ' threads', k, '.2f') for k in threads] +
                           [('SGESVD, 4 cores', 'sgesvd_4_cores', '.0f'), ('SGESDD, 4 cores', 'sgesdd_4_cores', '.0f'),
                            ('times', 'times_copied', '.1f'), ('times SGESDD', 'times_copied_sgesdd', '.1f')]))
    if 'vendor' in t:
        parts.append(table('SVD next to cuSOLVER, resident.', [r for r in t['vendor'] if 'n' in r],
                           size + [('GPU ms', 'gpu', '.2f'), ('gesvdj', 'gesvdj', '.0f'), ('gesvdaStridedBatched', 'gesvdaStridedBatched', '.1f')])
                     if any('n' in r for r in t['vendor']) else 'cuSOLVER was not there.\n')
    return '\n'.join(parts)


def line(axis, rows, x, y, label, **style):
    axis.plot([r[x] for r in rows], [r[y] for r in rows], marker='.', label=label, **style)


def finish(axis, title, x, y, log=False):
    axis.set(title=title, xlabel=x, ylabel=y)
    axis.set(yscale='log') if log else axis.set(ylim=(0, None))
    axis.grid(alpha=.3)
    axis.legend(fontsize=8)


def plot_bidiagonal(t, version, path):
    figure, (by_tasks, by_n) = plt.subplots(1, 2, figsize=(11, 4.2))
    line(by_tasks, t['tasks'], 'tasks', 'times', 'resident')
    line(by_tasks, t['tasks'], 'tasks', 'times_copied', 'with copies')
    by_tasks.set_xscale('log', base=2)
    finish(by_tasks, 'Bidiagonalisation, n = 448', 'tasks', 'times LAPACK SGEBRD on one core')
    for tasks, style in ((64, '--'), (256, '-')):
        rows = [r for r in t.get('sizes', t['head']) if r['tasks'] == tasks]
        line(by_n, rows, 'n', 'times', f'{tasks} tasks, resident', linestyle=style)
        line(by_n, rows, 'n', 'times_copied', f'{tasks} tasks, with copies', linestyle=style)
    by_n.plot(PAPER_BIDIAGONAL[0], PAPER_BIDIAGONAL[2], 'k*', label='the paper: 17.22 (256 tasks, with copies)')
    finish(by_n, 'Bidiagonalisation', 'n', 'times LAPACK SGEBRD on one core')
    figure.suptitle(version, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={'Date': None})


def plot_svd(t, version, path):
    figure, (times, took) = plt.subplots(1, 2, figsize=(11, 4.2))
    for tasks, style in ((64, '--'), (256, '-')):
        rows = [r for r in t['svd'] if r['tasks'] == tasks]
        line(times, rows, 'n', 'times_copied', f'{tasks} tasks', linestyle=style)
        line(took, rows, 'n', 'copied', f'GPU, {tasks} tasks', linestyle=style)
        line(took, rows, 'n', 'sgesvd_4_cores', f'SGESVD on 4 cores, {tasks} tasks', linestyle=style)
    times.plot(PAPER_SVD[0], PAPER_SVD[2], 'k*', label='the paper: 4.14 (256 tasks)')
    finish(times, 'SVD with vectors and copies', 'n', 'times LAPACK SGESVD on four cores')
    finish(took, 'SVD with vectors and copies', 'n', 'ms', log=True)
    figure.suptitle(version, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={'Date': None})


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(RESULTS, 'cuda-bidiagonal.txt')
    folder = os.path.dirname(path)
    t, version = read(path)
    with open(os.path.join(folder, 'cuda-bidiagonal-tables.txt'), 'w', encoding='utf-8') as out:
        out.write(tables_text(t, version))
    if 'tasks' in t:
        plot_bidiagonal(t, version, os.path.join(folder, 'cuda-bidiagonal.svg'))
    if 'svd' in t:
        plot_svd(t, version, os.path.join(folder, 'cuda-svd.svg'))


if __name__ == '__main__':
    main()
