#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""transfer: compare connections and lists with NIXL, UCX and mpi4py, in one run.

  bench/compare/transfer.py BUILDDIR [--hosts] [--runs K] [--time SECONDS] [--sources a,b] [--rows REGEX] [--raw] [--list]

BUILDDIR is a configured and built folder. bench/peers.sh --transfer BUILDDIR brings the peers; CI does not fetch them. A missing
peer gets a line, and its rows are left out. The bindings are built for BUILDDIR first.

Each source runs its cases K times, all sources in turn. Printed are medians, the ratio, its least and largest value run by
run, and the target. A binding and C make the same copies: of these rows the fastest runs are compared, since runs differ more by
the pages that the kernel gives to a process than by what a call costs. The data of each iteration is checked, except that of ucx_perftest and limits/tcp's own check.
Without --hosts, the two processes run on this host. With it, they run on two hosts that tests/hosts.sh simulates: it needs root.
"""
import argparse, collections, datetime, os, platform, re, shlex, shutil, signal, socket, statistics, subprocess, sys, tempfile

KIB, MIB = 1 << 10, 1 << 20

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('build')
ap.add_argument('--hosts', action='store_true', help='the rows of two hosts')
ap.add_argument('--runs', type=int, default=5)
ap.add_argument('--time', type=float, default=0.3, help='seconds of each case')
ap.add_argument('--sources', default='', help='only these')
ap.add_argument('--rows', default='', help='only rows that match')
ap.add_argument('--limit', type=float, default=120, help='seconds of one run of a source')
ap.add_argument('--raw', action='store_true', help="every run's figure, too")
ap.add_argument('--list', action='store_true', help='name the rows')
opt = ap.parse_args()
here = os.path.dirname(os.path.abspath(__file__))
top = os.path.dirname(os.path.dirname(here))
build = os.path.abspath(opt.build)
peers = build + '/peers'
hosts_tool = top + '/tests/hosts.sh'

# A figure of ours, of a peer (None: absolute), how they are compared, and the bound. faster and bandwidth: times of the peer's
# speed; binding: the same of the fastest runs; rate: times of its rate; ratio: our time to its; absolute: our time in us; later: one way, in us more.
Row = collections.namedtuple('Row', 'title ours peer kind bound')


def move(op, bytes_, blocks=1):
    return '%s:%d:%d' % (op, bytes_, blocks)


def size_text(bytes_):
    return '%d MiB' % (bytes_ // MIB) if bytes_ >= MIB else '%d KiB' % (bytes_ // KIB)


def faster(title, ours, peer, case, bound, other=None):
    """Times faster than the peer, at least."""
    return Row(title, (ours, case), (peer, other or case), 'faster', bound)


def binding_row(title, ours, peer, case, bound):
    return Row(title, (ours, case), (peer, case), 'binding', bound)


def one_host():
    rows = []
    for op in ('write', 'read'):
        for bytes_, blocks, bounds in ((MIB, 1, (2, 3)), (KIB, 256, (8, 20))):
            for source, bound in zip(('c', 'c-alloc'), bounds):
                for peer in ('nixl', 'nixl-sgl') if blocks > 1 else ('nixl',):
                    rows.append(faster('%s %d x %s, %s' % (op.upper(), blocks, size_text(bytes_),
                                                           'rank_ctx_alloc' if 'alloc' in source else 'private'),
                                       source, peer, move(op, bytes_, blocks), bound if peer == 'nixl' else None))
            rows.append(faster('%s %d x %s, loopback' % (op.upper(), blocks, size_text(bytes_)), 'c-tcp', 'nixl-tcp',
                               move(op, bytes_, blocks), None))
    ping, keys, conn = 'ping:8:1', 'keys:4096:1265', 'connect:1:1'
    rows += [Row('8 B there and back, Python', ('python', ping), ('nixl', ping), 'ratio', 0.15),
             Row('8 B there and back, Python', ('python', ping), ('mpi4py', ping), 'ratio', 0.9),
             Row('8 B there and back, C', ('c', ping), ('nixl', ping), 'ratio', None),
             Row('1265 memories: register, pack, open', ('c', keys), None, 'absolute', 10000),
             Row('1265 memories: register, pack, open', ('c', keys), ('nixl', keys), 'ratio', None),
             Row('context, listen, connect, first byte', ('c', conn), None, 'absolute', 3000),
             Row('context, listen, connect, first byte', ('c', conn), ('nixl', conn), 'ratio', None),
             Row('import rank', ('import', 'rank'), None, 'absolute', 30000),
             Row('import rank', ('import', 'rank'), ('import', 'nixl'), 'ratio', None)]
    for suffix, memory in (('', 'private'), ('-alloc', 'rank_ctx_alloc'), ('-prepared', 'rank_ctx_alloc, prepared')):
        for op in ('write', 'read'):
            for bytes_, blocks, bound in ((64 * KIB, 1, 0.97), (MIB, 1, 0.97), (KIB, 256, None)):
                rows.append(binding_row('%s %d x %s, %s: Python of C' % (op.upper(), blocks, size_text(bytes_), memory),
                                        'python' + suffix, 'c' + suffix, move(op, bytes_, blocks), bound))
    for op in ('write', 'read'):
        for bytes_ in (256 * KIB, MIB):
            rows.append(binding_row('%s %s, private: Go of C' % (op.upper(), size_text(bytes_)), 'go', 'c', move(op, bytes_), 0.97))
    rows.append(Row('8 B one way, Go after C', ('go', ping), ('c', ping), 'later', 0.5))
    return rows


def two_hosts():
    rows = []
    for op in ('write', 'read'):
        for bytes_ in (MIB, 64 * MIB):
            rows.append(faster('%s %s' % (op.upper(), size_text(bytes_)), 'c', 'nixl', move(op, bytes_), 1.3))
        for peer, bound in (('nixl', 10), ('nixl-sgl', 3)):
            rows.append(faster('%s 256 x 1 KiB' % op.upper(), 'c', peer, move(op, KIB, 256), bound))
    for op, test in (('write', 'ucp_put_bw'), ('read', 'ucp_get')):
        for bytes_ in (MIB, 64 * MIB):
            for peer, case, bound in (('ucx13', '%s:%d' % (test, bytes_), 1.3), ('ucx22', '%s:%d' % (test, bytes_), 1.3),
                                      ('socket', 'tcp_stream', 0.9)):
                rows.append(Row('%s %s, windows' % (op.upper(), size_text(bytes_)), ('rankbench', '%s_bw:%d' % (op, bytes_)),
                                (peer, case), 'bandwidth', bound))
    for peer in ('ucx13', 'ucx22'):
        rows.append(Row('8 B one way', ('rankbench', 'lat:8'), (peer, 'tag_lat:8'), 'ratio', 1.05))
        rows.append(Row('8 B rate', ('rankbench', 'rate:8'), (peer, 'tag_bw:8'), 'rate', 8))
    rows.append(Row('8 B one way', ('rankbench', 'lat:8'), ('socket', 'tcp_8B'), 'ratio', None))
    return rows


# ------------------------------------------------------------------------------ running programs

def ended(sig, _):
    sys.exit(128 + sig)


for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(sig) != signal.SIG_IGN:
        signal.signal(sig, ended)


def on(host, words, env=None):
    """The words of a command that runs there, with more environment."""
    words = ['env'] + ['%s=%s' % pair for pair in (env or {}).items()] + words if env else words
    return [hosts_tool, 'exec', host] + words if opt.hosts else words


LISTENS = 'for i in $(seq 500); do grep -qE ":%04X 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 && break; sleep 0.02; done'


def run_both(what, target, initiator, port=0):
    """Run both commands, the second when the first listens; the output of the initiator, or None and a line."""
    with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err:
        started = []
        try:
            for words, to in ((target, subprocess.DEVNULL), (initiator, out)):
                if words:
                    started.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=to, stderr=err, start_new_session=True))
                if port and words is target:
                    subprocess.run(on('hostb', ['bash', '-c', LISTENS % port]))
            why = 'code %d' % started[-1].wait(opt.limit) if started[-1].wait(opt.limit) else ''
            if not why:
                for p in started[:-1]:
                    p.wait(20)
        except subprocess.TimeoutExpired:
            why = 'no end after %g s' % opt.limit
        finally:
            for p in started:
                try:
                    os.killpg(p.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                p.wait()
        if why:
            err.seek(0)
            print('# %s: %s: %s' % (what, why, ' '.join(err.read().split())[-300:]), flush=True)
            return None
        out.seek(0)
        return out.read()


ports = iter(range(7471, 9000))


def free_port():
    """On simulated hosts all are free; TIME_WAIT asks for another one each time."""
    if opt.hosts:
        return next(ports)
    with socket.create_server(('127.0.0.1', 0)) as s:
        return s.getsockname()[1]


def pair(name, words, env=None, before=()):
    """A program of peer_link.py's cases, with words of the initiator before them."""
    def run(cases):
        port = free_port()
        at = '%s:%d' % ('hostb' if opt.hosts else '127.0.0.1', port)
        timed = ['%s:%g' % (c, opt.time) for c in cases]
        text = run_both(name, on('hostb', words + ['listen', at], env), on('hosta', words + ['connect', at, *before, *timed], env), port)
        return figures_of(name, text, cases)
    return run


