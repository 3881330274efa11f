#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""perf_table.py: put measured rows into a table of doc/performance.md.

  bench/compare.py BUILDDIR --md >FILE
  bench/perf_table.py MACHINE FILE [DOCUMENT]

The table of MACHINE stands between "<!-- table MACHINE -->" and "<!-- end -->". A row of FILE replaces the row of the
same name; other rows stay. Of the peers' figures the best MPI library, the best UCX and the limit are kept. Rows are
in the order of compare.py --list.
"""
import os, re, subprocess, sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = ['row', 'ours', 'best MPI', 'ratio', 'spread', 'UCX, limit', 'ratio', 'target', 'measured']
NAMES = {'ompi4': 'Open MPI 4', 'ompi5': 'Open MPI 5', 'ompi5ucx': 'Open MPI 5, UCX', 'mpich4': 'MPICH 4', 'mpich5': 'MPICH 5',
         'impi': 'Intel MPI', 'ucx13': 'UCX 1.13', 'ucx22': 'UCX 1.22'}


def cells_of(line):
    return [c.strip() for c in line.strip().strip('|').split('|')]


def is_mpi(name):
    return name != 'limit' and not name.startswith('ucx')


def condense(head, cells, date):
    """A row of compare.py --md as a row of the table."""
    of = dict(zip(head, cells))
    ratios = [r.split(' of ') for r in of['ratio'].split('; ') if ' of ' in r]
    spreads, targets = of['spread'].split('; '), of['reach'].split('; ')
    if set(targets[:-1]) == {'-'} and ' ' in targets[-1].strip('<>= '):  # a bound of our own figure alone
        targets = targets[-1:]
    mpi = [(i, r, n) for i, (r, n) in enumerate(ratios) if is_mpi(n)]
    rest = [(r, n) for r, n in ratios if not is_mpi(n)]

    def figure(name):
        return '%s (%s)' % (re.sub(r' \(.*|,.*', '', of[name]), NAMES.get(name, name))
    return [of['what (unit)'], of['ours'], figure(mpi[0][2]) if mpi else '-', mpi[0][1] if mpi else '',
            spreads[mpi[0][0]] if mpi else '', '; '.join(figure(n) for _, n in rest), '; '.join(r for r, _ in rest),
            '; '.join(re.sub('^[<>]= ', '', t) for t in targets if targets != ['-']), date]


def measured(path):
    lines = open(path).read().splitlines()
    date = re.search(r'\d{4}-\d\d-\d\d', lines[0])
    rows = [cells_of(l) for l in lines if l.startswith('| ')]
    if not date or not rows or rows[0][0] != 'what (unit)':
        sys.exit('perf_table.py: %s is not what compare.py --md prints' % path)
    return [condense(rows[0], r, date[0]) for r in rows[2:]]


def main():
    machine, path = sys.argv[1:3]
    document = sys.argv[3] if len(sys.argv) > 3 else TOP + '/doc/performance.md'
    text = open(document).read()
    block = re.search(r'(<!-- table %s -->\n)(.*?)(<!-- end -->)' % re.escape(machine), text, re.S)
    if not block:
        sys.exit('perf_table.py: %s has no "<!-- table %s -->"' % (document, machine))
    rows = {}
    for r in [cells_of(l) for l in block[2].splitlines() if l.startswith('| ')][2:] + measured(path):
        rows[r[0]] = r
    listed = subprocess.run([sys.executable, TOP + '/bench/compare.py', '.', '--list'], stdout=subprocess.PIPE, text=True).stdout
    order = [l.split(None, 1)[1] for l in listed.splitlines()]
    unknown = [r for r in rows if r not in order]
    if unknown:
        sys.exit('perf_table.py: compare.py has no row named %s' % ', '.join(unknown))
    table = [HEAD, ['---'] * len(HEAD)] + [rows[name] for name in order if name in rows]
    new = ''.join('| %s |\n' % ' | '.join(r) for r in table).replace('|  |', '| |').replace('|  |', '| |')
    with open(document, 'w') as f:
        f.write(text[:block.start(2)] + new + text[block.end(2):])


main()
