# SPDX-License-Identifier: BSD-3-Clause
"""Compare all collectives with NumPy, at random.

Shapes, types, operations and teams are random. Arguments: rounds, seed.
"""

import random
import sys
import traceback

import numpy as np

import rank

DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
OPERATIONS = {rank.SUM: np.add, rank.PROD: np.multiply, rank.MIN: np.minimum, rank.MAX: np.maximum, np.subtract: np.subtract,
              (lambda a, b: a + 2 * b): (lambda a, b: a + 2 * b)}
FORMS = ["wait", "request"]


def numbers(team_rank, shape, dtype, order):
    """Small integers of a rank, which all types add and multiply without rounding."""
    part = np.random.default_rng([seed, team_rank]).integers(1, 3, shape)
    return np.asarray(part.astype(dtype), order=order)


def call(team, form, name, *args, **options):
    if form == "wait":
        getattr(team, name)(*args, timeout=60, **options)
    else:
        getattr(team, "i" + name)(*args, **options).wait(timeout=60)


def folded(function, parts):
    total = parts[0]
    for part in parts[1:]:
        total = function(total, part)
    return total


def check(name, result, wanted, *about):
    assert np.array_equal(result, wanted), f"{name} of seed {seed}, {about}: {result} is not {wanted}"


def reductions(team, rng, form, shape, dtype, order):
    me, size = team.rank, team.size
    parts = [numbers(r, shape, dtype, order) for r in range(size)]
    code, function = rng.choice(list(OPERATIONS.items()))
    if dtype[0] == "c" and code in (rank.MIN, rank.MAX):
        code, function = rank.SUM, np.add
    about = (team.size, form, shape, dtype, order, function)
    root = rng.randrange(size)
    total = folded(function, parts)
    out = np.empty_like(parts[me])
    call(team, form, "allreduce", parts[me], out, op=code)
    check("allreduce", out, total, *about)
    out[...] = parts[me]
    call(team, form, "allreduce", out, op=code)
    check("allreduce in place", out, total, *about)
    out[...] = 0
    call(team, form, "reduce", parts[me], out if me == root else None, op=code, root=root)
    check("reduce", out, total if me == root else np.zeros_like(out), *about)
    call(team, form, "scan", parts[me], out, op=code)
    check("scan", out, folded(function, parts[: me + 1]), *about)
    out[...] = 7
    call(team, form, "exscan", parts[me], out, op=code)
    check("exscan", out, folded(function, parts[:me]) if me else np.full_like(out, 7), *about)
    rows = [numbers(r, (size, *shape), dtype, "C") for r in range(size)]
    out = np.empty(shape, dtype)
    call(team, form, "reduce_scatter", rows[me], out, op=code)
    check("reduce_scatter", out, folded(function, rows)[me], *about)


def moves(team, rng, form, shape, dtype):
    me, size = team.rank, team.size
    parts = [numbers(r, shape, dtype, "C") for r in range(size)]
    about = (team.size, form, shape, dtype)
    root = rng.randrange(size)
    every = np.empty((size, *shape), dtype)
    call(team, form, "allgather", parts[me], every)
    check("allgather", every, np.stack(parts), *about)
    every[...] = 0
    call(team, form, "gather", parts[me], every if me == root else None, root=root)
    check("gather", every, np.stack(parts) if me == root else np.zeros_like(every), *about)
    out = np.empty(shape, dtype)
    call(team, form, "scatter", np.stack(parts) if me == root else None, out, root=root)
    check("scatter", out, parts[me], *about)
    out[...] = parts[me]
    call(team, form, "bcast", out, root=root)
    check("bcast", out, parts[root], *about)
    rows = [numbers(r, (size, *shape), dtype, "C") for r in range(size)]
    call(team, form, "alltoall", rows[me], every)
    check("alltoall", every, np.stack([row[me] for row in rows]), *about)


def vectors(team, rng, form, dtype):
    me, size = team.rank, team.size
    counts = [rng.randrange(40) for _ in range(size)]
    gap = rng.randrange(3)
    displs = [sum(counts[:r]) + r * gap for r in range(size)]
    if not gap and rng.random() < 0.5:
        displs = None
    parts = [numbers(r, counts[r], dtype, "C") for r in range(size)]
    about = (team.size, form, dtype, counts, displs)
    root = rng.randrange(size)
    wanted = np.zeros(sum(counts) + size * gap, dtype)
    for r in range(size):
        at = displs[r] if displs else sum(counts[:r])
        wanted[at : at + counts[r]] = parts[r]
    every = np.zeros_like(wanted)
    call(team, form, "allgatherv", parts[me], every, np.array(counts), displs)
    check("allgatherv", every, wanted, *about)
    every[...] = 0
    if me == root:
        call(team, form, "gatherv", parts[me], every, counts, displs, root=root)
        check("gatherv", every, wanted, *about)
    else:
        call(team, form, "gatherv", parts[me], root=root)
    out = np.zeros(counts[me], dtype)
    if me == root:
        call(team, form, "scatterv", wanted, out, counts, displs, root=root)
    else:
        call(team, form, "scatterv", None, out, root=root)
    check("scatterv", out, parts[me], *about)
    table = [[rng.randrange(20) for _ in range(size)] for _ in range(size)]  # [from][to]
    sends = [[np.full(table[a][b], 10 * a + b).astype(dtype) for b in range(size)] for a in range(size)]
    got = [table[r][me] for r in range(size)]
    arrived = np.empty(sum(got), dtype)
    call(team, form, "alltoallv", np.concatenate(sends[me]), arrived, table[me], got)
    check("alltoallv", arrived, np.concatenate([sends[r][me] for r in range(size)]), *about)


def one_round(world, rng):
    """The same choices on all ranks: they have one generator."""
    kind = rng.randrange(4)
    if kind == 0:
        colors = [rng.choice([None, 0, 1]) for _ in range(world.size)]
        keys = [rng.randrange(9) for _ in range(world.size)]
        rng = random.Random(str((rng.random(), colors[world.rank])))
        team = world.split(colors[world.rank], keys[world.rank], timeout=60)
        wanted = sorted((keys[r], r) for r in range(world.size) if colors[r] == colors[world.rank])
        assert (team is None) == (colors[world.rank] is None)
        if team is None:
            return
        assert (team.size, wanted[team.rank][1]) == (len(wanted), world.rank)
    else:
        team = (world, world.dup(timeout=60), world.split_shared(timeout=60))[kind - 1]
    shape = tuple(rng.randrange(1, 6) for _ in range(rng.randrange(4)))
    if rng.random() < 0.1:
        shape = (rng.choice([3000, 40000]),)
    for form in FORMS:
        dtype, order = rng.choice(DTYPES), rng.choice("CF")
        reductions(team, rng, form, shape, dtype, order)
        moves(team, rng, form, shape, rng.choice(DTYPES))
        vectors(team, rng, form, rng.choice(DTYPES))
    if team is not world:
        team.close()


rank.init()
seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
shared = np.array([seed])
rank.world().bcast(shared, timeout=60)
seed = int(shared[0])
generator = random.Random(seed)
try:
    with np.errstate(all="ignore"):
        for _ in range(int(sys.argv[1])):
            one_round(rank.world(), generator)
except BaseException:
    traceback.print_exc()
    rank.abort(1, f"seed {seed}")
print(f"rank {rank.world().rank}: seed {seed} is good")