def figures_of(name, text, cases):
    got = {}
    for line, case in zip((text or '').splitlines(), cases):
        _, us, wrong = line.split()
        if int(wrong):
            sys.exit('transfer: %s: %s wrong blocks or messages in %s' % (name, wrong, case))
        got[case] = float(us)
    return got


def mpi4py(cases):
    words = ' '.join(shlex.quote(w) for w in [sys.executable, here + '/mpi_peer.py'] + ['%s:%g' % (c, opt.time) for c in cases])
    script = '. %s/ompi5.sh; export PYTHONPATH=%s; run 2 %s' % (peers, python_path('python', 'numpy'), words)
    return figures_of('mpi4py', run_both('mpi4py', None, ['bash', '-c', script]), cases)


def rankbench(cases):
    """GB/s, us, or messages a second."""
    got = {}
    for case in cases:
        name, bytes_ = case.split(':')
        port = free_port()
        at = '%s:%d' % ('hostb' if opt.hosts else '127.0.0.1', port)
        with tempfile.NamedTemporaryFile('r', suffix='.csv', dir=build) as f:
            text = run_both('rankbench', on('hostb', [build + '/rankbench', '--listen', at]), on('hosta', [
                build + '/rankbench', '--connect', at, name, '-b', bytes_, '-e', bytes_, '--time', '%gms' % (opt.time * 1000),
                '--csv', f.name]), port)
            lines = f.read().splitlines()
        if text is None or len(lines) < 2:
            continue
        record = dict(zip(lines[0].split(','), lines[1].split(',')))
        if record['wrong'] != '0':
            sys.exit('transfer: rankbench: wrong data in ' + name)
        got[case] = float(record['messages_per_s' if name == 'rate' else 'median_us' if name == 'lat' else 'average_gbyte_per_s'])
    return got


