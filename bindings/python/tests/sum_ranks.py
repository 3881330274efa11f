# SPDX-License-Identifier: BSD-3-Clause
"""Sum a number of each rank, and pass a message and a list round."""

import array

import rank

rank.init()
world = rank.world()
number = array.array("q", [world.rank + 1])
world.allreduce(number)
for root in range(world.size):
    total = array.array("d", [0])
    world.reduce(array.array("d", [world.rank + 1]), total if world.rank == root else None, root=root, timeout=20)
    assert total[0] == (number[0] if world.rank == root else 0)
    place = array.array("q", [world.rank, 0])
    world.reduce(place, op=rank.MAX, root=root, timeout=20)
    assert place[0] == (world.size - 1 if world.rank == root else world.rank)
    parts = bytearray(2 * world.size)
    world.gather(bytes([world.rank, root]), parts if world.rank == root else None, root=root, timeout=20)
    assert parts == (bytes(byte for r in range(world.size) for byte in (r, root)) if world.rank == root else bytes(len(parts)))
    part = bytearray(2)
    world.scatter(parts if world.rank == root else None, part, root=root, timeout=20)
    assert part == bytes([world.rank, root])
across = bytearray(2 * world.size)
world.ialltoall(bytes(byte for r in range(world.size) for byte in (world.rank, r)), across).wait(timeout=20)
assert across == bytes(byte for r in range(world.size) for byte in (r, world.rank))
turn = bytearray(4)
receive = world.irecv(turn, tag=1)
world.send(b"turn", peer=(world.rank + 1) % world.size, tag=1)
assert receive.wait(timeout=20).source == (world.rank - 1) % world.size and turn == b"turn"
place = bytearray(4)
memory = world.context.register(place)
left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
send = world.isend(world.context.keys([memory]), peer=left, tag=2)
remotes = world.open_keys(world.recv_bytes(peer=right, tag=2), peer=right)
world.write([(b"li", remotes[0], 0), (b"st", remotes[0], 2)], notice=3, peer=right, timeout=20)
world.recv(bytearray(1), peer=left, tag=3, timeout=20)
assert place == b"list"
send.wait(timeout=20)
remotes[0].close()
world.barrier(timeout=20)
memory.close(timeout=20)
print(f"sum of {world.size}: {number[0]}")
rank.finalize()
