# SPDX-License-Identifier: BSD-3-Clause
"""terminal.py SCENARIO COMMAND...: run a command on a terminal as a user would.

Types when the command prompts, checks its output and the terminal after it. RK_LIMIT: the most seconds that it may take."""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time
scenario, command = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
def resize(to, rows, columns):
    fcntl.ioctl(to, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
def shell():
    """One with job control, as far as it is the terminal's matter: COMMAND begins in the background; a line typed, fg;
    when it is stopped, bg, and a line typed, fg. Nothing tells the job of an fg."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.setpgid(0, 0)
        os.execvp(command[0], command)
    try:
        os.setpgid(job, job)
    except OSError:
        pass  # it has done so, and become the command
    while True:
        os.read(0, 100)
        os.tcsetpgrp(0, job)
        os.write(1, b"in the foreground\n")
        status = os.waitpid(job, os.WUNTRACED)[1]
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            os._exit(os.waitstatus_to_exitcode(status))
        os.killpg(job, signal.SIGCONT)
        os.write(1, b"in the background\n")
if pid == 0:
    resize(0, 40, 100)
    os.environ["TERM"] = "xterm"
    os.environ.pop("NO_COLOR", None)
    if scenario == "no-colour":
        os.environ["NO_COLOR"] = "1"
    if scenario in ("jobs", "jobs-pty"):
        shell()
    os.execvp(command[0], command)
shown, limit = b"", time.monotonic() + float(os.environ.get("RK_LIMIT", 20))
def until(what):
    global shown
    while not re.search(what, shown):
        left = limit - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            sys.exit("waited in vain for %r; got %r" % (what, shown))
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""
        if not data:
            sys.exit("no %r before the end; got %r" % (what, shown))
        shown += data
def cooked():
    return bool(termios.tcgetattr(fd)[3] & termios.ICANON)
if scenario == "keys":
    until(b"ready 40 100")
    assert not cooked()
    os.write(fd, b"hello\r")
    until(b"got hello")
    os.write(fd, b"\x03")  # ^C is for the program there, not for xrun
    until(b"interrupted")
    resize(fd, 33, 77)
    until(b"size 33 77")
    os.write(fd, b"quit\r")
    until(b"back")
    while not cooked():  # on two hosts xrun may get its end after that
        assert time.monotonic() < limit, "the rank is gone, and the terminal still raw"
        time.sleep(0.01)
    os.write(fd, b"\x03")  # and now ^C is xrun's
if scenario in ("jobs", "jobs-pty"):
    until(b"ready")
    os.write(fd, b"fg\r")
    until(b"in the foreground")
if scenario == "jobs":
    os.write(fd, b"one\r")
    until(b"got one")
    os.write(fd, b"\x1a")  # ^Z
    until(b"in the background")
    shown = b""
    os.write(fd, b"fg\r")
    until(b"in the foreground")
    os.write(fd, b"two\r")
    until(b"got two")
    os.write(fd, b"\x04")  # ^D
if scenario == "jobs-pty":
    while cooked():
        assert time.monotonic() < limit, "back in the foreground, and the terminal is not the rank's"
        time.sleep(0.01)
    os.write(fd, b"one\r")
    until(b"got one")
    os.write(fd, b"\x04")
if scenario == "twice":  # four ranks get the first ^C, and go on
    until(b"(?s)(ready.*){4}")
    os.write(fd, b"\x03")
    until(b"once more to kill it at once")
    until(b"(?s)(heard.*){4}")
    typed = time.monotonic()
    os.write(fd, b"\x03")
if scenario == "prompt":
    until(rb"name\? ")
    open("shown", "w").close()
if scenario == "killed":
    until(b"ready")
    os.kill(pid, signal.SIGTERM)
while True:
    try:
        data = os.read(fd, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data
    if time.monotonic() > limit:
        sys.exit("does not end: %r" % shown)
status = os.waitpid(pid, 0)[1]
if scenario == "twice":
    print("ms from the second ^C to the end:", int(1000 * (time.monotonic() - typed)))
sys.stdout.write("%s %d\n" % (repr(shown), os.waitstatus_to_exitcode(status)))