PERF_US, PERF_MBPS, PERF_RATE = 1, 5, 7  # columns of ucx_perftest's last line


def perftest(name):
    def run(cases):
        got = {}
        for case in cases:
            test, bytes_ = case.split(':')
            port = free_port()
            count = max(20, int(opt.time * (1e9 / int(bytes_) if int(bytes_) > KIB else 2e4)))
            start = '. %s/%s.raw; export UCX_TLS=tcp; exec $perftest ' % (peers, name)
            text = run_both(name, on('hostb', ['bash', '-c', start + '-p %d' % port]), on('hosta', [
                'bash', '-c', start + '%s -p %d -t %s -s %s -n %d -w %d -f' % (
                    'hostb' if opt.hosts else '127.0.0.1', port, test, bytes_, count, count // 10)]), port)
            lines = [l.split() for l in (text or '').splitlines()]
            lines = [l for l in lines if len(l) == 8 and l[0].isdigit()]
            if lines:
                line = [float(w) for w in lines[-1]]
                got[case] = line[PERF_US] if test.endswith('_lat') else line[PERF_RATE] if test == 'tag_bw' else line[PERF_MBPS] * MIB / 1e9
        return got
    return run


def bare_socket(cases):
    at = str(free_port())
    quick = ['--quick'] if opt.time < 0.1 else []
    address = socket.gethostbyname('127.0.0.1')
    if opt.hosts:
        address = next(l.split()[0] for l in subprocess.check_output([hosts_tool, 'list'], text=True).splitlines() if l.split()[1] == 'hostb')
    text = run_both('socket', on('hostb', [build + '/bench/limits/tcp', '--serve', at]),
                    on('hosta', [build + '/bench/limits/tcp', '--to', address, at] + quick))
    found = dict(l.split()[:2] for l in (text or '').splitlines() if l.startswith('tcp_'))
    return {c: float(found[c]) for c in cases if c in found}


def imports(cases):
    """The time of an import in a new process."""
    got = {}
    for case in cases:
        if case == 'nixl' and not os.path.isdir(peers + '/nixl-cu13'):
            continue
        module, path = ('rank', binding) if case == 'rank' else ('nixl_cu13._api', python_path('nixl-cu13', 'numpy'))
        code = 'import time; t = time.perf_counter(); import %s; print((time.perf_counter() - t) * 1e6)' % module
        text = run_both('import ' + case, None, ['env', 'PYTHONPATH=' + path, sys.executable, '-c', code])
        if text:
            got[case] = float(text.split()[-1])
    return got


# ---------------------------------------------------------------------------------- what is there

def python_path(*folders):
    return ':'.join(peers + '/' + f for f in folders)


class Bindings:
    """Install into BUILDDIR/compare, and build the bindings for that."""

    def __init__(self):
        self.work = build + '/compare'
        prefix = self.work + subprocess.check_output(['sed', '-n', "s/^prefix='\\(.*\\)'/\\1/p", build + '/lib/xcc'], text=True).strip()
        self.env = {k: v for k, v in os.environ.items() if k not in ('CC', 'MAKEFLAGS')}
        self.env.update(PKG_CONFIG_PATH=prefix + '/lib/pkgconfig', PKG_CONFIG=self.work + '/pkg-config',
                        GOPROXY='off', GOWORK='off', GOFLAGS='-mod=mod',
                        CGO_LDFLAGS='-Wl,-rpath,%s/lib' % prefix)
        self.modules = prefix + '/lib/librank'
        os.makedirs(self.work, exist_ok=True)
        open(self.work + '/log', 'w').close()
        with open(self.work + '/pkg-config', 'w') as f:  # go takes one word
            f.write('#!/bin/sh\nexec pkg-config --define-variable=prefix=%s "$@"\n' % prefix)
        os.chmod(self.work + '/pkg-config', 0o755)
        self.installed = self.do('make', '-C', build, 'install', 'DESTDIR=' + self.work)

    def do(self, *words, **more):
        with open(self.work + '/log', 'a') as log:
            return subprocess.run(words, stdout=log, stderr=log, env=self.env, **more).returncode == 0

    def python(self):
        """The path of the module, or None."""
        source, site = self.work + '/source', self.work + '/python'
        done = self.installed and self.do('rm', '-rf', source, site) and self.do('cp', '-r', top + '/bindings/python', source) and \
            self.do('chmod', '-R', 'u+w', source) and self.do(sys.executable, 'setup.py', '-q', 'build', '--build-lib', site, cwd=source)
        return site if done else None

    def go(self):
        """The program go_peer, or None."""
        source = self.work + '/go'
        if not self.installed:
            return None
        os.makedirs(source, exist_ok=True)
        shutil.copy(here + '/go_peer.go', source + '/main.go')
        with open(source + '/go.mod', 'w') as f:
            f.write('module go_peer\n\ngo 1.19\n\nrequire rank v0.0.0\n\nreplace rank => %s/bindings/go\n' % top)
        return source + '/go_peer' if self.do('go', 'build', '-o', 'go_peer', '.', cwd=source) else None


binding = None


def imports_there(path, module):
    return subprocess.run([sys.executable, '-c', 'import ' + module], env=dict(os.environ, PYTHONPATH=path), capture_output=True).returncode == 0


def sources(asked):
    """Those that are asked for and can run, by name; and what the others need."""
    global binding
    got, missing = {}, {}

    def add(needs, there, **functions):
        for name, function in functions.items():
            name = name.replace('_', '-')
            if name in asked and there:
                got[name] = function
            elif name in asked:
                missing[name] = needs

    program = build + '/bench/compare/conn_peer'
    add('make -C %s bench/compare/conn_peer' % opt.build, os.access(program, os.X_OK),
        c=pair('c', [program]), c_alloc=pair('c-alloc', [program], before=['alloc']), c_tcp=pair('c-tcp', [program], before=['tcp']),
        c_prepared=pair('c-prepared', [program], before=['alloc', 'prepared']))
    add('make -C %s rankbench' % opt.build, os.access(build + '/rankbench', os.X_OK), rankbench=rankbench)
    add('make -C %s bench/limits/tcp' % opt.build, os.access(build + '/bench/limits/tcp', os.X_OK), socket=bare_socket)
    fetch = 'bench/peers.sh --transfer %s brings it' % opt.build
    path = python_path('numpy')
    numpy = imports_there(path, 'numpy')
    env, words = {'PYTHONPATH': python_path('nixl-cu13', 'numpy')}, [sys.executable, here + '/nixl_peer.py']
    add(fetch, os.path.isdir(peers + '/nixl-cu13') and numpy, nixl=pair('nixl', words, env),
        nixl_sgl=pair('nixl-sgl', words, dict(env, NIXL_UCX_SGL_ENABLE='1')), nixl_tcp=pair('nixl-tcp', words, dict(env, UCX_TLS='tcp')))
    add(fetch, os.path.isdir(peers + '/python/mpi4py') and os.path.exists(peers + '/ompi5.sh') and numpy, mpi4py=mpi4py)
    for name in ('ucx13', 'ucx22'):
        add(fetch, os.path.exists('%s/%s.raw' % (peers, name)), **{name: perftest(name)})
    pythons = {'python', 'python-alloc', 'python-prepared', 'import'}
    if (pythons | {'go'}) & set(asked):
        bindings = Bindings()
        needs = 'it does not build; see %s/compare/log' % opt.build
        binding = bindings.python() if numpy and pythons & set(asked) else None
        env = {'PYTHONPATH': '%s:%s' % (binding, path), 'RANK_MODULES': bindings.modules}
        words = [sys.executable, here + '/python_peer.py']
        add(needs if numpy else fetch, binding, python=pair('python', words, env),
            python_alloc=pair('python-alloc', words, env, ['alloc']),
            python_prepared=pair('python-prepared', words, env, ['alloc', 'prepared']), **{'import': imports})
        able = shutil.which('go') and os.path.isdir(top + '/bindings/go')
        program = bindings.go() if 'go' in asked and able else None
        add(needs if able else 'there is no go, or no bindings/go', program, go=pair('go', [program], {'RANK_MODULES': bindings.modules}))
    return got, missing


# --------------------------------------------------------------------------------------- the table

def shown(kind, case, value):
    """A figure with its unit."""
    if value is None:
        return '-'
    if kind in ('faster', 'binding'):
        _, bytes_, blocks = case.split(':')
        return '%.3g us, %.2f GB/s' % (value, int(bytes_) * int(blocks) / value / 1e3)
    if kind == 'bandwidth':
        return '%.2f GB/s' % value
    if kind == 'rate':
        return '%.3g M/s' % (value / 1e6)
    return '%.3g ms' % (value / 1e3) if value >= 1000 else '%.3g us' % value


def ratio_of(kind, ours, peer):
    return peer / ours if kind in ('faster', 'binding') else (ours - peer) / 2 if kind == 'later' else ours / peer


def print_row(row, got):
    ours = got[row.ours]
    mine = [v for v in ours if v is not None]
    typical = min if row.kind == 'binding' else statistics.median
    a = typical(mine) if mine else None
    if row.peer is None:
        met = '' if a is None else 'yes' if a <= row.bound else 'NO'
        cells = [row.title, row.ours[0], shown(row.kind, row.ours[1], a), '', '', '', '<= ' + shown(row.kind, '', row.bound), met]
    else:
        each = [ratio_of(row.kind, x, y) for x, y in zip(ours, got[row.peer]) if x and y]
        theirs = [v for v in got[row.peer] if v is not None]
        b = typical(theirs) if theirs else None
        more = row.kind in ('faster', 'binding', 'rate', 'bandwidth')
        ratio = ratio_of(row.kind, a, b) if a and b else None
        bound = '' if row.bound is None else '%s %g %s' % ('>=' if more else '<=', row.bound, 'us' if row.kind == 'later' else 'x')
        met = '' if ratio is None or row.bound is None else 'yes' if (ratio >= row.bound if more else ratio <= row.bound) else 'NO'
        cells = [row.title, row.ours[0], shown(row.kind, row.ours[1], a), row.peer[0], shown(row.kind, row.peer[1], b),
                 '%.2f (%.2f-%.2f)' % (ratio, min(each), max(each)) if ratio and each else '-', bound, met]
    print('| ' + ' | '.join(cells) + ' |', flush=True)


def main():
    rows = [r for r in (two_hosts() if opt.hosts else one_host()) if re.search(opt.rows, r.title)]
    if opt.list:
        print('\n'.join(dict.fromkeys(r.title for r in rows)))
        return
    if not rows:
        sys.exit('transfer: no row matches ' + opt.rows)
    if opt.runs < 1:
        sys.exit('transfer: --runs %d: at least 1' % opt.runs)
    if not os.path.exists(build + '/config.h'):
        sys.exit('transfer: %s is not a build folder' % opt.build)
    if opt.hosts and 'TRANSFER_INSIDE' not in os.environ:
        os.environ.update(TRANSFER_INSIDE='1', top_srcdir=top, top_builddir=build)
        os.execv(hosts_tool, [hosts_tool, 'run', '2', sys.executable] + [os.path.abspath(__file__)] + sys.argv[1:])
    asked = collections.defaultdict(list)
    for row in rows:
        for source, case in filter(None, (row.ours, row.peer)):
            if (not opt.sources or source in opt.sources.split(',')) and case not in asked[source]:
                asked[source].append(case)
    there, missing = sources(asked)
    for source, needs in missing.items():
        print('# %s: missing; %s' % (source, needs), flush=True)
    got = collections.defaultdict(list)
    for _ in range(opt.runs):
        for source in there:
            figures = there[source](asked[source])
            for case in asked[source]:
                got[source, case].append(figures.get(case))
    if opt.raw:
        for (source, case), values in got.items():
            print('# raw', source, case, *('-' if v is None else '%.4g' % v for v in values))
    model = next((l.split(':')[1].strip() for l in open('/proc/cpuinfo') if l.startswith('model name')), platform.machine())
    print('%s, %d cores, Linux %s, %s; %s; medians of %d alternating runs, of bindings the least\n' % (
        model, os.cpu_count(), platform.release(), datetime.date.today(), 'two simulated hosts' if opt.hosts else 'one host', opt.runs))
    print('| row | ours | figure | peer | figure | ratio (spread) | target | met |\n|' + ' --- |' * 8)
    for row in rows:
        if got[row.ours] and (row.peer is None or row.peer[0] in there):
            print_row(row, got)


main()
