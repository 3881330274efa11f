# SPDX-License-Identifier: BSD-3-Clause
"""Connections in one process and between two."""

import array
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import rank
from conftest import SECRET


def test_info(pair):
    info = pair.server.info()
    assert (info["name"], info["hello"], info["proved"]) == ("b", b"from b", True)
    assert info["local"] == pair.client.info()["remote"]
    assert (pair.client.rank, pair.server.rank, pair.client.size) == (0, 1, 2)
    memory = pair.a.register(bytearray(8))
    remote = pair.client.open(memory.pack())
    pair.client.write([(b"12", remote, 0), (b"34", remote, 4)])
    info = pair.client.info()
    assert (info["transfers"], info["blocks"], info["refused"]) == (1, 2, 0)
    pair.client.send(b"12345678")
    assert pair.server.recv_bytes(timeout=5) == b"12345678"
    assert pair.client.info()["messages_sent"] == pair.server.info()["messages_received"] >= 1
    assert info["sent_ago"] is None or 0 <= info["sent_ago"] < 60


def test_no_shared_memory(pair):
    plain = pair.b.connect(pair.listener.address, secret=SECRET, shm=False)
    server = pair.listener.accept(timeout=5)
    assert plain.info()["channel"] == server.info()["channel"] == "tcp"
    server.send(b"12345678")
    assert plain.recv_bytes(timeout=5) == b"12345678"
    assert plain.info()["messages_received"] >= 1


def test_name_that_is_no_text(pair):
    """The name of a program can be any bytes."""
    code = (f"import rank, sys\nrank.Context().connect(sys.argv[1], secret={SECRET!r}).recv(bytearray(1))")
    with subprocess.Popen([b"\xff", "-c", code, pair.listener.address], executable=sys.executable) as process:
        conn = pair.listener.accept(timeout=20)
        assert conn.info()["name"] == "\ufffd"
        conn.send(b"x")
        assert process.wait(20) == 0


def test_random_messages(pair):
    """Random sizes and tags in both directions, received by tag in another order."""
    rng = random.Random(7)
    for _ in range(20):
        messages = {tag: rng.randbytes(rng.choice([0, 1, 8, 4000, 70000, 3000000])) for tag in range(rng.randint(1, 8))}
        for source, target in ((pair.client, pair.server), (pair.server, pair.client)):
            sends = [source.isend(data, tag=tag) for tag, data in messages.items()]
            for tag in rng.sample(list(messages), len(messages)):
                buffer = bytearray(len(messages[tag]) + rng.randint(0, 3))
                envelope = target.recv(buffer, tag=tag, timeout=20)
                assert buffer[:envelope.bytes] == messages[tag]
                assert (envelope.source, envelope.tag, envelope.sent_bytes) == (source.rank, tag, envelope.bytes)
            for send in sends:
                send.wait(timeout=20)


def test_probe_and_bytes(pair):
    assert pair.server.probe() is None
    with pytest.raises(rank.TimedOutError):
        pair.server.recv_bytes(timeout=0.01)
    pair.client.send(b"hello", tag=3)
    assert pair.server.recv_bytes(tag=3, timeout=5) == b"hello"


def test_bytes_without_memory(peer):
    """A message that has no place here does not stop its sender."""
    conn, process = peer("conn.send(bytes(200000000)); conn.recv(bytearray(1))")
    while not conn.probe():
        time.sleep(0.01)
    limit = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 100000000, limit[1]))
    try:
        with pytest.raises(MemoryError):
            conn.recv_bytes(timeout=10)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    conn.send(b"x")
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        conn.context.progress()
    assert process.returncode == 0


def test_truncated(pair):
    pair.client.send(b"12345678")
    with pytest.raises(rank.TruncatedError):
        pair.server.recv(bytearray(4), timeout=5)


def test_timeouts_leave_the_buffer(pair):
    buffer = bytearray(8)
    request = pair.server.irecv(buffer, tag=1)
    with pytest.raises(BufferError):  # it is exported until the request ends
        buffer.append(1)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        request.wait(timeout=0.1)
    assert 0.09 < time.monotonic() - started < 5
    assert not request.test()
    request.cancel()
    with pytest.raises(rank.CanceledError):
        request.wait()
    buffer.append(1)
    with pytest.raises(rank.TimedOutError):  # a blocking receive cancels itself
        pair.server.recv(buffer, timeout=0.05)
    buffer.append(1)


