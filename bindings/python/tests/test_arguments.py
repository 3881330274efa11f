# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of buffers, types of items, wrong arguments, exceptions."""

import array
import ctypes
import mmap
import os
import pathlib
import re
import sys
import threading

import pytest

import rank
from conftest import SECRET


def kinds():
    yield bytearray(b"\1\2\3\4\5\6\7\0")
    yield memoryview(bytearray(range(16)))[4:12]
    yield array.array("i", [1, -2])
    yield (ctypes.c_uint16 * 4)(1, 2, 3, 4)
    memory = mmap.mmap(-1, 4096)
    memory[:3] = b"map"
    yield memory


@pytest.mark.parametrize("source", kinds(), ids=lambda kind: type(kind).__name__)
def test_kinds(pair, source):
    size = memoryview(source).nbytes
    send = pair.client.isend(source)
    copy = bytearray(size)
    assert pair.server.recv(copy, timeout=5).bytes == size
    send.wait(timeout=5)
    assert copy == memoryview(source).tobytes()
    send = pair.server.isend(bytes(size))
    pair.client.recv(source, timeout=5)
    send.wait(timeout=5)
    assert memoryview(source).tobytes() == bytes(size)


def test_numpy_types(pair):
    numpy = pytest.importorskip("numpy")
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"):
        mine = [numpy.arange(5).astype(name), numpy.ones(5, name)]
        sums = [numpy.zeros(5, name), numpy.zeros(5, name)]
        requests = [team.iallreduce(mine[team.rank], sums[team.rank]) for team in (pair.client, pair.server)]
        for request in requests:
            request.wait(timeout=10)
        for total in sums:
            assert (total == mine[0] + mine[1]).all(), name
    fortran = numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))
    send = pair.client.isend(fortran)
    copy = numpy.empty_like(fortran)
    pair.server.recv(copy, timeout=5)
    send.wait(timeout=5)
    assert (copy == fortran).all()
    for wrong in (numpy.zeros((4, 4))[:, 1], numpy.zeros(8)[::2]):
        with pytest.raises(BufferError, match="contiguous"):
            pair.client.send(wrong)
    wrong = numpy.zeros(4)
    wrong.flags.writeable = False
    with pytest.raises(BufferError, match="writable"):
        pair.client.irecv(wrong)
    with pytest.raises(TypeError, match="byte order"):
        pair.client.allreduce(numpy.zeros(4, ">f8"))
    with pytest.raises(TypeError, match="no datatype"):
        pair.client.allreduce(numpy.zeros(4, "S3"))


