# SPDX-License-Identifier: BSD-3-Clause
"""mpi_peer: run the pings of peer_link by mpi4py, on two ranks that mpirun starts.

    mpirun -n 2 python3 mpi_peer.py CASE...
"""
import sys

from mpi4py import MPI

import peer_link

world = MPI.COMM_WORLD


class MpiPeer(peer_link.Peer):
    def __init__(self):
        super().__init__(None, world.rank == 0, None, None, ())
        self.word = bytearray(8)

    def put_word(self, word):
        world.Send(word.to_bytes(8, 'little'), 1 - world.rank, 1)

    def get_word(self):
        world.Recv(self.word, 1 - world.rank, 1)
        return int.from_bytes(self.word, 'little')

    def ping_round(self, messages):
        wrong, back, send, recv = 0, bytearray(len(messages[0])), world.Send, world.Recv
        for message in messages:
            send(message, 1, 0)
            recv(back, 1, 0)
            wrong += back != message
        return wrong

    def echo_round(self, n, size):
        message, send, recv = bytearray(size), world.Send, world.Recv
        for _ in range(n):
            recv(message, 0, 0)
            send(message, 0, 0)


if world.size != 2:
    sys.exit('mpi_peer: two ranks are needed')
peer_link.run_cases(MpiPeer(), [peer_link.Case(text) for text in sys.argv[1:]])
