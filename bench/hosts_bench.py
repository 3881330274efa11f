#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hosts: measure the start of a job on many hosts, by ours and other launchers.

The launchers take turns in one run.

  bench/hosts_bench.py BUILDDIR [--hosts 1,2,4] [--ranks R] [--runs K] [--peers a,b] [--program PROGRAM...] [--md] [--raw]

The hosts are simulated on this machine by tests/hosts.sh (it needs root): each has its own namespaces, sshd and
core, and all of them share the machine's cores, so that what is measured is mostly the processor time that a launch
takes. --ranks on each host (1) run PROGRAM (hostname; "initfin" is each library's own, and ours where srun starts it by
PMIx). The peers are those that bench/peers.sh has set up, started over ssh as we are, and srun, if Slurm is installed. Medians
of K runs; behind a peer's stands the ratio of ours to it, and in the end the ratio to the best one with the least and the
largest of the K ratios run by run; srun, with daemons that are there already, is not among those of "ratio". What the user's
shell does on a host before anything starts (.bashrc) is left out.
"""
import argparse, datetime, os, platform, statistics, subprocess, sys, time

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('build')
ap.add_argument('--hosts', default='1,2,4,8,16')
ap.add_argument('--ranks', type=int, default=1)
ap.add_argument('--runs', type=int, default=5)
ap.add_argument('--peers', default='')
ap.add_argument('--program', nargs='+', default=['hostname'])
ap.add_argument('--md', action='store_true', help='a markdown table')
ap.add_argument('--raw', action='store_true', help='every run\'s figure, too')
ap.add_argument('--limit', type=float, default=100, help='seconds for one run')
ap.add_argument('--xrun', default='', help='options of xrun')
opt = ap.parse_args()
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(opt.build)
tool = top + '/tests/hosts.sh'
slurm = top + '/tests/elsewhere/slurm.sh'
os.environ.update(top_srcdir=top, top_builddir=build)


def peers_of(build):
    if opt.peers:
        return opt.peers.split(',')
    if not os.path.isdir(build + '/peers'):
        sys.exit('hosts: no peers in %s/peers; run bench/peers.sh %s' % (build, opt.build))
    found = sorted(f[:-3] for f in os.listdir(build + '/peers') if f.endswith('.sh') and 'ucx' not in f)
    return found + (['srun'] if subprocess.run([slurm, 'able'], capture_output=True).returncode == 0 else [])


def inside():
    """In the cluster: one line a launcher, its seconds run by run."""
    names = [line.split()[1] for line in subprocess.check_output([tool, 'list'], text=True).splitlines()]
    names = [n for n in names if not n.endswith('6')]
    n = len(names) * opt.ranks
    party = ['us'] + peers_of(build)
    for name in names:
        subprocess.run([tool, 'exec', name, 'sh', '-c', '[ ! -e ~/.bashrc ] || mount --bind /dev/null ~/.bashrc'], check=True)
    if 'srun' in party:
        subprocess.run([slurm, 'start', str(max(16, opt.ranks))], check=True)

    def command(peer):
        words = list(opt.program)
        if words[0] == 'initfin':
            words[0] = build + '/bench/initfin' if peer in ('us', 'srun') else '%s/peers/initfin.%s' % (build, peer)
        slots = ','.join('%s:%d' % (name, opt.ranks) for name in names)
        if peer == 'us':
            return 'XDG_RUNTIME_DIR=/run exec %s/xrun -q %s -n %d --host %s %s' % (build, opt.xrun, n, slots, ' '.join(words))
        if peer == 'srun':
            mpi = 'pmix' if opt.program[0] == 'initfin' else 'none'
            return 'exec srun -Q -N%d -n%d --mpi=%s %s' % (len(names), n, mpi, ' '.join(words))
        # Hydra 5 and Open MPI read "host:ranks" as we do; so does Hydra 4.
        return '. %s/peers/%s.sh; run_hosts %d %s %s' % (build, peer, n, slots, ' '.join(words))

    got = {w: [] for w in party}
    for _ in range(opt.runs):
        for w in party:
            t = time.monotonic()
            try:
                p = subprocess.run([tool, 'exec', names[0], 'bash', '-c', command(w)], stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True, timeout=opt.limit)
            except subprocess.TimeoutExpired:
                print('# %s: no end after %g s' % (w, opt.limit), file=sys.stderr)
                got[w].append(None)
                continue
            took = time.monotonic() - t
            lines = p.stdout.split()
            if p.returncode or (opt.program == ['hostname'] and (len(lines) != n or set(lines) != set(names))):
                print('# %s: %s' % (w, (p.stderr or p.stdout).strip()[-300:]), file=sys.stderr)
                got[w].append(None)
                continue
            got[w].append(took)
    for w in party:
        print(w, *('-' if t is None else '%.4f' % t for t in got[w]))


if 'BENCH_INSIDE' in os.environ:
    inside()
    sys.exit()

peers = peers_of(build)
model = next((line.split(':')[1].strip() for line in open('/proc/cpuinfo') if line.startswith('model name')), platform.machine())
print('%s%s, %d cores for all hosts, Linux %s, %s; %s, ranks on a host: %d; medians of %d alternating runs' % (
    '' if opt.md else '# ', model, os.cpu_count(), platform.release(), datetime.date.today(), ' '.join(opt.program), opt.ranks, opt.runs))
head = ['hosts', 'ours (s)'] + peers + ['ratio', 'spread']
if opt.md:
    print('\n| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head))
else:
    print('  '.join(head))
for hosts in opt.hosts.split(','):
    out = subprocess.run([tool, 'run', hosts, sys.executable, os.path.abspath(__file__)] + sys.argv[1:],
                         env=dict(os.environ, BENCH_INSIDE='1'), stdout=subprocess.PIPE, text=True, check=True).stdout
    runs = {line.split()[0]: [None if x == '-' else float(x) for x in line.split()[1:]]
            for line in out.splitlines() if line and line[0] != '#'}
    times = {w: [t for t in runs[w] if t is not None] for w in runs}
    med = {w: statistics.median(t) if t else None for w, t in times.items()}
    if opt.raw:
        print('\n'.join('# ' + line for line in out.splitlines()))
    best = min((p for p in peers if p != 'srun' and med.get(p)), key=lambda p: med[p], default=None)

    def cell(w):
        if not med.get(w):
            return '-'
        lost = opt.runs - len(times[w])
        return '%.3f' % med[w] + (' (%.2f)' % (med['us'] / med[w]) if w != 'us' and med['us'] else '') + (
            ', %d lost' % lost if lost else '')

    each = [a / b for a, b in zip(runs['us'], runs[best]) if a and b] if best else []
    cells = [hosts] + [cell(w) for w in ['us'] + peers] + (
        ['%.2f of %s' % (med['us'] / med[best], best), '%.2f-%.2f' % (min(each), max(each)) if each else '-']
        if best and med['us'] else ['-', '-'])
    print(('| ' + ' | '.join(cells) + ' |') if opt.md else '  '.join(cells))
    sys.stdout.flush()