class Tensor:
    """An array that has DLPack only, as torch.Tensor."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device


def test_dlpack(pair):
    numpy = pytest.importorskip("numpy")
    data = [numpy.arange(6, dtype="f4").reshape(2, 3), numpy.ones((2, 3), "f4")]
    references = sys.getrefcount(data[0])
    for _ in range(3):
        requests = [team.iallreduce(Tensor(data[team.rank])) for team in (pair.client, pair.server)]
        for request in requests:
            request.wait(timeout=10)
        del requests, request
    after = sys.getrefcount(data[0])
    assert after == references
    assert (data[0] == data[1]).all() and data[0][1, 2] == 24
    pair.client.send(Tensor(data[0]))
    assert pair.server.recv(Tensor(data[1]), timeout=5).bytes == 24
    with pytest.raises(BufferError, match="contiguous"):
        pair.client.send(Tensor(numpy.zeros((4, 4))[:, 1]))
    with pytest.raises(BufferError, match="CPU"):
        pair.client.send(Tensor(data[0], (2, 0)))


def test_exporter_that_closes(pair):
    """The code of a buffer may close the objects that the call uses."""
    numpy = pytest.importorskip("numpy")

    class Closing(Tensor):
        def __dlpack__(self):
            self.close()
            return super().__dlpack__()

    tensor = Closing(numpy.zeros(4, "f4"))
    memory = pair.b.register(bytearray(16))
    remote = pair.server.open(memory.pack())
    for tensor.close, call in ((remote.close, remote.put), (pair.server.disconnect, pair.server.allreduce),
                               (pair.a.close, lambda buffer: pair.a.listen("127.0.0.1:0", secret=buffer))):
        with pytest.raises(rank.Error, match="closed|disconnected"):
            call(tensor)


def test_wrong_buffers(pair):
    with pytest.raises(BufferError, match="writable"):
        pair.client.recv(b"constant")
    with pytest.raises(BufferError, match="writable"):
        pair.a.register(b"constant")
    for wrong in ("text", 3, None, [1, 2]):
        with pytest.raises(TypeError, match="buffer protocol"):
            pair.client.send(wrong)
    with pytest.raises(BufferError, match="contiguous"):
        pair.client.send(memoryview(bytearray(8))[::2])
    with pytest.raises(TypeError, match="must be equal"):
        pair.client.allreduce(array.array("d", [1]), array.array("d", [1, 2]))
    with pytest.raises(TypeError, match="buffer protocol"):
        pair.client.reduce_scatter(array.array("d", [1, 2]), None)
    with pytest.raises(ValueError, match="needs 2 times"):
        pair.client.allgather(b"1", bytearray(3))
    for call in (lambda: pair.client.gather(b"1", bytearray(3)), lambda: pair.client.scatter(b"123", bytearray(1)),
                 lambda: pair.client.alltoall(b"123", bytearray(3)), lambda: pair.client.alltoall(b"12", bytearray(4))):
        with pytest.raises(ValueError, match="needs 2 times|multiple of 2"):
            call()
    with pytest.raises(TypeError, match="recvbuf"):
        pair.client.gather(b"1")
    with pytest.raises(TypeError, match="sendbuf"):
        pair.client.scatter(None, bytearray(1))
    with pytest.raises(BufferError, match="writable"):
        pair.client.reduce(b"1")


def test_wrong_arguments(pair):
    team = pair.client
    for call in (lambda: team.send(), lambda: team.send(b"", tagg=1), lambda: team.send(b"", 1, 2, 3, 4),
                 lambda: team.send(b"", 1, peer=1), lambda: team.send(b"", tag="x"), lambda: rank.Request(),
                 lambda: pair.a.connect(7)):
        with pytest.raises(TypeError):
            call()
    for call in (lambda: team.recv(bytearray(1), timeout=-1), lambda: team.recv(bytearray(1), timeout=float("nan"))):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(rank.TagError):
        team.send(b"", tag=-1)
    for peer in (7, 1 << 40):
        with pytest.raises(rank.RankError):
            team.send(b"", peer=peer)
    with pytest.raises(rank.OpError):
        team.allreduce(array.array("d", [1]), op=12345)
    with pytest.raises(rank.ArgError):
        pair.a.connect("127.0.0.1:1", secret=b"short")


def test_names_of_python(pair):
    """Reasons have the names of this module, not those of the structs of C."""
    for call, text in ((lambda: pair.a.listen("0.0.0.0:0"), "secret=, or open=True"),
                       (lambda: pair.a.listen("127.0.0.1:0", hello=bytes(2000)), "hello has 2000 bytes"),
                       (lambda: pair.a.listen("127.0.0.1:0", backlog=-1), "backlog"),
                       (lambda: pair.b.connect(pair.listener.address), "set secret="),
                       (lambda: pair.b.connect("127.0.0.1:0", secret=SECRET), "that of Listener.address"),
                       (lambda: pair.a.register(bytearray(1), access=0), "give ACCESS_READ"),
                       (lambda: pair.client.open(b"no key"), r"pack\(\)"),
                       (lambda: pair.client.scan(array.array("d", [1]), op=rank.AVG), "AVG has no prefixes; use SUM")):
        with pytest.raises(rank.Error, match=text) as caught:
            call()
        assert not re.search(r"RANK_(?!ERR_|SECRET_FILE)|rank_[a-z]|opts|NULL", str(caught.value)), caught.value


def test_orders(pair):
    """Of a collective both buffers are in one order: the items would go to other places."""
    numpy = pytest.importorskip("numpy")
    rows, columns = numpy.arange(6.0).reshape(2, 3), numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))
    many = numpy.zeros((2, 2, 3))
    for call in (lambda: pair.client.allreduce(columns, rows), lambda: pair.client.allreduce(rows.T, numpy.zeros((3, 2))),
                 lambda: pair.client.iscan(rows, columns), lambda: pair.client.reduce(columns, rows, root=pair.client.rank),
                 lambda: pair.client.allgather(columns, many), lambda: pair.client.gather(columns, many, root=pair.client.rank),
                 lambda: pair.client.scatter(many, columns, root=pair.client.rank), lambda: pair.client.alltoall(rows, columns),
                 lambda: pair.client.reduce_scatter(many, columns), lambda: pair.client.allgatherv(columns, many, [6, 6])):
        with pytest.raises(BufferError, match="C order"):
            call()
    total = numpy.zeros_like(columns)
    requests = [team.iallreduce(columns, out) for team, out in ((pair.client, total), (pair.server, numpy.zeros_like(columns)))]
    for request in requests:
        request.wait(timeout=10)
    assert (total == 2 * columns).all()


def test_exceptions():
    assert issubclass(rank.TimedOutError, TimeoutError) and issubclass(rank.ClosedError, ConnectionError)
    statuses = {kind.status for kind in vars(rank).values() if isinstance(kind, type) and issubclass(kind, rank.Error)}
    assert statuses == set(range(min(statuses), 1))
    with pytest.raises(rank.StateError) as caught:
        rank.world()
    assert caught.value.status == -2


def test_stubs_list_all():
    stub = (pathlib.Path(rank.__file__).parent / "_rank.pyi").read_text()
    names = set(re.findall(r"^(?:class|def) (\w+)|^(\w+): ", stub, re.M))
    stubbed = {a or b for a, b in names}
    assert {name for name in dir(rank._rank) if name[0] != "_"} == {name for name in stubbed if name[0] != "_"}
    for kind in ("Context", "Listener", "Team", "Connection", "Memory", "Remote", "Request", "Message", "SymmetricMemory"):
        body = re.search(rf"^class {kind}\b.*?(?=^\S|\Z)", stub, re.M | re.S).group()
        for member in vars(getattr(rank, kind)):
            assert member.startswith("__") or re.search(rf"\b{member}\b", body), f"{kind}.{member}"


def finalize(errors):
    try:
        rank.finalize()
    except (rank.StateError, rank.ClosedError) as error:
        errors.append(error)


@pytest.mark.skipif("PMIX_RANK" in os.environ, reason="under a launcher")
def test_finalize_in_threads():
    for _ in range(20):
        errors = []
        rank.init()
        threads = [threading.Thread(target=finalize, args=(errors,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(errors) == 3


@pytest.mark.skipif("PMIX_RANK" in os.environ, reason="under a launcher")
def test_world_of_one():
    rank.init()
    world = rank.world()
    assert (world.rank, world.size) == (0, 1)
    request = world.irecv(bytearray(2))
    world.send(b"me", peer=0)
    assert request.wait(timeout=5).bytes == 2
    with pytest.raises(TypeError, match="peer"):
        world.send(b"me")
    rank.finalize()
    with pytest.raises(rank.ClosedError):
        world.send(b"me", peer=0)
    with pytest.raises(rank.StateError):
        rank.finalize()
