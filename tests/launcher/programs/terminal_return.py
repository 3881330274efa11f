# SPDX-License-Identifier: BSD-3-Clause
"""terminal_return.py: check that the terminal returns when its rank has ended.

Rank 1 has the terminal. Rank 0, which may be on another host, prints "back" when rank 1 has gone."""
import fcntl, os, signal, socket, sys, time
if os.environ["XRUN_RANK"] == "0":
    while not os.path.exists("lives"):
        time.sleep(0.02)
    with open("lives") as f:
        fcntl.flock(f, fcntl.LOCK_SH)
    print("back", flush=True)
    time.sleep(600)
assert os.isatty(0) and os.isatty(1) and os.isatty(2)
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
size = lambda: "%d %d" % os.get_terminal_size()[::-1]
signal.signal(signal.SIGWINCH, lambda *_: print("size", size(), flush=True))
lives = open("lives.new", "w")
fcntl.flock(lives, fcntl.LOCK_EX)  # as long as this process is there
os.rename("lives.new", "lives")
print("on", socket.gethostname(), "ready", size(), flush=True)
for line in sys.stdin:
    if line == "quit\n":
        break
    print("got", line, end="", flush=True)
