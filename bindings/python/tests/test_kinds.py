# SPDX-License-Identifier: BSD-3-Clause
"""Move and sum each kind of array with items of each type; refuse others."""

import array
import ctypes
import mmap

import pytest

import rank
from conftest import Pair
from test_arguments import Tensor

try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = pytest.mark.skipif(numpy is None, reason="no numpy")

# Format letter: type of ctypes. NumPy has the same letters for these.
TYPES = {"b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "q": ctypes.c_int64, "B": ctypes.c_uint8, "H": ctypes.c_uint16,
         "I": ctypes.c_uint32, "Q": ctypes.c_uint64, "l": ctypes.c_long, "L": ctypes.c_ulong, "f": ctypes.c_float, "d": ctypes.c_double}
VALUES = [1, 2, 3, 40, 5, 6]


def of_bytes(letter):
    return memoryview(bytearray(array.array(letter, VALUES).tobytes())).cast(letter)


def of_mmap(letter):
    raw = array.array(letter, VALUES).tobytes()
    pages = mmap.mmap(-1, len(raw))
    pages[:] = raw
    return memoryview(pages).cast(letter)


def of_rows(letter):
    return memoryview(bytearray(array.array(letter, VALUES).tobytes())).cast(letter, (2, 3))


def of_slice(letter):
    return memoryview(array.array(letter, [9, *VALUES, 9]))[1:-1]


KINDS = {
    "array": lambda letter: array.array(letter, VALUES),
    "bytearray": of_bytes,
    "mmap": of_mmap,
    "rows": of_rows,
    "slice": of_slice,
    "ctypes": lambda letter: (TYPES[letter] * len(VALUES))(*VALUES),
    "numpy": lambda letter: numpy.array(VALUES, letter),
    "numpy_slice": lambda letter: numpy.array([9, *VALUES, 9], letter)[1:-1],
    "numpy_rows": lambda letter: numpy.array(VALUES, letter).reshape(3, 2),
    "numpy_fortran": lambda letter: numpy.asfortranarray(numpy.array(VALUES, letter).reshape(3, 2)),
    "dlpack": lambda letter: Tensor(numpy.array(VALUES, letter)),
    "dlpack_slice": lambda letter: Tensor(numpy.array([9, *VALUES], letter)[1:]),
}
PARAMETERS = [pytest.param(kind, marks=needs_numpy if kind.startswith(("numpy", "dlpack")) else ()) for kind in KINDS]


def values(kind):
    """Get the items in the order of memory."""
    view = memoryview(kind.array if isinstance(kind, Tensor) else kind)
    raw = view.tobytes(order="A")
    return memoryview(raw).cast(view.format.lstrip("<")).tolist()


@pytest.fixture(scope="module")
def joined():
    pair = Pair()
    yield pair
    pair.close()


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("kind", PARAMETERS)
def test_kind_of_type(joined, kind, letter):
    arrays = [KINDS[kind](letter) for _ in range(2)]
    before = values(arrays[0])
    sums = [team.iallreduce(arrays[team.rank]) for team in (joined.client, joined.server)]
    for request in sums:
        request.wait(timeout=20)
    twice = [2 * value for value in before]
    assert values(arrays[0]) == values(arrays[1]) == twice
    target = KINDS[kind](letter)
    send = joined.client.isend(arrays[0])
    assert joined.server.recv(target, timeout=20).bytes == len(VALUES) * ctypes.sizeof(TYPES[letter])
    send.wait(timeout=20)
    assert values(target) == twice
    with joined.a.register(target) as memory, joined.client.open(memory.pack()) as remote:
        back = KINDS[kind](letter)
        joined.client.read([(back, remote, 0)], timeout=20)
        assert values(back) == twice
        joined.client.write([(KINDS[kind](letter), remote, 0)], timeout=20)
        assert values(target) == before


class OfGpu:
    """An array of numba or cupy, without DLPack."""

    __cuda_array_interface__ = {"version": 3}


def refused():
    """Yield (what, array, exception, part of its text)."""
    yield "text", "text", TypeError, "buffer protocol"
    yield "list", [1, 2], TypeError, "buffer protocol"
    yield "None", None, TypeError, "buffer protocol"
    yield "steps", memoryview(bytearray(8))[::2], BufferError, "contiguous"
    yield "backwards", memoryview(bytearray(8))[::-1], BufferError, "contiguous"
    yield "cuda interface", OfGpu(), BufferError, "GPU"
    for device in (2, 3, 4, 10, 13):
        yield f"dlpack device {device}", Tensor(None, (device, 0)), BufferError, "CPU"
    if numpy:
        yield "column", numpy.zeros((4, 4))[:, 1], BufferError, "contiguous"
        yield "backwards numpy", numpy.zeros(4)[::-1], BufferError, "contiguous"
        yield "dlpack column", Tensor(numpy.zeros((4, 4))[:, 1]), BufferError, "contiguous"
        yield "objects", numpy.array([None, "text"]), TypeError, "objects"
        yield "objects in fields", numpy.zeros(2, [("Offset", "f8"), ("x", "O")]), TypeError, "objects"


REFUSED = list(refused())


@pytest.mark.parametrize("case", REFUSED, ids=[case[0].replace(" ", "_") for case in REFUSED])
def test_refused_in_each_call(joined, case):
    _, kind, error, text = case
    memory = joined.a.register(bytearray(64))
    remote = joined.client.open(memory.pack())
    calls = (joined.client.send, joined.client.isend, joined.client.recv, joined.client.irecv, joined.client.allreduce, joined.client.bcast,
             joined.a.register, remote.put, remote.get, lambda buffer: joined.client.write([(buffer, remote, 0)]),
             lambda buffer: joined.client.read([(buffer, remote, 0)]))
    for call in calls:
        with pytest.raises(error, match=text):
            call(kind)


@pytest.mark.parametrize("kind", ["bytes", pytest.param("numpy", marks=needs_numpy)])
def test_read_only(joined, kind):
    constant = b"12345678"
    if kind == "numpy":
        constant = numpy.frombuffer(constant, "i8")
    memory = joined.a.register(bytearray(8))
    remote = joined.client.open(memory.pack())
    for call in (joined.client.recv, joined.client.irecv, joined.client.allreduce, joined.a.register, remote.get,
                 lambda buffer: joined.client.read([(buffer, remote, 0)])):
        with pytest.raises(BufferError, match="writable"):
            call(constant)
    remote.put(constant)
    joined.client.write([(constant, remote, 0)])
    if kind == "numpy":
        remote.put(numpy.zeros(1, [("Offset", "f8")]))
    joined.a.register(constant, rank.ACCESS_READ).close()
