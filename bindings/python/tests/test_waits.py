# SPDX-License-Identifier: BSD-3-Clause
"""Waits: other threads run, ^C works, asyncio."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import rank
from conftest import SECRET


@pytest.mark.parametrize("call", ["recv", "wait", "accept", "barrier", "recv_bytes"])
def test_interrupt(pair, call):
    request = pair.server.irecv(bytearray(1), tag=77)
    calls = {
        "recv": lambda: pair.server.recv(bytearray(8)),
        "wait": request.wait,
        "accept": pair.listener.accept,
        "barrier": pair.server.barrier,
        "recv_bytes": pair.server.recv_bytes,
    }
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    assert time.monotonic() - started < 5
    timer.join()


def test_other_threads_run(pair):
    """A waiting receive does not keep the GIL from the thread that sends."""
    def echo():
        for _ in range(200):
            pair.client.recv(bytearray(8), timeout=10)
            pair.client.send(b"12345678")

    thread = threading.Thread(target=echo)
    thread.start()
    for _ in range(200):
        pair.server.send(b"12345678")
        pair.server.recv(bytearray(8), timeout=10)
    thread.join()


@pytest.mark.parametrize("threads", [False, True])
def test_sends_leave_at_once(threads):
    """A message arrives though its sender makes no further call."""
    server, client = rank.Context(progress_thread=threads), rank.Context(progress_thread=threads)
    listener = server.listen("127.0.0.1:0", secret=SECRET)
    connecting = threading.Thread(target=lambda: conns.append(client.connect(listener.address, secret=SECRET)))
    conns = []
    connecting.start()
    conn = listener.accept(timeout=10)
    connecting.join()
    kept = []
    for i in range(30):
        if i % 2:
            conns[0].send(b"12345678")
        else:
            kept.append(conns[0].isend(b"12345678"))
        assert conn.recv(bytearray(8), timeout=10).bytes == 8
    closing = threading.Thread(target=client.close)
    closing.start()
    server.close()
    closing.join()


def test_one_thread_a_request(pair):
    request = pair.server.irecv(bytearray(1))
    thread = threading.Thread(target=request.wait)
    thread.start()
    time.sleep(0.1)
    with pytest.raises(rank.StateError, match="another thread"):
        request.wait()
    pair.client.send(b"x")
    thread.join()


def test_import_without_asyncio():
    """Programs that do not use asyncio do not wait for its import."""
    subprocess.run([sys.executable, "-c", "import rank, sys; assert rank.accept and 'asyncio' not in sys.modules"], check=True)


def test_asyncio():
    """Two contexts in one loop, without a thread of the library: many requests at once, and a silent loop sleeps."""
    async def echo(conn, n):
        for tag in range(n):
            buffer = bytearray(100000)
            envelope = await conn.irecv(buffer, tag=tag)
            await conn.isend(buffer[:envelope.bytes], tag=tag)

    async def ask(conn, tag):
        data = bytes([tag]) * (tag * 1500)
        back = bytearray(len(data))
        receive = conn.irecv(back, tag=tag)
        await conn.isend(data, tag=tag)
        await receive
        assert back == data

    async def main(server, client, listener, loop):
        accepting = asyncio.ensure_future(rank.accept(listener))
        with pytest.raises(rank.ArgError, match="has no port"):
            await rank.connect(client, "nonsense")
        out = await rank.connect(client, listener.address, secret=SECRET)
        conn = await accepting
        await asyncio.wait_for(asyncio.gather(echo(conn, 50), *(ask(out, tag) for tag in range(50))), 20)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(rank.accept(listener), 0.1)
        waiting = asyncio.ensure_future(_await(conn.irecv(bytearray(1))))
        busy = time.process_time()
        await asyncio.sleep(0.5)
        assert time.process_time() - busy < 0.25
        disconnecting = loop.run_in_executor(None, out.disconnect)
        with pytest.raises(rank.ClosedError):
            await asyncio.wait_for(waiting, 5)
        await disconnecting

    async def _await(request):
        return await request

    async def run():
        server, client = rank.Context("server"), rank.Context("client")
        listener = server.listen("127.0.0.1:0", secret=SECRET)
        await main(server, client, listener, asyncio.get_running_loop())
        listener.close()
        server.close()
        client.close()

    asyncio.run(run())
