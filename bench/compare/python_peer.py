# SPDX-License-Identifier: BSD-3-Clause
"""python_peer: run the cases of peer_link by the Python binding of librank.

With the word alloc before the cases, the target is memory of Context.alloc, else of the process's own. With the word prepared
a list is prepared once and started each time.
"""
import functools

import numpy
import rank

import peer_link


class PythonPeer(peer_link.Peer):
    def __init__(self, *args):
        super().__init__(*args)
        self.context = rank.Context('python_peer')
        if self.first:
            self.connection = self.context.connect(self.link.get().decode())
        else:
            host = self.link.sock.getsockname()[0]
            listener = self.context.listen(host + ':0', open=True)
            self.link.put(listener.address.encode())
            self.connection = listener.accept()
        self.word = bytearray(8)
        if self.first:
            self.remote = self.connection.open(self.connection.recv_bytes())
        else:
            self.memory = self.share()
            self.connection.send(self.memory.pack())

    def share(self):
        if not self.alloc:
            return self.context.register(self.target)
        memory = self.context.alloc(self.target.nbytes)
        self.target = numpy.frombuffer(memory, dtype=numpy.uint8)
        return memory

    def put_word(self, word):
        self.connection.send(word.to_bytes(8, 'little'), tag=1)

    def get_word(self):
        self.connection.recv(self.word, tag=1)
        return int.from_bytes(self.word, 'little')

    def prepare(self, case):
        link = self.connection
        move = link.write if case.op == 'write' else link.read
        prepare = link.prepare_write if case.op == 'write' else link.prepare_read
        local, remote = self.local, self.remote
        blocks = numpy.empty((case.blocks, 3), dtype=numpy.int64)
        blocks[:, 0] = numpy.arange(case.blocks) * case.bytes
        blocks[:, 1] = case.bytes
        blocks[:, 2] = case.place * (2 * case.bytes)
        if self.prepared:
            request = prepare(blocks, local=local, remote=remote)
            return lambda: request.start().wait()
        if case.blocks == 1:  # as a program writes it
            return functools.partial(move, [(local, remote, 0, case.bytes)])
        return functools.partial(move, blocks, local=local, remote=remote)

    def ping_round(self, messages):
        wrong, back, send, recv = 0, bytearray(len(messages[0])), self.connection.send, self.connection.recv
        for message in messages:
            send(message)
            recv(back, tag=0)
            wrong += back != message
        return wrong

    def echo_round(self, n, size):
        message, send, recv = bytearray(size), self.connection.send, self.connection.recv
        for _ in range(n):
            recv(message, tag=0)
            send(message)


peer = peer_link.main(PythonPeer)
peer.connection.disconnect()
peer.context.close()
