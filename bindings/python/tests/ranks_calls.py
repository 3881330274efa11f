# SPDX-License-Identifier: BSD-3-Clause
"""Call messages, functions, teams and memory of ranks; end without finalize()."""

import array
import struct
import threading

import rank

WAIT = 60  # seconds


def messages(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    got = array.array("i", [0])
    envelope = world.sendrecv(array.array("i", [world.rank]), got, dest=right, source=left, sendtag=5, timeout=WAIT)
    assert (got[0], envelope.source, envelope.tag, envelope.bytes) == (left, left, 5, 4)
    try:
        world.sendrecv(b"", bytearray(1), dest=right, source=left, sendtag=6, recvtag=7, timeout=0)
        raise AssertionError("nothing has that tag")
    except rank.TimedOutError:
        world.recv(bytearray(1), peer=left, tag=6, timeout=WAIT)
    send = world.issend(b"matched", peer=right, tag=1)
    world.barrier(timeout=WAIT)
    assert not send.test()  # no receive has matched it
    world.barrier(timeout=WAIT)
    message = world.mprobe(peer=left, tag=1, timeout=WAIT)
    assert message.envelope.bytes == 7 and world.improbe(peer=left, tag=1) is None
    data = bytearray(7)
    assert message.recv(data, timeout=WAIT).source == left and data == b"matched"
    send.wait(timeout=WAIT)
    try:
        message.recv(data)
        raise AssertionError("it was received before")
    except rank.HandleError:
        pass
    sends = [world.isend(bytes(200000), peer=right, tag=2) for _ in range(2)]
    while not (message := world.improbe(tag=2)):
        pass
    assert message.recv_bytes(timeout=WAIT) == bytes(200000)
    message = world.mprobe(tag=2, timeout=WAIT)
    del message  # its sender goes on
    for send in sends:
        send.wait(timeout=WAIT)
    thread = threading.Thread(target=lambda: world.ssend(b"", peer=right, tag=3, timeout=WAIT))
    thread.start()
    world.recv(bytearray(0), peer=left, tag=3, timeout=WAIT)
    thread.join()


def functions(world):
    """The function sees the items, in the order of ranks. Its exception ends the call, and nothing else."""
    seen = []

    def join(a, b):
        seen.append((a.format, a.shape))
        return bytes(a[: len(a) - 1]) + bytes([b[-1] + a[-1]])

    data = bytearray([1, 1])
    world.allreduce(data, op=join, timeout=WAIT)
    assert data == bytes([1, world.size]) and seen == [("B", (2,))] * (world.size - 1)

    def fails(a, b):
        raise KeyError("of the function")

    for call, here in ((lambda: world.allreduce(data, op=fails), True),
                       (lambda: world.ireduce(data, bytearray(2), op=fails).wait(timeout=WAIT), world.rank == 0)):
        try:
            call()
            assert not here or world.size == 1
        except KeyError:
            assert here and world.size > 1
    try:
        world.allreduce(data, op=lambda a, b: bytes(3))
        assert world.size == 1
    except TypeError as error:
        assert "3 bytes" in str(error)
    world.barrier(timeout=WAIT)


def teams(world):
    with world.dup(timeout=WAIT) as other, world.split_shared(key=-world.rank, timeout=WAIT) as near:
        assert (other.rank, other.size) == (world.rank, world.size)
        assert (near.rank, near.size) in ((world.size - 1 - world.rank, world.size), (0, 1))  # 1: no shared memory
        parity = world.split(world.rank % 2, timeout=WAIT)
        numbers = array.array("q", [world.rank])
        parity.allreduce(numbers, timeout=WAIT)
        assert numbers[0] == sum(range(world.rank % 2, world.size, 2))
        request = other.irecv(bytearray(1), peer=world.rank)
        other.send(b"x", peer=world.rank)
    assert request.wait(timeout=WAIT).bytes == 1  # also after the end of its team
    try:
        other.barrier()
        raise AssertionError("the team is closed")
    except rank.ClosedError:
        pass
    try:
        world.close()
        raise AssertionError("the world ends by finalize")
    except rank.StateError:
        pass


def memory(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    with world.alloc(64, timeout=WAIT) as part, world.alloc(16, timeout=WAIT) as signals:
        view = memoryview(part)
        view[:8] = struct.pack("q", world.rank)
        assert signals.test_signal(1) is None
        world.barrier(timeout=WAIT)
        there = part.remote(right)
        data = bytearray(8)
        there.get(data, timeout=WAIT)
        assert struct.unpack("q", data) == (right,)
        there.put_signal(b"new data", 0, offset=8, value=3, signal=signals.remote(right))
        assert signals.signal_wait(3, peer=left, timeout=WAIT) == 3 and view[8:16] == b"new data"
        there.put_signal(b"", 24, op=rank.SIGNAL_SET, value=2**64 - 1)
        assert part.signal_wait(2**64 - 1, offset=24, cmp=rank.CMP_EQ, timeout=WAIT) == 2**64 - 1
        try:
            signals.signal_wait(4, timeout=0.01)
            raise AssertionError("nothing sends it")
        except rank.TimedOutError:
            pass
        assert part.remote(world.rank).fetch_add(5, offset=32, timeout=WAIT) == 0
        world.write([(b"list", there, 40)], notice=9, peer=right, timeout=WAIT)
        world.recv(bytearray(0), peer=left, tag=9, timeout=WAIT)
        assert view[40:44] == b"list"
        for call in (part.close, rank.finalize):
            try:
                call()
                raise AssertionError("a view shows the memory")
            except BufferError:
                pass
        view.release()
        world.barrier(timeout=WAIT)
    try:
        there.put(b"x")
        raise AssertionError("the memory is closed")
    except rank.HandleError:
        pass


begun = rank.wtime()
rank.init()
for part in (messages, functions, teams, memory):
    part(rank.world())
left_open = memoryview(rank.world().alloc(8, timeout=WAIT))
assert rank.wtime() > begun
print("all is well")
