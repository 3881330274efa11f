#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare: measure ours and MPI libraries, alternately in one run.

  bench/compare.py BUILDDIR [--runs K] [--md] [--raw] [--peers a,b] [--rows a,b] [--launcher own|xrun] [--base BUILDDIR]
                   [--limits] [--list]

The peers are those that bench/peers.sh has set up in BUILDDIR/peers. Each row runs K times, us and every
peer in turn; printed are the medians of K (behind a peer's: the ratio of ours to it), the ratio of ours to the best
peer's, its spread (the least and the largest of the K ratios run by run), and what the row is to reach. A run that
fails or does not end is counted behind the figure ("2 lost") and left out of it. Peers' programs are started by
their own launchers, or with --launcher xrun all by ours: then only the libraries differ.

--base BUILDDIR compares a build with an earlier one, to find what a change costs; other peers only if --peers names them.

Besides MPI libraries there are, in the rows that have them, ucx_perftest of each UCX that peers.sh has found (ucx13, ucx22:
the best of the tests that do the same; it does not touch its data between iterations) and what the machine does by itself
(limit: a program in bench/limits, or another figure of ours: one thread beside two); each of these groups has a ratio and a reach of its own. Rows with keys that begin with tcp are
between two hosts that tests/hosts.sh simulates, which needs root. --limits prints all of bench/limits first.
"""
import argparse, datetime, fnmatch, json, math, os, platform, re, shlex, signal, statistics, subprocess, sys, tempfile, threading, time

from coll_rows import coll_rows, form_rows

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('build')
ap.add_argument('--runs', type=int, default=5)
ap.add_argument('--md', action='store_true', help='a markdown table')
ap.add_argument('--raw', action='store_true', help='every run\'s figure, too')
ap.add_argument('--peers', default='')
ap.add_argument('--rows', default='')
ap.add_argument('--launcher', choices=['own', 'xrun'], default='own', help='what starts the peers\' programs')
ap.add_argument('--base', help='another build folder of ours, compared as a peer named base')
ap.add_argument('--limit', type=float, default=60, help='seconds for one run; what takes longer is killed')
ap.add_argument('--time', default='100ms', help='measuring time of each run of a benchmark')
ap.add_argument('--limits', action='store_true', help='what the machine does by itself, first')
ap.add_argument('--list', action='store_true', help='name the rows')
opt = ap.parse_args()
build = os.path.abspath(opt.build)
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
hosts_tool = top + '/tests/hosts.sh'
peers_dir = os.path.join(build, 'peers')
there = sorted(f[:-3] for f in (os.listdir(peers_dir) if os.path.isdir(peers_dir) else []) if f.endswith('.sh'))
peers = opt.peers.split(',') if opt.peers else [] if opt.base else there
if not there and not opt.list and not opt.base:
    sys.exit('compare: no peers in %s; run bench/peers.sh %s' % (peers_dir, opt.build))
if not opt.list and set(peers) - set(there):
    sys.exit('compare: no peer is named %s; there are %s' % (', '.join(sorted(set(peers) - set(there))), ', '.join(there)))
if opt.runs < 1:
    sys.exit('compare: --runs %d: at least 1' % opt.runs)
OURS = {'us': build}  # the build folder of each of our own builds
if opt.base:
    OURS['base'] = os.path.abspath(opt.base)
    peers = peers + ['base']
raws = [] if opt.base else sorted(f[:-4] for f in (os.listdir(peers_dir) if os.path.isdir(peers_dir) else []) if f.endswith('.raw'))


# The options of a peer's own launcher in NAME.sh, for xrun.
XRUN_PEER = {'ompi5ucx': ''.join('-x OMPI_MCA_%s ' % v for v in ('pml=ucx', 'pml_ucx_tls=any', 'pml_ucx_devices=any'))}
failures = {}  # of each peer in the row at hand


def shell(party, n, words, hosts=False):
    """The command line that runs words on n ranks of party; hosts: each on one of the simulated hosts.
    It calls the shell function began just before the launcher starts."""
    cmd = ' '.join("'%s'" % w for w in words)
    if hosts:
        on = ','.join('%s:%d' % (h, n // 2) for h in ('hosta', 'hostb'))
        inside = 'XDG_RUNTIME_DIR=/run exec %s/xrun -q -n %d --host %s %s' % (OURS[party], n, on, cmd) if party in OURS else \
            '. %s/%s.sh; run_hosts %d %s %s' % (peers_dir, party, n, on, cmd)
        return 'exec %s exec hosta bash -c %s' % (hosts_tool, shlex.quote(inside))
    if party in OURS:
        return 'began; exec %s/xrun -n %d %s' % (OURS[party], n, cmd)
    if opt.launcher == 'xrun':
        return '. %s/%s.sh; began; exec %s/xrun -n %d %s%s' % (peers_dir, party, build, n, XRUN_PEER.get(party, ''), cmd)
    return '. %s/%s.sh; began; run %d %s' % (peers_dir, party, n, cmd)


def ended(sig, _):
    sys.exit(128 + sig)


# What is measured runs in sessions of its own and would go on: its starter ends it on the way out.
for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(sig) != signal.SIG_IGN:
        signal.signal(sig, ended)


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(party, n, words, reader='', hosts=False):
    """Seconds until the end, and what it printed; reader: a shell command for its standard output."""
    command = shell(party, n, words, hosts)
    if reader:
        command = 'set -o pipefail; (%s) | %s' % (command, reader)
    return run_command(party, command, ' '.join(words))


def run_command(party, command, what):
    # In files, not pipes: a daemon that a launcher leaves behind would keep a pipe open.
    with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err, tempfile.TemporaryFile('w+') as start:
        # The start of this script's child and of its shell, 6 ms, is no part of a launcher's time.
        command = 'began() { echo $EPOCHREALTIME >&%d; exec %d>&-; }; ' % (start.fileno(), start.fileno()) + command
        t = time.time()
        p = subprocess.Popen(['bash', '-c', command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                             start_new_session=True, pass_fds=(start.fileno(),))
        # Not wait(timeout): that polls every 50 ms, which is longer than some of the jobs.
        late = threading.Event()
        timer = threading.Timer(opt.limit, lambda: (late.set(), kill_group(p.pid)))
        timer.start()
        try:
            p.wait()
            took = time.time()
        finally:
            timer.cancel()
            kill_group(p.pid)  # also what it left behind, which would disturb the next one
        if late.is_set():
            failures[party] = failures.get(party, 0) + 1
            sys.stderr.write('compare: %s: no end after %g s: %s\n' % (party, opt.limit, what))
            return None, None
        out.seek(0), err.seek(0), start.seek(0)
        text, took = out.read(), took - float(start.read() or t)
        if p.returncode:
            failures[party] = failures.get(party, 0) + 1
            sys.stderr.write('compare: %s: %s\n' % (party, (err.read() or text).strip()[-300:]))
            return None, None
        return took, text


def runs_on_hosts(party):
    """Intel MPI's wheel has no network."""
    return party in OURS or 'run_hosts()' in open('%s/%s.sh' % (peers_dir, party)).read()


def bench(n, name, size, *more, field='median_us', scale=1, hosts=False):
    """One figure of one benchmark at one size: the median in us, or another."""
    def measure(party):
        if hosts and not runs_on_hosts(party):
            return None
        # In the build folder: what lies in /tmp is not seen on the other hosts.
        with tempfile.NamedTemporaryFile(suffix='.json', dir=build) as f:
            prog = OURS[party] + '/rankbench' if party in OURS else '%s/mpibench.%s' % (peers_dir, party)
            words = [prog, name, '-b', str(size), '-e', str(size), '-d', 'f64', '-j', f.name, '-c', '1', '--time', opt.time, *more]
            if run(party, n, words, hosts=hosts)[0] is None:
                return None
            record = json.load(open(f.name))[0]
            if record['wrong']:
                sys.exit('compare: %s: wrong data in %s' % (party, name))
            return record[field] * scale
    return measure


def rate(n, name, size, *more, hosts=False):
    """Millions a second."""
    return bench(n, name, size, *more, field='messages_per_s', scale=1e-6, hosts=hosts)


def bandwidth(n, name, size, *more, hosts=False):
    """GB/s."""
    return bench(n, name, size, *more, field='algbw_gbyte_per_s', hosts=hosts)


# Columns of ucx_perftest's last line. Its median counts in steps of 10 ns or so: short latencies are by the mean.
PERF_MEDIAN, PERF_US, PERF_MBPS, PERF_RATE = 1, 3, 5, 7


def perftest(tests, size, column, count, *more, hosts=False):
    """The best of some tests of ucx_perftest: us of one, MiB/s, or messages a second."""
    def once(party, test):
        port = 13000 + os.getpid() % 2000
        perf = '. %s/%s.raw; ' % (peers_dir, party)
        listens = 'for i in $(seq 500); do grep -qE ":%04X 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 && break; sleep 0.02; done' % port
        at = '$perftest -p %d ' % port
        there = '-t %s -s %d -n %d -w %d %s -f' % (test, size, count, count // 10, ' '.join(more))
        if hosts:
            def on(host, text):
                return '%s exec %s bash -c %s' % (hosts_tool, host, shlex.quote(text))
            command = '%s & %s; %s || kill $!; wait' % (
                on('hostb', perf + 'export UCX_TLS=tcp; exec ' + at) + ' >/dev/null 2>&1', on('hostb', listens),
                on('hosta', perf + 'export UCX_TLS=tcp; exec $perftest hostb -p %d %s' % (port, there)))
        else:
            command = '(%sexec %s -c 1) >/dev/null 2>&1 & %s; (%sexec $perftest 127.0.0.1 -p %d -c 0 %s) || kill $!; wait' % (
                perf, at, listens, perf, port, there)
        text = run_command(party, command, 'ucx_perftest ' + test)[1]
        lines = [l.split() for l in (text or '').splitlines()]
        lines = [l for l in lines if len(l) == 8 and l[0].isdigit()]
        if not lines and text is not None:
            failures[party] = failures.get(party, 0) + 1
        return float(lines[-1][column]) if lines else None

    def measure(party):
        got = [v for v in (once(party, t) for t in tests) if v is not None]
        if not got:
            return None
        best = min(got) if column in (PERF_MEDIAN, PERF_US) else max(got)
        return best * {PERF_MEDIAN: 1, PERF_US: 1, PERF_MBPS: 1.048576e-3, PERF_RATE: 1e-6}[column]
    return measure


def limit(program, figure, scale=1):
    """A figure of bench/limits."""
    def measure(party):
        text = run_command(party, 'exec %s/bench/limits/%s' % (build, program), 'limits/' + program)[1]
        found = [l.split() for l in (text or '').splitlines() if l.startswith(figure + ' ')]
        return float(found[0][1]) * scale if found else None
    return measure


def pieces(figure, hosts=False):
    """A figure of bench/putv_vs_ucx, which has ours and raw UCX's: us for a vector. MPI has no such call."""
    def measure(party):
        if party in peers:
            return None
        words = [build + '/bench/putv_vs_ucx']
        if party in raws:
            libs = subprocess.run(['bash', '-c', '. %s/%s.raw; echo "${LD_LIBRARY_PATH:-}"' % (peers_dir, party)],
                                  stdout=subprocess.PIPE, text=True).stdout.strip()
            words = ['env', 'LD_LIBRARY_PATH=' + libs] + words if libs else words
        text = run_command(party, shell('us', 2, words, hosts), 'pieces')[1]
        name = 'pieces_%s_%s' % (figure, 'putv' if party == 'us' else 'ucx')
        found = [l.split() for l in (text or '').splitlines() if l.startswith(name + ' ')]
        return float(found[0][1]) if found else None
    return measure


def threads():
    """Millions a second of two threads of each rank, and of one, which takes turns with them in the same run: to be asked after it."""
    one = []

    def two(party):
        if party != 'us':
            return None
        one.clear()
        text = run(party, 2, [build + '/bench/thread_rate'])[1]
        found = re.search(r'1 thread ([0-9.]+) M/s, 2 threads ([0-9.]+) M/s', text or '')
        if not found:
            return None
        one.append(float(found[1]))
        return float(found[2])
    return two, lambda party: one[0] if one else None


def ours(measure):
    """Another figure of ours, as the limit of one."""
    return lambda party: measure('us')


def started(n, program):
    """Seconds for a whole job."""
    def measure(party):
        words = ['true'] if program is None else [
            OURS[party] + '/bench/' + program if party in OURS else '%s/%s.%s' % (peers_dir, program, party)]
        return run(party, n, words)[0]
    return measure


def footprint(field):
    def measure(party):
        out = run(party, 128, [OURS[party] + '/bench/footprint' if party in OURS else '%s/footprint.%s' % (peers_dir, party)])[1]
        return float(out.split()[field]) if out else None
    return measure


def output(n, mib):
    """Seconds until a reader has n ranks' output, mib MiB altogether, as lines of 80 bytes."""
    def measure(party):
        with tempfile.NamedTemporaryFile('w', dir='/dev/shm') as f:
            lines = (mib << 20) // n // 4 // 80
            f.write(''.join('%079d\n' % i for i in range(lines)))
            f.flush()
            took, text = run(party, n, ['cat'] + [f.name] * 4, 'wc -c')
            if took is not None and int(text) != lines * 80 * 4 * n:
                sys.exit('compare: %s lost output: %s of %d bytes' % (party, text.strip(), lines * 80 * 4 * n))
            return took
    return measure


def processes():
    """pid -> (parent, name) of all."""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            head, tail = open('/proc/%s/stat' % pid).read().rsplit(')', 1)
        except OSError:
            continue
        found[int(pid)] = int(tail.split()[1]), head.split('(', 1)[1]
    return found


def below(pid):
    """Those of them that are pid or come from it."""
    everyone, seen, old = processes(), {pid}, None
    while old != len(seen):
        old = len(seen)
        seen |= {p for p, (parent, _) in everyone.items() if parent in seen}
    return {p: everyone[p] for p in seen if p in everyone}


def launcher_memory(n):
    """KiB of all processes of the launcher while n ranks run."""
    def measure(party):
        with tempfile.TemporaryFile('w+') as out:
            p = subprocess.Popen(['bash', '-c', 'began() { :; }; ' + shell(party, n, ['sh', '-c', 'echo up; exec sleep 1000'])], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=subprocess.DEVNULL, start_new_session=True)
            end, up, total = time.monotonic() + opt.limit, 0, 0
            try:
                while up < n and p.poll() is None and time.monotonic() < end:
                    time.sleep(0.05)
                    out.seek(0)
                    up = out.read().count('up')
                for pid, (_, name) in below(p.pid).items():
                    if name not in ('sleep', 'sh', 'bash'):
                        try:
                            text = open('/proc/%d/smaps_rollup' % pid).read()
                        except OSError:
                            continue
                        total += int(text.split('\nPss:')[1].split()[0])
            finally:
                found = below(p.pid)
                kill_group(p.pid)
                for pid in found:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                p.wait()
            if up < n:
                failures[party] = failures.get(party, 0) + 1
                return None
            return total
    return measure


class Row:
    """What is measured of us and the MPI libraries, and what the ratio to their best is to be (None: nothing).

    more: a larger figure is better, and reach the least ratio. raw, limit: what the UCX versions and the machine do, and what
    the ratio to that is to be. most: what our own figure may be. The rows of a new operation (a put with a signal, say) go here.
    """
    def __init__(self, key, what, unit, measure, reach, more=False, raw=None, limit=None, most=None):
        self.key, self.what, self.unit, self.measure, self.reach = key, what, unit, measure, reach
        self.more, self.raw, self.limit, self.most = more, raw, limit, most
        self.grid = False


ALLOC, SLOW = ('-m', 'alloc'), ('-n', '3', '-w', '1')
LAT, RATE = ('tag_lat', 'ucp_am_lat'), ('tag_bw', 'ucp_am_bw')
THR22, ALONE22 = threads()
ROWS = [
    Row('lat8', 'one-way 8 B, 2 ranks', 'us', bench(2, 'lat', 8), 0.65, raw=(perftest(LAT, 8, PERF_US, 200000), 0.8),
        limit=(limit('flag', 'flag_8B', 1e-3), None)),
    Row('lat1k', 'one-way 1 KiB', 'us', bench(2, 'lat', 1024), 0.6, raw=(perftest(LAT, 1024, PERF_US, 100000), None)),
    Row('lat4k', 'one-way 4 KiB', 'us', bench(2, 'lat', 4096), 0.6, raw=(perftest(LAT, 4096, PERF_US, 50000), None)),
    Row('lat64k', 'one-way 64 KiB, any memory', 'us', bench(2, 'lat', 65536), 0.8),
    Row('lat64ka', 'one-way 64 KiB, library\'s memory', 'us', bench(2, 'lat', 65536, *ALLOC), 0.5),
    Row('lat1m', 'one-way 1 MiB, any memory', 'us', bench(2, 'lat', 1 << 20), 0.8),
    Row('lat1ma', 'one-way 1 MiB, library\'s memory', 'us', bench(2, 'lat', 1 << 20, *ALLOC), 0.5),
    Row('rate8', 'messages of 8 B, one pair', 'M/s', rate(2, 'rate', 8), 2, more=True,
        raw=(perftest(RATE, 8, PERF_RATE, 1000000), None)),
    Row('mrate8', 'messages of 8 B, 4 pairs', 'M/s', rate(8, 'mrate', 8), 2, more=True),
    Row('thr22', '2 + 2 threads between 2 ranks, beside 1 + 1, 8 B', 'M/s', THR22, None, more=True, limit=(ALONE22, 0.9)),
    Row('bibw1m', 'both ways 1 MiB, any memory', 'GB/s', bandwidth(2, 'bibw', 1 << 20), 1.05, more=True),
    Row('bibw1ma', 'both ways 1 MiB, library\'s memory', 'GB/s', bandwidth(2, 'bibw', 1 << 20, *ALLOC), 1.5, more=True),
    Row('bw1m', 'one way 1 MiB, many, any memory', 'GB/s', bandwidth(2, 'bw', 1 << 20), None, more=True,
        raw=(perftest(RATE, 1 << 20, PERF_MBPS, 4000), None)),
    Row('bw1ma', 'one way 1 MiB, many, library\'s memory', 'GB/s', bandwidth(2, 'bw', 1 << 20, *ALLOC), None, more=True),
    Row('bw64', 'one way 64 B, many', 'GB/s', bandwidth(2, 'bw', 64), None, more=True,
        raw=(perftest(RATE, 64, PERF_MBPS, 500000), None)),
    Row('putlat8', 'a put of 8 B and its flush', 'us', bench(2, 'put_lat', 8), None),
    Row('putbw1m', 'puts of 1 MiB', 'GB/s', bandwidth(2, 'put_bw', 1 << 20), None, more=True,
        raw=(perftest(('ucp_put_bw',), 1 << 20, PERF_MBPS, 4000), None)),
    Row('getbw1m', 'gets of 1 MiB', 'GB/s', bandwidth(2, 'get_bw', 1 << 20), None, more=True,
        raw=(perftest(('ucp_get',), 1 << 20, PERF_MBPS, 4000), None)),
    Row('putrate8', 'puts of 8 B', 'M/s', rate(2, 'put_rate', 8), None, more=True,
        raw=(perftest(('ucp_put_bw',), 8, PERF_RATE, 2000000), 1.0)),
    Row('getrate8', 'gets of 8 B', 'M/s', rate(2, 'get_rate', 8), None, more=True,
        raw=(perftest(('ucp_get',), 8, PERF_RATE, 1000000), 1.0)),
    Row('faddrate8', 'fetching additions', 'M/s', rate(2, 'atomics_fetch_add_rate', 8), None, more=True,
        raw=(perftest(('ucp_fadd',), 8, PERF_RATE, 1000000), 1.0)),
    Row('addrate8', 'additions', 'M/s', rate(2, 'atomics_add_rate', 8), None, more=True,
        raw=(perftest(('ucp_add',), 8, PERF_RATE, 1000000), None)),
    Row('swaprate8', 'swaps', 'M/s', rate(2, 'atomics_swap_rate', 8), None, more=True,
        raw=(perftest(('ucp_swap',), 8, PERF_RATE, 1000000), None)),
    Row('cswaprate8', 'compare-and-swaps', 'M/s', rate(2, 'atomics_compare_swap_rate', 8), None, more=True,
        raw=(perftest(('ucp_cswap',), 8, PERF_RATE, 1000000), None)),
    Row('getlat8', 'a get of 8 B, just written', 'us', bench(2, 'get_lat', 8), None, limit=(limit('miss', 'miss_load', 1e-3), 1.5)),
    Row('faddlat8', 'a fetching addition, just written', 'us', bench(2, 'atomics_fetch_add_lat', 8), None,
        limit=(limit('miss', 'miss_fetch_add', 1e-3), 1.5)),
    Row('sig8', 'put with signal, 8 B', 'us', bench(2, 'put_signal_lat', 8), None, limit=(ours(bench(2, 'lat', 8)), 1.5)),
    Row('sig8near', 'the same in one cache line', 'us', bench(2, 'put_signal_near_lat', 8), None,
        raw=(perftest(('ucp_put_lat',), 8, PERF_US, 200000), None), limit=(ours(bench(2, 'lat', 8)), 1.15)),
    Row('putstr64k', 'puts of 64 KiB, 64 B blocks apart', 'GB/s', bandwidth(2, 'put_strided_bw', 65536), None, more=True),
    Row('getstr64k', 'gets of 64 KiB, 64 B blocks apart', 'GB/s', bandwidth(2, 'get_strided_bw', 65536), None, more=True),
    Row('putv', '256 puts of 1 KiB in a call, UCX: a loop; own memory', 'us', pieces('own'), None, raw=(pieces('own'), 1 / 3)),
    Row('putvany', 'the same, any memory', 'us', pieces('any'), None, raw=(pieces('any'), 1 / 3)),
    Row('posted1000', 'one-way 8 B behind 1000 posted receives', 'us', bench(2, 'matchq_posted', 1000), 0.3),
    Row('unexp10000', 'one-way 8 B behind 10000 unexpected messages', 'us', bench(2, 'matchq_unexpected', 10000), 0.3),
    Row('postedany', 'the same, all from any source, 1000 posted', 'us', bench(2, 'matchq_any_posted', 1000), 0.3),
    Row('unexpany', 'the same, all from any source, 10000 unexpected', 'us', bench(2, 'matchq_any_unexpected', 10000), 0.3),
    Row('random64', '64 ranks, random pairs, 8 B', 'M/s', rate(64, 'random_pairs', 8), 3, more=True,
        limit=(limit('yield', 'yield_random_64'), None)),
    Row('overlap1m', '1 MiB hidden by computing', '%', bench(2, 'overlap', 1 << 20, field='overlap_pct'), None, more=True),
    Row('idle', 'processor while waiting 1 s', '%', bench(2, 'wake', 1000000, *SLOW, field='waiting_cpu_pct'), None, most=2),
    Row('wake', 'wake-up after 1 s', 'us', bench(2, 'wake', 1000000, *SLOW), None, most=60,
        limit=(limit('wake', 'wake_futex_1s'), None)),
    Row('tcplat8', '2 hosts: one-way 8 B', 'us', bench(2, 'lat', 8, hosts=True), 1.0,
        raw=(perftest(LAT, 8, PERF_MEDIAN, 4000, hosts=True), 1.05)),
    Row('tcplat1m', '2 hosts: one-way 1 MiB', 'us', bench(2, 'lat', 1 << 20, hosts=True), 1.0,
        raw=(perftest(LAT, 1 << 20, PERF_MEDIAN, 200, hosts=True), 1.05)),
    Row('tcpbw', '2 hosts: bandwidth, 1 MiB', 'GB/s', bandwidth(2, 'bw', 1 << 20, hosts=True), 1.0, more=True,
        raw=(perftest(RATE, 1 << 20, PERF_MBPS, 1000, hosts=True), 0.97)),
    Row('tcprate8', '2 hosts: messages of 8 B', 'M/s', rate(2, 'rate', 8, hosts=True), 8, more=True,
        raw=(perftest(RATE, 8, PERF_RATE, 50000, hosts=True), None)),
    Row('tcpputv', '2 hosts: 256 puts of 1 KiB in a call, UCX: a loop', 'us', pieces('any', hosts=True), None,
        raw=(pieces('any', hosts=True), 1 / 3)),
    Row('ar2', 'allreduce 8 B, 2 ranks', 'us', bench(2, 'allreduce', 8), 0.55),
    Row('ar8', 'allreduce 8 B, 8 ranks', 'us', bench(8, 'allreduce', 8), 0.6),
    *coll_rows(Row, bench, limit),
    *form_rows(Row, bench, ours),
    Row('true2', 'start 2 x true', 's', started(2, None), 1.0),
    Row('true32', 'start 32 x true', 's', started(32, None), 1.0),
    Row('true128', 'start 128 x true', 's', started(128, None), 1.0),
    Row('true512', 'start 512 x true', 's', started(512, None), 1.0),
    Row('true1000', 'start 1000 x true', 's', started(1000, None), 1.0),
    Row('init2', 'start + init + finalize, 2 ranks', 's', started(2, 'initfin'), 0.2),
    Row('init32', 'start + init + finalize, 32 ranks', 's', started(32, 'initfin'), 0.2),
    Row('init128', 'start + init + finalize, 128 ranks', 's', started(128, 'initfin'), 0.12),
    Row('init512', 'start + init + finalize, 512 ranks', 's', started(512, 'initfin'), 0.2),
    Row('init1000', 'start + init + finalize, 1000 ranks', 's', started(1000, 'initfin'), 0.2),
    Row('out', '1 GiB of output, 4 ranks', 's', output(4, 1024), 0.5),
    Row('memx', 'PSS of the launcher, 128 ranks', 'KiB', launcher_memory(128), None),
    Row('mem', 'PSS a rank after init, 128 ranks', 'KiB', footprint(1), 0.5),
    Row('memall', 'PSS a rank after contact of all', 'KiB', footprint(3), 0.5),
]
if opt.list:
    print('\n'.join('%-11s %s (%s)' % (r.key, r.what, r.unit) for r in ROWS))
    sys.exit()
asked = opt.rows.split(',') if opt.rows else [r.key for r in ROWS if not r.grid]
unknown = [k for k in asked if not fnmatch.filter([r.key for r in ROWS], k)]
wanted = {r.key for r in ROWS for k in asked if fnmatch.fnmatchcase(r.key, k)}
if unknown:
    sys.exit('compare: no row is named %s; --list names them' % ', '.join(unknown))
rows = [r for r in ROWS if r.key in wanted]
if any(r.key.startswith('tcp') for r in rows) and 'BENCH_INSIDE' not in os.environ:
    able = subprocess.run([hosts_tool, 'able'], capture_output=True, text=True)
    if able.returncode == 0:  # it runs us with two hosts beside, which end when we do
        os.environ.update(BENCH_INSIDE='1', top_srcdir=top, top_builddir=build)
        os.execv(hosts_tool, [hosts_tool, 'run', '2', sys.executable, os.path.abspath(__file__)] + sys.argv[1:])
    sys.stderr.write('compare: rows between hosts are left out: %s\n' % able.stdout.strip())
    rows = [r for r in rows if not r.key.startswith('tcp')]
raws = raws if any(r.raw for r in rows) else []
extra = raws + (['limit'] if any(r.limit for r in rows) else [])


def fmt(v):
    return '-' if v is None else '%.4g' % v


def cpu():
    for line in open('/proc/cpuinfo'):
        if line.startswith('model name'):
            return line.split(':')[1].strip()
    return platform.machine()


print('%s%s, %d cores, Linux %s, %s; medians of %d alternating runs' % (
    '' if opt.md else '# ', cpu(), os.cpu_count(), platform.release(), datetime.date.today(), opt.runs))
if opt.limits:
    text = subprocess.run([top + '/bench/limits/run_limits.sh', build], stdout=subprocess.PIPE, text=True).stdout
    print('\n```\n%s```' % text if opt.md else ''.join('# %s\n' % line for line in text.splitlines()), flush=True)
head = ['what (unit)', 'ours'] + peers + extra + ['ratio', 'spread', 'reach', 'verdict']
print('\n| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head) if opt.md else '# ' + '  '.join(head), flush=True)
grid = []  # ratios to the best MPI
for row in rows:
    # How each is measured, and the groups with a ratio of our figure to the best.
    how = {w: row.measure for w in ['us'] + peers}
    # An earlier build: no row may get more than 3 % worse.
    groups = [(peers, row.reach if not opt.base else 1 / 1.03 if row.more else 1.03)]
    if row.raw and raws:
        how.update((w, row.raw[0]) for w in raws)
        groups.append((raws, row.raw[1]))
    if row.limit:
        how['limit'] = row.limit[0]
        groups.append((['limit'], row.limit[1]))
    got = {w: [] for w in how}
    failures.clear()
    for _ in range(opt.runs):
        for party in got:
            got[party].append(how[party](party))
    if opt.raw:
        for party, v in got.items():
            print('# %s %s: %s' % (row.key, party, ' '.join(fmt(x) for x in v)))
    med = {w: statistics.median([x for x in v if x is not None]) if any(x is not None for x in v) else None
           for w, v in got.items()}
    ratios, spreads, reaches, verdicts = [], [], [], []
    for members, reach in groups:
        best = (max if row.more else min)((p for p in members if med.get(p) is not None), key=lambda p: med[p], default=None)
        if not best or not med[best] or med['us'] is None:
            continue
        ratio = med['us'] / med[best]
        each = [a / b for a, b in zip(got['us'], got[best]) if a and b]
        ratios.append('%.2f of %s' % (ratio, best))
        if row.grid:
            grid.append(ratio)
        spreads.append('%.2f-%.2f' % (min(each), max(each)) if each else '-')
        if reach is not None:
            reaches.append('%s %.3g' % ('>=' if row.more else '<=', reach))
            verdicts.append('met' if (ratio >= reach if row.more else ratio <= reach) else 'MISSED')
        elif len(groups) > 1:
            reaches.append('-')
            verdicts.append('-')
    if row.most is not None and med['us'] is not None:
        reaches.append('%g %s' % (row.most, row.unit))
        verdicts.append('met' if med['us'] <= row.most else 'MISSED')

    def cell(party):
        text = fmt(med.get(party))
        if party != 'us' and med.get(party) and med['us']:
            text += ' (%.2f)' % (med['us'] / med[party])
        return text + (', %d lost' % failures[party] if party in failures else '')

    cells = ['%s (%s)' % (row.what, row.unit)] + [cell(w) for w in ['us'] + peers + extra] + [
        '; '.join(v) or '-' for v in (ratios, spreads, reaches, verdicts)]
    print(('| ' + ' | '.join(cells) + ' |') if opt.md else '  '.join(cells))
    sys.stdout.flush()
if grid:
    print('\n%d rows of the grid: geometric mean of the ratios %.2f, largest %.2f' % (
        len(grid), math.exp(sum(map(math.log, grid)) / len(grid)), max(grid)))
