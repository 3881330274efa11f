# SPDX-License-Identifier: BSD-3-Clause
"""coll_rows: the rows of compare.py that measure collectives.

Their reaches are ratios to the best MPI. Rows of the grid, every blocking collective at every size, run only if --rows names
them ("grid*"); compare.py prints the mean of their ratios.
"""
NAMES = {'barrier': 'bar', 'bcast': 'bc', 'reduce': 'red', 'allreduce': 'ar', 'gather': 'ga', 'allgather': 'ag', 'allgatherv': 'agv',
         'scatter': 'sc', 'reduce_scatter': 'rs', 'alltoall': 'a2a', 'gatherv': 'gav', 'scatterv': 'scv', 'alltoallv': 'a2av',
         'reduce_scatterv': 'rsv', 'scan': 'scan', 'exscan': 'exs'}
ACROSS = ('barrier', 'bcast', 'reduce', 'allreduce', 'allgather', 'reduce_scatter', 'alltoall')
OF_BLOCKS = ('gather', 'allgather', 'allgatherv', 'scatter', 'reduce_scatter', 'alltoall', 'gatherv', 'scatterv', 'alltoallv',
             'reduce_scatterv')


def size_name(size):
    return '%dm' % (size >> 20) if size >= 1 << 20 else '%dk' % (size >> 10) if size >= 1024 else '%d' % size


def form_rows(Row, bench, ours):
    """Rows of allreduces as requests; a persistent one beside our own nonblocking one."""
    rows = [Row('iar' + size_name(size), 'iallreduce %s, 2 ranks' % size_name(size), 'us', bench(2, 'iallreduce', size), None)
            for size in (8, 512, 4096)]
    rows += [Row('par' + size_name(size), 'allreduce %s, persistent, 2 ranks; limit: our iallreduce' % size_name(size), 'us',
                 bench(2, 'allreduce_persistent', size), None, limit=(ours(bench(2, 'iallreduce', size)), 0.6)) for size in (8, 512, 4096)]
    return rows + [Row('iaroverlap1m', 'iallreduce 1 MiB hidden by computing', '%',
                       bench(2, 'iallreduce_overlap', 1 << 20, field='overlap_pct'), None, more=True)]


def coll_rows(Row, bench, limit):
    """Rows by Row(key, what, unit, measure, reach), bench(ranks, benchmark, bytes, options...) and limit(program, figure)."""
    rows = []

    def add(name, size, ranks, reach, prefix='', mem='any', hosts=0, grid=False, most=None):
        each = size * (ranks if name in OF_BLOCKS else 1)  # rankbench's size is that of the whole vector
        key = prefix + NAMES[name] + ('' if name == 'barrier' else size_name(size)) + ('a' if mem == 'alloc' else '') + 'x%d' % ranks
        what = '%s%s%s, %d ranks%s' % ('%d hosts: ' % hosts if hosts else '', name, '' if name == 'barrier' else ' ' + size_name(size),
                                       ranks, ", library's memory" if mem == 'alloc' else '')
        row = Row(key, what, 'us', bench(ranks, name, each, '-m', mem, *(('-n', '5', '-w', '2') if each >= 32 << 20 else ()),
                                         hosts=bool(hosts)), reach, limit=most)
        row.grid = grid
        rows.append(row)

    for ranks, reach in ((2, 0.55), (8, 0.6)):
        add('barrier', 8, ranks, reach)
    for ranks, reach in ((2, 0.8), (8, 0.7)):
        for size in (8, 512, 4096):
            add('bcast', size, ranks, reach)
    for ranks, reach, own in ((2, 0.85, 0.6), (8, 0.6, 0.5)):
        for size in (16384, 65536, 262144):
            add('allreduce', size, ranks, reach)
            add('allreduce', size, ranks, own, mem='alloc')
    for size in (1 << 20, 16 << 20):
        add('allreduce', size, 2, 0.75, most=(limit('reduce_slices', 'reduce_slices_' + size_name(size).upper()), 1.2))
        add('allreduce', size, 2, 0.5, mem='alloc')
    for ranks, reach in ((2, 0.85), (8, 0.65)):
        for size in (65536, 1 << 20):
            add('bcast', size, ranks, reach)
    for size, reach in ((8, 0.5), (1024, 0.5), (65536, 0.7)):
        add('alltoall', size, 8, reach)
    add('allreduce', 8, 2, 1.05, prefix='tcp', hosts=2)
    for size in (1024, 32768, 1 << 20):
        add('allreduce', size, 2, 0.9, prefix='tcp', hosts=2)
    for name in ACROSS:
        for size in (8, 8192) if name != 'barrier' else (8,):
            add(name, size, 8, 1.05, prefix='tcp', hosts=2)
    for name in NAMES:
        for ranks in (2, 4, 8):
            size = 8
            while size <= 16 << 20:
                if size * (ranks if name in OF_BLOCKS else 1) <= 64 << 20:
                    add(name, size, ranks, 1.05 if size < 1 << 20 else 1.1, prefix='grid', grid=True)
                size = size * 8 if name != 'barrier' else 1 << 30
    return rows
