# SPDX-License-Identifier: BSD-3-Clause
"""Sum a number of each rank, and pass a message round, under a launcher."""

import array

import rank

rank.init()
world = rank.world()
number = array.array("q", [world.rank + 1])
world.allreduce(number)
turn = bytearray(4)
receive = world.irecv(turn, tag=1)
world.send(b"turn", peer=(world.rank + 1) % world.size, tag=1)
assert receive.wait(timeout=20).source == (world.rank - 1) % world.size and turn == b"turn"
print(f"sum of {world.size}: {number[0]}")
rank.finalize()