def test_dropped_request_keeps_its_buffer(pair):
    data = bytes(5000000)
    for _ in range(3):
        pair.client.isend(data)  # dropped at once, and not begun
        pair.server.irecv(bytearray(8), tag=9)
    pair.client.send(b"x", tag=2)
    pair.server.recv(bytearray(1), tag=2, timeout=5)


def test_collectives(pair):
    sums = [array.array("d", [rank_, 1.5]) for rank_ in (1, 2)]
    parts = [bytearray(6), bytearray(6)]
    roots = [bytearray(b"root!"), bytearray(5)]

    def work(team):
        team.allreduce(sums[team.rank])
        team.allgather(bytes([team.rank] * 3), parts[team.rank])
        team.bcast(roots[team.rank], root=0)
        team.barrier(timeout=10)

    other = threading.Thread(target=work, args=(pair.client,))
    other.start()
    work(pair.server)
    other.join()
    assert [list(values) for values in sums] == [[3.0, 3.0]] * 2
    assert parts[0] == parts[1] == b"\0\0\0\1\1\1"
    assert roots[1] == b"root!"


def test_memory(pair):
    target = bytearray(b"." * 100000)
    memory = pair.a.register(target)
    assert bytes(memoryview(memory)[:3]) == b"..." and len(memory) == 100000
    with pair.client.open(memory.pack()) as remote:
        remote.put(b"abc", offset=10)
        remote.iput(b"xyz", offset=99997).wait(timeout=5)
        remote.flush()
        assert target[9:14] == b".abc." and target[-3:] == b"xyz"
        back = bytearray(5)
        remote.get(back, offset=9)
        assert back == b".abc."
        with pytest.raises(rank.BoundsError):
            remote.put(b"abcd", offset=99998)
    with pytest.raises(rank.HandleError):
        remote.flush()
    with pytest.raises(rank.HandleError):
        pair.client.open(b"not a key")
    memory.close(timeout=20)
    target.append(0)
    with pytest.raises(rank.HandleError):
        memory.pack()


