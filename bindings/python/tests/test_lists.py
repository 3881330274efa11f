# SPDX-License-Identifier: BSD-3-Clause
"""Lists of blocks with notices, lists of keys, access to memory."""

import array
import asyncio
import random
import sys

import pytest

import rank
from conftest import SECRET
from test_arguments import Tensor

SIZE = 50000
MEMORIES = 3


class Lists:
    """Memory of the server, and its remotes at the client."""

    def __init__(self, pair, shm):
        self.pair = pair
        if not shm:
            pair.client = pair.b.connect(pair.listener.address, secret=SECRET, shm=False)
            pair.server = pair.listener.accept(timeout=20)
        self.there = [bytearray(SIZE), bytearray(SIZE), pair.a.alloc(SIZE)]
        self.memories = [*map(pair.a.register, self.there[:2]), self.there[2]]
        self.remotes = pair.client.open_keys(pair.a.keys(self.memories))
        assert len(self.remotes) == MEMORIES

    def views(self):
        return [memoryview(memory).cast("B") for memory in self.there]


@pytest.fixture(params=["shm", "tcp"])
def lists(pair, request):
    return Lists(pair, shm=request.param == "shm")


def table(rows, columns=4):
    """Make an array of blocks without NumPy."""
    items = array.array("q", [item for row in rows for item in row])
    return memoryview(items).cast("B").cast("q", (len(rows), columns))


