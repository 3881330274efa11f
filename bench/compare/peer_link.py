# SPDX-License-Identifier: BSD-3-Clause
"""peer_link: run cases of a comparison in two processes, and check the data.

The programs *_peer.py are started twice:

    PROGRAM listen HOST:PORT            the target: has the memory, and answers
    PROGRAM connect HOST:PORT [alloc] [prepared] CASE...
                                        the initiator: prints "CASE MICROSECONDS WRONG" for each

A case is OP:BYTES:BLOCKS[:SECONDS]. OP is write or read (a list of blocks, complete when visible), ping (there and back),
keys (BLOCKS memories of BYTES registered, packed and opened), or connect (a new connection until its first byte is back).
The figure is the median. conn_peer.c runs the same cases in the same way.

Blocks are together at the initiator. At the target, block i lies at place i * STEP % BLOCKS, with a gap of its size behind it.
Each iteration writes other data before and checks all of it after, outside the timed part. Both is done by memset and memcmp
with a row as conn_peer.c has it: temporary arrays would leave other data in the caches than those calls do.
"""
import ctypes, socket, statistics, struct, sys, time

import numpy

STEP = 7919  # prime: the places are a permutation
GAP = 0x5A
BATCH = 50  # pings in a sample
FEWEST = 7  # samples; the first two do not count


libc = ctypes.CDLL(None)
libc.memset.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
libc.memcmp.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
now = time.perf_counter


class Case:
    def __init__(self, text):
        words = text.split(':')
        self.text, self.op = text, words[0]
        self.bytes, self.blocks = int(words[1]), int(words[2])
        self.seconds = float(words[3]) if len(words) > 3 else 0.3
        self.place = numpy.arange(self.blocks, dtype=numpy.int64) * STEP % self.blocks

    def local_bytes(self):
        return self.bytes * self.blocks

    def remote_bytes(self):
        return 2 * self.bytes * self.blocks

    def value(self, turn, i):
        return (turn + i) % 251


class Link:
    """A socket for what is not measured."""

    def __init__(self, role, address):
        host, port = address.rsplit(':', 1)
        if role == 'listen':
            with socket.create_server((host, int(port))) as server:
                self.sock = server.accept()[0]
        else:
            for _ in range(600):
                try:
                    self.sock = socket.create_connection((host, int(port)))
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            else:
                sys.exit('%s: nothing listens' % address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile('rb')
        self.host = host

    def put(self, data):
        self.sock.sendall(struct.pack('<q', len(data)) + data)

    def get(self):
        head = self.file.read(8)
        if len(head) < 8:
            sys.exit('the other side has ended')
        return self.file.read(struct.unpack('<q', head)[0])


class Peer:
    """A library. Subclasses have open, prepare, ping_round and echo_round, and what else they can do."""

    def __init__(self, link, first, local, target, words):
        self.link, self.first, self.local, self.target = link, first, local, target
        self.alloc, self.prepared = 'alloc' in words, 'prepared' in words

    # Words between the sides during a case. A library sends them itself, so that it makes progress.
    def put_word(self, word):
        self.link.put(struct.pack('<q', word))

    def get_word(self):
        return struct.unpack('<q', self.link.get())[0]


def samples(seconds, one):
    """Times of one(turn) until the seconds are over."""
    times, end = [], now() + seconds
    while len(times) < FEWEST or now() < end:
        times.append(one(len(times) + 1))
    return times[2:]


def differs(peer, address, value, size):
    libc.memset(peer.row, value, size)
    return int(libc.memcmp(address, peer.row, size) != 0)


def move_first(peer, case):
    """The initiator of a list: times, and wrong blocks."""
    base, size, blocks = peer.local.ctypes.data, case.bytes, range(case.blocks)
    act = peer.prepare(case)
    wrong = [0]

    def one(turn):
        if case.op == 'write':
            for i in blocks:
                libc.memset(base + i * size, case.value(turn, i), size)
        else:
            libc.memset(base, GAP, case.local_bytes())
            peer.put_word(turn)
            peer.get_word()
        t = now()
        act()
        t = now() - t
        if case.op == 'write':
            peer.put_word(turn)
            wrong[0] += peer.get_word()
        else:
            wrong[0] += sum(differs(peer, base + i * size, case.value(turn, i), size) for i in blocks)
        return t

    times = samples(case.seconds, one)
    peer.put_word(0)
    return times, wrong[0]


def move_second(peer, case):
    """The target of a list: fill or check at each word, until it is 0."""
    base, size = peer.target.ctypes.data, case.bytes
    starts = [base + 2 * size * int(place) for place in case.place]
    libc.memset(base, GAP, case.remote_bytes())
    peer.put_word(0)
    while turn := peer.get_word():
        wrong = 0
        for i, start in enumerate(starts):
            if case.op == 'read':
                libc.memset(start, case.value(turn, i), size)
            else:
                wrong += differs(peer, start, case.value(turn, i), size) + differs(peer, start + size, GAP, size)
        peer.put_word(wrong)


def ping_first(peer, case):
    messages = [bytes([k]) * case.bytes for k in range(BATCH)]
    wrong = [0]

    def one(turn):
        peer.put_word(turn)
        t = now()
        wrong[0] += peer.ping_round(messages)
        return (now() - t) / BATCH

    times = samples(case.seconds, one)
    peer.put_word(0)
    return times, wrong[0]


def run_first(peer, case):
    if case.op == 'ping':
        return ping_first(peer, case)
    if case.op in ('write', 'read'):
        peer.get_word()
        return move_first(peer, case)
    times, wrong = [], 0
    for _ in range(FEWEST):
        t, bad = getattr(peer, case.op + '_first')(case)
        times.append(t)
        wrong += bad
    return times[2:], wrong


def run_second(peer, case):
    if case.op == 'ping':
        while peer.get_word():
            peer.echo_round(BATCH, case.bytes)
    elif case.op in ('write', 'read'):
        move_second(peer, case)
    else:
        for _ in range(FEWEST):
            getattr(peer, case.op + '_second')(case)


def run_cases(peer, cases):
    for case in cases:
        if not peer.first:
            run_second(peer, case)
            continue
        times, wrong = run_first(peer, case)
        print(case.text, '%.3f' % (statistics.median(times) * 1e6), wrong, flush=True)


def memory(bytes_):
    """Pages of the process's own, touched."""
    array = numpy.empty(max(bytes_, 4096) + 4096, dtype=numpy.uint8)
    start = -array.ctypes.data % 4096
    array[:] = 0
    return array[start:start + max(bytes_, 4096)]


def main(kind):
    """kind(link, first, local, target, words) makes the peer; the cases come from the initiator, and words before them."""
    if len(sys.argv) < 3 or sys.argv[1] not in ('listen', 'connect'):
        sys.exit(__doc__)
    first = sys.argv[1] == 'connect'
    link = Link(sys.argv[1], sys.argv[2])
    if first:
        texts = sys.argv[3:]
        link.put(' '.join(texts).encode())
    else:
        texts = link.get().decode().split()
    words = [t for t in texts if ':' not in t]
    cases = [Case(t) for t in texts[len(words):]]
    moves = [c for c in cases if c.op in ('write', 'read')]
    local = memory(max((c.local_bytes() for c in moves), default=0))
    target = memory(max((c.remote_bytes() for c in moves), default=0))
    peer = kind(link, first, local, target, words)
    row = memory(local.nbytes)
    peer.row = row.ctypes.data
    run_cases(peer, cases)
    link.put(b'end')
    link.get()
    return peer
