# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: two connected contexts of this process, and a peer in another process."""

import subprocess
import sys
import threading

import pytest

import rank

SECRET = b"0123456789abcdef"


class Pair:
    def __init__(self):
        self.a = rank.Context("a", progress_thread=True)
        self.b = rank.Context("b", progress_thread=True)
        self.listener = self.a.listen("127.0.0.1:0", secret=SECRET, hello=b"from a")
        self.client = self.b.connect(self.listener.address, secret=SECRET, hello=b"from b")
        self.server = self.listener.accept(timeout=5)

    def close(self):
        closing = threading.Thread(target=self.b.close)
        closing.start()
        self.a.close()
        closing.join()


@pytest.fixture
def pair():
    pair = Pair()
    yield pair
    pair.close()


@pytest.fixture
def peer(request):
    """Start a program that connects to a listener here. Returns (connection, process)."""
    started = []

    def start(program):
        context = rank.Context("server")
        listener = context.listen("127.0.0.1:0", secret=SECRET)
        code = (f"import rank, sys\nctx = rank.Context('client')\n"
                f"conn = ctx.connect(sys.argv[1], secret={SECRET!r})\n{program}")
        process = subprocess.Popen([sys.executable, "-c", code, listener.address])
        started.append((context, process))
        return listener.accept(timeout=20), process

    yield start
    for context, process in started:
        process.kill()
        process.wait()
        context.close()
