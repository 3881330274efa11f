# SPDX-License-Identifier: BSD-3-Clause
"""Run random operations in several threads, while both contexts are closed."""

import os
import random
import threading
import time

import pytest

import rank
from conftest import SECRET

SIZES = [0, 8, 5000, 200000, 2000000]
ENDS = (rank.ClosedError, rank.PeerDeadError)
EXPECTED = (rank.TimedOutError, rank.TruncatedError, rank.HandleError)


def random_list(rng, remotes):
    """Blocks of two remotes, which another thread may close. Writes of them need no order."""
    sizes = [rng.choice(SIZES) for _ in range(rng.randint(1, 4))]
    return [(bytearray(size), rng.choice(remotes), rng.randint(0, SIZES[-1] - size)) for size in sizes]


def list_operation(rng, conn, kept, remotes):
    kind = rng.randrange(6)
    if kind == 0:
        conn.iwrite(random_list(rng, remotes), notice=rng.randrange(3))  # dropped at once
    elif kind == 1:
        kept.append(conn.iread(random_list(rng, remotes), notice=(1, b"x")))
    elif kind == 2:
        conn.write(random_list(rng, remotes), timeout=rng.choice([0, 0.005]))
    elif kind == 3:
        prepare = rng.choice([conn.prepare_write, conn.prepare_read])
        kept.append(prepare(random_list(rng, remotes)))
        for _ in range(2):
            kept[-1].start().wait(timeout=0.02)
    elif kind == 4:
        remotes[0].fetch_add(1, offset=8)
    elif rng.random() < 0.1:
        remotes[1].close()


def one_operation(rng, conn, kept, remotes):
    size, tag = rng.choice(SIZES), rng.randrange(3)
    kind = rng.randrange(12 if remotes else 8)
    if kind == 0:
        conn.isend(bytes(size), tag=tag)  # dropped at once
    elif kind == 1:
        kept.append(conn.irecv(bytearray(size), tag=tag))
    elif kind == 2:
        conn.recv(bytearray(size), tag=tag, timeout=rng.choice([0, 0.005]))
    elif kind == 3:
        conn.send(bytes(size), tag=tag, timeout=0.01)
    elif kind == 4:
        conn.probe()
    elif kind == 5 and kept:
        kept.pop(rng.randrange(len(kept))).wait(timeout=0.005)
    elif kind == 6:
        kept.clear()
    elif kind == 7:
        conn.recv_bytes(timeout=0.002)
    elif kind > 7:
        list_operation(rng, conn, kept, remotes)


def operate(rng, conn, errors, remotes):
    kept = []
    try:
        for _ in range(100):
            try:
                one_operation(rng, conn, kept, remotes)
            except EXPECTED:
                pass
    except ENDS:
        pass
    except Exception as error:
        errors.append(error)


def accept(listener, conns):
    try:
        while True:
            conns.append(listener.accept())
    except rank.ClosedError:
        pass


def close(rng, context):
    try:
        context.close(timeout=rng.choice([0, 1]))
    except rank.TimedOutError:
        pass


def run(rng):
    server = rank.Context("server", progress_thread=True)
    client = rank.Context("client", progress_thread=rng.random() < 0.5)
    listener = server.listen("127.0.0.1:0", secret=SECRET)
    conns, errors = [], []
    threads = [threading.Thread(target=accept, args=(listener, conns))]
    threads[0].start()
    clients = [client.connect(listener.address, secret=SECRET) for _ in range(3)]
    deadline = time.monotonic() + 10
    while len(conns) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(conns) == 3
    memories = [server.register(bytearray(SIZES[-1])), server.alloc(SIZES[-1])]
    keys = server.keys(memories)
    remotes = [conn.open_keys(keys) for conn in clients]
    for conn in clients + conns:
        remote = remotes[clients.index(conn)] if conn in clients else None
        threads.append(threading.Thread(target=operate, args=(random.Random(rng.random()), conn, errors, remote)))
        threads[-1].start()
    time.sleep(rng.random() * 0.2)
    for context in rng.sample([server, client], 2):
        threads.append(threading.Thread(target=close, args=(rng, context)))
        threads[-1].start()
        time.sleep(rng.choice([0, 0.05]))
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert not errors


@pytest.mark.parametrize("seed", range(8))
def test_random_close(seed):
    run(random.Random(seed))
    before = len(os.listdir("/proc/self/fd"))
    run(random.Random(seed + 100))
    assert len(os.listdir("/proc/self/fd")) == before
