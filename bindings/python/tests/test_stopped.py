# SPDX-License-Identifier: BSD-3-Clause
"""End waits for a stopped peer by timeouts, by ^C and by closing."""

import os
import signal
import socket
import threading
import time

import pytest

import rank
from conftest import SECRET

BOUND = 5  # seconds, of a wait of 0.2 or 0.5 s on a machine that is busy

PROGRAM = f"""
listener = ctx.listen('127.0.0.1:0', secret={SECRET!r})
conn.send(listener.address.encode())
other = listener.accept()
memory = ctx.register(bytearray(64))
other.send(memory.pack(), tag=1)
other.recv(bytearray(1), tag=2)
"""


class Stopped:
    """A connection by the socket to a process that is stopped, and a key of that."""

    def __init__(self, peer):
        conn, self.process = peer(PROGRAM)
        address = conn.recv_bytes(timeout=20).decode()
        self.conn = conn.context.connect(address, secret=SECRET, shm=False)
        self.key = self.conn.recv_bytes(tag=1, timeout=20)
        self.remote = self.conn.open(self.key)
        self.remote.put(b"before")
        self.remote.flush()
        self.process.send_signal(signal.SIGSTOP)
        self.remote.put(b"after")


@pytest.fixture
def stopped(peer):
    return Stopped(peer)


def calls(stopped):
    remote = stopped.remote
    return {
        "flush": remote.flush,
        "fetch_add": lambda **options: remote.fetch_add(1, 8, **options),
        "compare_swap": lambda **options: remote.compare_swap(1, 2, 8, **options),
        "swap": lambda **options: remote.swap(1, 16, **options),
        "open": lambda **options: stopped.conn.open(stopped.key, **options),
        "close": remote.close,
    }


@pytest.mark.parametrize("name", ["flush", "fetch_add", "compare_swap", "swap", "open", "close"])
def test_timeouts(stopped, name):
    call = calls(stopped)[name]
    started = time.monotonic()
    with pytest.raises(rank.TimedOutError):
        call(timeout=0.2)
    assert 0.19 < time.monotonic() - started < BOUND
    stopped.process.send_signal(signal.SIGCONT)
    if name != "close":
        stopped.remote.flush(timeout=20)
        assert stopped.remote.fetch_add(0, 8, timeout=20) == (1 if name == "fetch_add" else 0)
    stopped.conn.send(b"x", tag=2)
    stopped.conn.disconnect(timeout=20)


@pytest.mark.parametrize("name", ["flush", "fetch_add", "open", "close"])
def test_interrupt(stopped, name):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        calls(stopped)[name]()
    assert time.monotonic() - started < BOUND
    timer.join()


def test_interrupt_of_connect():
    """^C in connect leaves the block of the Context at once, not after the handshake."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt), rank.Context() as context:
            timer.start()
            context.connect(f"127.0.0.1:{silent.getsockname()[1]}", secret=SECRET, timeout=600)
        timer.join()


def test_close_during_connect():
    """A close ends the connect of another thread, and one that a later listener would accept."""
    for retry in (None, 600):
        context, errors = rank.Context(), []
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            if not retry:
                silent.listen(1)

            def connect():
                try:
                    context.connect(f"127.0.0.1:{silent.getsockname()[1]}", secret=SECRET, timeout=600, retry=retry)
                except rank.Error as error:
                    errors.append(type(error))

            thread = threading.Thread(target=connect)
            thread.start()
            if retry:
                time.sleep(0.1)  # in the pause of a retry, or before it: both end so
            accepted = None if retry else silent.accept()[0]
            context.close()
            thread.join()
            assert errors == [rank.ClosedError]
            del accepted  # open until here


@pytest.mark.parametrize("end", ["drop", "disconnect", "close"])
def test_ends(stopped, end):
    """Drop the Remote, or close while other threads wait."""
    errors = []

    def wait(call):
        try:
            call()
        except rank.Error as error:
            errors.append(type(error))

    started = time.monotonic()
    if end == "drop":
        stopped.remote = None
    else:
        context = stopped.conn.context
        threads = [threading.Thread(target=wait, args=(calls(stopped)[name],)) for name in ("flush", "fetch_add", "open")]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        with pytest.raises(rank.TimedOutError):
            stopped.conn.disconnect(timeout=0.5) if end == "disconnect" else context.close(timeout=0.5)
        for thread in threads:
            thread.join(BOUND)
        assert errors == [rank.ClosedError] * 3
    assert time.monotonic() - started < BOUND


def test_end_of_begun_calls():
    """Disconnect when the threads of calls that a timeout has left may not be in the library yet."""
    with rank.Context(progress_thread=True) as ours, rank.Context(progress_thread=True) as theirs:
        listener = theirs.listen("127.0.0.1:0", secret=SECRET)
        memory = theirs.register(bytearray(64))
        key = memory.pack()
        for _ in range(20):
            conn = ours.connect(listener.address, secret=SECRET, shm=False)
            server = listener.accept(timeout=20)
            remote = conn.open(key)
            remote.put(b"x")
            for call in (remote.flush, lambda **options: conn.open(key, **options), lambda **options: remote.fetch_add(1, 8, **options)) * 4:
                try:
                    call(timeout=0)
                except rank.TimedOutError:
                    pass
            conn.disconnect(timeout=20)
            server.disconnect(timeout=20)
