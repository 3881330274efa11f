# SPDX-License-Identifier: BSD-3-Clause
"""killed_xrun_socket.py XRUN: kill xrun while it cannot run; is its socket gone?

Kills xrun and its agent with signal 9. A real-time process keeps the core that xrun is bound to, so that the killed xrun stays
the parent of its supervisor until all else is over. Prints "gone" or "left NAME". Exit code 77: no such process may be made
here, or there is one core only.
"""
import os, pathlib, signal, subprocess, sys, time

xrun = sys.argv[1]
held = max(os.sched_getaffinity(0))
others = os.sched_getaffinity(0) - {held}
if not others:
    sys.exit(77)
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
except PermissionError:
    sys.exit(77)


def children(pid):
    return [int(k) for k in pathlib.Path('/proc/%d/task/%d/children' % (pid, pid)).read_text().split()]


def state(pid):
    try:
        return pathlib.Path('/proc/%d/stat' % pid).read_text().rsplit(')', 1)[1].split()[0]
    except FileNotFoundError:
        return 'Z'


def attempt():
    """None: xrun came to run all the same (the kernel keeps a twentieth of each second for others)."""
    front = subprocess.Popen([xrun, '-q', '-n', '2', '--bind', 'none', 'sh', '-c', 'echo ready; exec sleep 60'],
                             stdout=subprocess.PIPE)
    for _ in range(2):
        if front.stdout.readline() != b'ready\n':
            sys.exit('xrun did not start its ranks')
    keeper = children(front.pid)[0]
    agent = children(keeper)[0]
    os.sched_setaffinity(front.pid, {held})
    for pid in [keeper, agent] + children(agent):
        for thread in os.listdir('/proc/%d/task' % pid):
            os.sched_setaffinity(int(thread), others)
    runtime = pathlib.Path(os.environ['XDG_RUNTIME_DIR'])
    name = [p.name for p in runtime.rglob('*') if '-%d-' % front.pid in p.name]
    if not name:
        sys.exit('the job has nothing in %s' % runtime)
    os.sched_setaffinity(0, {held})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    os.kill(front.pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    end = time.monotonic() + 20
    while state(keeper) != 'Z' and time.monotonic() < end:
        pass
    ran = state(front.pid) == 'Z' or state(keeper) != 'Z'
    left = [n for n in name if list(runtime.rglob(n))]
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(0, others | {held})
    front.wait()
    return None if ran and not left else 'left ' + left[0] if left else 'gone'


for _ in range(10):
    result = attempt()
    if result:
        print(result)
        break
else:
    print('xrun could not be held')