def random_blocks(rng, n):
    """Blocks that overlap on neither side: (local offset, bytes, remote offset, index)."""
    blocks = []
    for index in range(MEMORIES):
        for slot in rng.sample(range(SIZE // 500), n):
            size = rng.choice([0, 1, 7, 64, 499, 500])
            blocks.append((slot * 500, size, (SIZE // 500 - 1 - slot) * 500 + rng.randint(0, 500 - size), index))
    rng.shuffle(blocks)
    return blocks


def tuples(blocks, local, remotes, rng):
    """The same blocks as tuples, with and without bytes."""
    for at, size, offset, index in blocks:
        view = memoryview(local[index])
        if rng.random() < 0.5:
            yield view[at:at + size], remotes[index], offset
        else:
            yield view[at:], remotes[index], offset, size


@pytest.mark.parametrize("form", ["tuples", "table", "prepared"])
def test_random_lists(lists, form):
    """Compare random writes and reads with a model."""
    rng = random.Random(len(form))
    team, server = lists.pair.client, lists.pair.server
    for round_ in range(12):
        writes = round_ % 2 == 0
        blocks = random_blocks(rng, rng.choice([1, 5, 40]))
        local = [bytearray(rng.randbytes(SIZE)) for _ in range(MEMORIES)]
        models = [[bytearray(view) for view in views] for views in (local, lists.views())]
        for at, size, offset, index in blocks:
            if writes:
                models[1][index][offset:offset + size] = local[index][at:at + size]
            else:
                models[0][index][at:at + size] = models[1][index][offset:offset + size]
        notice = (round_, rng.randbytes(rng.choice([0, 8, rank.NOTICE_MAX]))) if rng.random() < 0.7 else None
        if form == "tuples":
            call = team.write if writes else team.read
            call(list(tuples(blocks, local, lists.remotes, rng)), notice=notice, timeout=20)
        elif form == "table":
            call = team.iwrite if writes else team.iread
            call(table(blocks), notice, local, lists.remotes).wait(timeout=20)
        else:
            prepare = team.prepare_write if writes else team.prepare_read
            request = prepare(table(blocks), notice, local, lists.remotes)
            for _ in range(3):
                assert request.start().wait(timeout=20) is None and request.done
                if notice and _ < 2:
                    assert server.recv_bytes(tag=round_, timeout=20) == notice[1]
        assert not notice or server.recv_bytes(tag=round_, timeout=20) == notice[1]
        assert local == models[0]
        assert [bytes(view) for view in lists.views()] == models[1]


def test_table_of_one(lists):
    """Three columns need one local and one remote. A Memory is a local buffer."""
    mine = lists.pair.b.register(bytearray(b"0123456789" * 2))
    lists.pair.client.write(table([(3, 4, 100, ), (0, 2, 200)], 3), local=mine, remote=lists.remotes[0])
    assert lists.there[0][100:104] == b"3456" and lists.there[0][200:202] == b"01"
    lists.pair.client.read(table([(0, 2, 100, 0)]), local=mine, remote=lists.remotes)
    assert bytes(mine)[:4] == b"3423"


def test_numpy_table(lists):
    numpy = pytest.importorskip("numpy")
    data = numpy.arange(100, dtype="f8")
    blocks = numpy.array([[80 * i, 80, 800 - 80 * i] for i in range(10)])
    for kind in (blocks, Tensor(blocks)):
        lists.there[1][:] = bytes(SIZE)
        lists.pair.client.write(kind, local=data, remote=lists.remotes[1])
        there = numpy.frombuffer(lists.there[1], "f8", 100, 80)
        assert (there == data.reshape(10, 10)[::-1].ravel()).all()
        del there
    for wrong, error in ((blocks.astype("i4"), TypeError), (blocks.astype("f8"), TypeError), (blocks.ravel(), ValueError),
                         (numpy.asfortranarray(blocks), ValueError), (blocks[:, :2].copy(), ValueError), (blocks[:, ::2], BufferError),
                         (blocks.astype(">i8"), TypeError), (Tensor(blocks, (2, 0)), BufferError), (Tensor(blocks.astype("u8")), TypeError)):
        with pytest.raises(error):
            lists.pair.client.write(wrong, local=data, remote=lists.remotes[1])


def test_notice_alone(lists):
    lists.pair.client.write([], notice=5)
    assert lists.pair.server.recv(bytearray(1), tag=5, timeout=20).bytes == 0


def test_wrong_lists(lists):
    """Nothing moves if one block is wrong."""
    team, remotes = lists.pair.client, lists.remotes
    good, data = (b"x" * 10, remotes[0], 0), b"y" * 10
    wrong = {
        TypeError: [5, None, "text", [5], [(data, remotes[0])], [(data, "remote", 0)], [("text", remotes[0], 0)], [[data, remotes[0], 0]],
                    [(data, remotes[0], "0")], [(data, remotes[0], 0.0)], [(data, remotes[0], 0, None)], [(data, remotes[0], 0, 1, 2)],
                    [(data, lists.memories[0], 0)]],
        BufferError: [[(memoryview(bytearray(8))[::2], remotes[0], 0)]],
        rank.BoundsError: [[(data, remotes[0], 0, 11)], [(data, remotes[0], 0, -1)], [(data, remotes[0], SIZE - 9)], [(data, remotes[0], -1)],
                           [(data, remotes[0], 1 << 70)]],
    }
    for error, cases in wrong.items():
        for case in cases:
            blocks = [good, *case] if isinstance(case, list) else case
            with pytest.raises(error, match="block 1|write" if isinstance(case, list) else "write"):
                team.write(blocks, notice=1)
    for blocks, options, error in (
        (table([(0, 1, 0)], 3), {"local": data}, TypeError),
        (table([(0, 1, 0)], 3), {"remote": remotes[0]}, TypeError),
        (table([(0, 1, 0)], 3), {"local": data, "remote": remotes}, ValueError),
        (table([(0, 1, 0)], 3), {"local": data, "remote": 5}, TypeError),
        (table([(0, 1, 0, 3)]), {"local": data, "remote": remotes}, rank.ArgError),
        (table([(0, 1, 0, -1)]), {"local": data, "remote": remotes}, rank.ArgError),
        (table([(0, 11, 0)], 3), {"local": data, "remote": remotes[0]}, rank.BoundsError),
        (table([(-1, 1, 0)], 3), {"local": data, "remote": remotes[0]}, rank.BoundsError),
        (table([(1 << 62, 1 << 62, 0)], 3), {"local": data, "remote": remotes[0]}, rank.BoundsError),
        (b"bytes", {"local": data, "remote": remotes[0]}, ValueError),
        ([good], {"local": data}, TypeError),
    ):
        with pytest.raises(error, match="write"):
            team.write(blocks, notice=1, **options)
    for notice, error in (("1", TypeError), ((1, "x"), TypeError), ((1, b"", 2), TypeError), ((1, bytes(rank.NOTICE_MAX + 1)), ValueError),
                          (-1, rank.TagError)):
        with pytest.raises(error):
            team.write([good], notice=notice)
    with pytest.raises(ZeroDivisionError):
        team.write((data, remotes[0], 1 // i) for i in (1, 0))
    with pytest.raises(BufferError, match="writable"):
        team.read([good])
    with pytest.raises(BufferError, match="GPU|CPU"):
        team.write([good, (Tensor(None, (2, 0)), remotes[0], 0)])
    with pytest.raises(rank.StateError, match="prepare"):
        team.iwrite([good]).start()
    remotes[1].close()
    with pytest.raises(rank.HandleError, match="closed"):
        team.write([(data, remotes[0], 100), (data, remotes[1], 0)])
    assert lists.there[0][100:110] == bytes(10)
    assert lists.pair.server.probe(tag=1) is None


def test_peers_of_a_list(lists):
    """Memory of one connection is not memory of another one."""
    other = lists.pair.b.connect(lists.pair.listener.address, secret=SECRET)
    lists.pair.listener.accept(timeout=20)
    mine = lists.pair.client.open_keys(lists.pair.a.keys(lists.memories[:1]))
    with pytest.raises(rank.Error):
        lists.pair.server.write([(b"x", mine[0], 0)])
    other.disconnect()


def test_access(pair):
    memories = [pair.a.register(b"constant", rank.ACCESS_READ), pair.a.register(bytearray(8), rank.ACCESS_READ),
                pair.a.register(bytearray(8), rank.ACCESS_WRITE)]
    constant, readable, writable = pair.client.open_keys(pair.a.keys(memories))
    back = bytearray(8)
    pair.client.read([(back, constant, 0)])
    assert back == b"constant"
    for remote, call in ((constant, pair.client.write), (readable, pair.client.write), (writable, pair.client.read)):
        with pytest.raises(rank.ArgError):
            call([(back, remote, 0)])
    for wrong in (0, 4, -1, 1 << 40):
        with pytest.raises(rank.ArgError):
            pair.a.register(bytearray(8), wrong)


def test_alloc(pair):
    """Views of the memory stay valid when it is closed, and the context, too."""
    memory = pair.a.alloc(10000)
    view = memoryview(memory)
    remote = pair.client.open(memory.pack())
    remote.put(b"put", offset=9997)
    remote.flush()
    assert bytes(view[9996:]) == b"\0put" and len(memory) == 10000
    remote.close()
    memory.close(timeout=20)
    with pytest.raises(BufferError):
        memoryview(memory)
    with pytest.raises(rank.HandleError):
        pair.a.keys([memory])
    for wrong in (0, -1):
        with pytest.raises(rank.ArgError):
            pair.a.alloc(wrong)
    with rank.Context() as context:
        kept = memoryview(context.alloc(100))
        kept[0] = 7
    assert kept[0] == 7 and view[9997] == ord("p")


def test_keys(pair):
    memories = [pair.a.register(bytearray(8)) for _ in range(300)]
    keys = pair.a.keys(memories)
    remotes = pair.client.open_keys(keys)
    for i, remote in enumerate(remotes):
        remote.put(bytes([i % 256]) * 8)
    pair.client.write([(bytes([i % 256]), remote, 3) for i, remote in enumerate(reversed(remotes))])
    remotes[0].flush()
    assert pair.client.open_keys(pair.a.keys([])) == []
    for wrong in (b"", keys[:-1], keys[1:], b"x" * 1000, bytes(1000)):
        with pytest.raises(rank.HandleError):
            pair.client.open_keys(wrong)
    for wrong in ([bytearray(8)], [None], 5):
        with pytest.raises(TypeError):
            pair.a.keys(wrong)
    with pytest.raises(rank.Error):
        pair.b.keys(memories[:1]) and pair.server.open_keys(pair.b.keys(memories[:1]))


def test_tensor_memory(pair):
    """A registered tensor has the buffer protocol, too."""
    numpy = pytest.importorskip("numpy")
    data = numpy.zeros(4, "i8")
    with pair.a.register(Tensor(data)) as memory:
        view = memoryview(memory)
        pair.client.open(memory.pack()).add(5, offset=8)
    del memory
    assert data[1] == 5 and bytes(view[8:9]) == b"\5"


def test_buffers_of_a_list(lists):
    """Buffers and remotes stay until the request ends, and no longer."""
    data = [bytearray(1000000) for _ in range(3)]
    there = lists.pair.a.register(bytearray(3000000))
    remote = lists.pair.client.open(there.pack())
    before = [sys.getrefcount(remote), *map(sys.getrefcount, data)]
    request = lists.pair.client.iwrite([(buffer, remote, i * 1000000) for i, buffer in enumerate(data)])
    request.wait(timeout=20)
    prepared = lists.pair.client.prepare_write([(buffer, remote, 0) for buffer in data])
    with pytest.raises(BufferError):
        data[2].append(1)
    prepared.start().wait(timeout=20)
    with pytest.raises(BufferError):
        data[2].append(1)
    prepared.start()
    with pytest.raises(rank.StateError):
        prepared.start()
    prepared.wait(timeout=20)
    del prepared
    lists.pair.client.probe()
    data[2].append(1)
    after = [sys.getrefcount(remote), *map(sys.getrefcount, data)]
    assert before == after


def test_await(lists):
    async def run():
        back = bytearray(SIZE)
        request = lists.pair.client.prepare_read([(back, lists.remotes[0], 0)], notice=(3, b"done"))
        for i in range(5):
            lists.there[0][:] = bytes([i]) * SIZE
            await request.start()
            assert back == lists.there[0]
            assert lists.pair.server.recv_bytes(tag=3, timeout=20) == b"done"

    asyncio.run(run())