def test_atomics(pair):
    counter = array.array("q", [0, 5])
    memory = pair.a.register(counter)
    claims = []

    def claim(remote):
        claims.extend(remote.fetch_add(1) for _ in range(200))

    threads = [threading.Thread(target=claim, args=(pair.client.open(memory.pack()),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claims) == list(range(600)) and counter[0] == 600
    remote = pair.client.open(memory.pack())
    assert remote.swap(-7, offset=8) == 5
    assert remote.compare_swap(1, 2, offset=8) == -7 == counter[1]
    assert remote.compare_swap(-7, 2, offset=8) == -7
    remote.add(40, offset=8)
    remote.flush()
    assert counter[1] == 42
    with pytest.raises(rank.ArgError):
        remote.fetch_add(1, offset=4)
    with pytest.raises(rank.BoundsError):
        remote.fetch_add(1, offset=16)
    for wrong in ("1", 1.0, None):
        with pytest.raises(TypeError):
            remote.fetch_add(wrong)


def test_close_memory_in_threads(pair):
    errors = []

    def close(memory):
        try:
            memory.close(timeout=20)
        except rank.Error as error:
            errors.append(error)

    for _ in range(100):
        memory = pair.a.register(bytearray(100000))
        threads = [threading.Thread(target=close, args=(memory,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


def test_disconnect(pair):
    request = pair.client.irecv(bytearray(4))
    pair.server.send(b"last", tag=1)
    pair.server.disconnect()
    request.wait(timeout=5)
    with pytest.raises(rank.ClosedError):
        pair.client.recv(bytearray(4), timeout=5)
    with pytest.raises(rank.ClosedError):
        pair.server.send(b"x")


def test_exception_of_a_block(peer):
    """The exception of a with block stays, though a stopped peer does not confirm the end."""
    for thrown, seen in ((KeyboardInterrupt(), KeyboardInterrupt), (None, rank.TimedOutError)):
        conn, process = peer("conn.send(b'up'); conn.recv(bytearray(1))")
        assert conn.recv_bytes(timeout=20) == b"up"
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(seen):
            with conn:
                if thrown:
                    raise thrown


def test_close_while_threads_wait():
    context = rank.Context()
    listener = context.listen("127.0.0.1:0")
    errors = []

    def wait():
        try:
            listener.accept()
        except rank.Error as error:
            errors.append(type(error))

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    context.close()
    for thread in threads:
        thread.join(5)
    assert errors == [rank.ClosedError] * 3
    with pytest.raises(rank.ClosedError):
        context.connect("127.0.0.1:1")
    context.close()


def test_secrets():
    with rank.Context(progress_thread=True) as server, rank.Context() as client:
        listener = server.listen("127.0.0.1:0", secret=SECRET)
        with pytest.raises(rank.SecretError):
            client.connect(listener.address, secret=b"fedcba9876543210")
        address = listener.address
        listener.close()
        with pytest.raises(rank.UnreachableError):
            client.connect(address, secret=SECRET, timeout=1)
        for wrong, reason in (("nonsense", "has no port"), ("127.0.0.1:99999", "not a number from 1 to 65535"), ("::1:7", "brackets")) * 2:
            with pytest.raises(rank.ArgError, match=reason):
                client.connect(wrong)


def test_another_process(peer):
    conn, process = peer("""
data = bytearray(1000000)
conn.recv(data, tag=4)
conn.send(bytes(reversed(data)), tag=5)
memory = ctx.register(data)
conn.send(memory.pack(), tag=6)
conn.barrier()
assert data[:3] == b'put'
conn.disconnect()
""")
    sent = random.Random(3).randbytes(1000000)
    conn.send(sent, tag=4)
    back = bytearray(1000000)
    conn.recv(back, tag=5, timeout=20)
    assert back == bytes(reversed(sent))
    remote = conn.open(conn.recv_bytes(tag=6, timeout=20))
    assert conn.info()["pid"] in (process.pid, None)
    remote.put(b"put")
    remote.flush()
    conn.barrier()
    with pytest.raises(rank.ClosedError):
        conn.recv(back, timeout=20)
    assert process.wait(20) == 0


def test_killed_peer(peer):
    conn, process = peer("conn.send(b'up'); conn.recv(bytearray(1))")
    assert conn.recv_bytes(timeout=20) == b"up"
    request = conn.irecv(bytearray(8))
    process.send_signal(signal.SIGKILL)
    with pytest.raises(rank.PeerDeadError):
        request.wait(timeout=5)


FORK = f"""
import os, sys, rank
a, b = rank.Context(progress_thread=True), rank.Context(progress_thread=True)
listener = a.listen('127.0.0.1:0', secret={SECRET!r})
client = b.connect(listener.address, secret={SECRET!r})
server = listener.accept(timeout=20)
memory = a.register(bytearray(100))
remote = client.open(memory.pack())
request = server.irecv(bytearray(5))
pid = os.fork()
if pid == 0:
    for call in (lambda: client.send(b'x'), lambda: request.wait(timeout=5), lambda: b.connect(listener.address), memory.pack):
        try:
            call()
        except rank.StateError as error:
            assert 'forked child' in str(error) or 'parent' in str(error), error
    own = rank.Context()
    own.close()
    del client, server, memory, remote, request, listener, a, b
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
client.send(b'hello')
assert request.wait(timeout=20).bytes == 5
remote.put(b'put')
remote.flush()
assert bytes(memoryview(memory)[:3]) == b'put'
"""


def test_fork():
    """A child that ends leaves its parent's connections alone, and cannot use them."""
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_connect_retries():
    """connect(retry=...) reaches a listener that opens later, and ends in time without one."""
    listeners = []
    with socket.socket() as place, rank.Context(progress_thread=True) as server, rank.Context() as client:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # it keeps the port, and the listener may take it
        place.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{place.getsockname()[1]}"
        with pytest.raises(rank.UnreachableError):
            client.connect(address, secret=SECRET)
        with pytest.raises(rank.UnreachableError):
            client.connect(address, secret=SECRET, retry=0.2)
        timer = threading.Timer(0.3, lambda: listeners.append(server.listen(address, secret=SECRET)))
        timer.start()
        conn = client.connect(address, secret=SECRET, retry=30)
        timer.join()
        conn.isend(b"late").wait(timeout=20)
        assert listeners[0].accept(timeout=20).recv_bytes(timeout=20) == b"late"
