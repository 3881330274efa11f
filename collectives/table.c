/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c: list the algorithms.
 *
 * n is the block: what one rank contributes or gets. Direct code in shared memory is estimated by cache lines
 * handed over, at a quarter of a message's latency each.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"
#include "collectives/shm/arena.h"
#include "lib/mem/kind.h"

#include <string.h>

const char *const rk_coll_name[RK_COLL_COUNT] = {
    [RK_COLL_BARRIER] = "barrier",       [RK_COLL_BCAST] = "bcast",
    [RK_COLL_REDUCE] = "reduce",         [RK_COLL_ALLREDUCE] = "allreduce",
    [RK_COLL_GATHER] = "gather",         [RK_COLL_ALLGATHER] = "allgather",
    [RK_COLL_ALLGATHERV] = "allgatherv", [RK_COLL_SCATTER] = "scatter",
    [RK_COLL_REDUCE_SCATTER] = "reduce_scatter", [RK_COLL_ALLTOALL] = "alltoall",
    [RK_COLL_GATHERV] = "gatherv",       [RK_COLL_SCATTERV] = "scatterv",
    [RK_COLL_ALLTOALLV] = "alltoallv",   [RK_COLL_SCAN] = "scan",
    [RK_COLL_EXSCAN] = "exscan",         [RK_COLL_REDUCE_SCATTERV] = "reduce_scatterv",
};

/* ------------------------------------------------------------------------- costs */

/* Rough numbers of a network, and of a node's shared memory. */
const struct rk_cost_model rk_cost_models[2] = {
    [false] = {.alpha = 1.5, .beta = 1.0 / 12000, .gamma = 1.0 / 15000},
    [true] = {.alpha = 0.3, .beta = 1.0 / 8000, .gamma = 1.0 / 15000},
};

/* Recursive doubling and halving: two more when ranks fold in and out. */
static double folded_rounds(int p)
{
    return rk_is_pow2(p) ? rk_log2_ceil(p) : rk_log2_ceil(rk_pow2_floor(p)) + 2;
}

static double cost_shm(const struct rk_cost_model *m, int p, double n)
{
    return m->alpha / 4 * (1 + 0.1 * (p - 1)) + (p - 1) * n * (m->beta + m->gamma);
}

/* The same in a schedule: its steps take as long as those of a message. */
static double cost_lines(const struct rk_cost_model *m, int p, double n)
{
    return m->alpha * (1 + 0.1 * (p - 1)) + (p - 1) * n * (m->beta + m->gamma);
}

/* A copy in, and a copy out of the peers' cells. The ranks copy at once; each reads the counters of all. */
static double cost_slices(const struct rk_cost_model *m, int p, double n)
{
    return m->alpha * (1 + 0.1 * (p - 1)) + 2 * n * m->beta;
}

/* The same, and each reduces its slice. */
static double cost_slices_reduced(const struct rk_cost_model *m, int p, double n)
{
    return cost_slices(m, p, n) + n * m->gamma;
}

/* p blocks in, and out. */
static double cost_slices_blocks(const struct rk_cost_model *m, int p, double n)
{
    return cost_slices(m, p, (p - 1) * n);
}

static double cost_slices_blocks_reduced(const struct rk_cost_model *m, int p, double n)
{
    return cost_slices_reduced(m, p, (p - 1) * n);
}

/* One copy or reduction of what the peers have. Ranks wait for each other before and after. */
static double cost_direct(const struct rk_cost_model *m, int p, double n)
{
    return 2 * m->alpha * (1 + 0.1 * (p - 1)) + n * m->beta;
}

/* Each reduces a share of it, and copies the others'. */
static double cost_direct_shared(const struct rk_cost_model *m, int p, double n)
{
    return cost_direct(m, p, n * (p - 1) / p) + n * m->gamma;
}

static double cost_direct_reduced(const struct rk_cost_model *m, int p, double n)
{
    return cost_direct(m, p, 0) + (p - 1) * n * m->gamma;
}

static double cost_direct_blocks(const struct rk_cost_model *m, int p, double n)
{
    return cost_direct(m, p, (p - 1) * n);
}

/* The same by copies and kernels of a device, with DRIVER us for the calls of the driver. */
enum { DRIVER = 20 };

static double cost_device(const struct rk_cost_model *m, int p, double n)
{
    return DRIVER + cost_direct_blocks(m, p, n);
}

static double cost_dissemination(const struct rk_cost_model *m, int p, double n)
{
    (void)n;
    return rk_log2_ceil(p) * m->alpha;
}

static double cost_binomial(const struct rk_cost_model *m, int p, double n)
{
    return rk_log2_ceil(p) * (m->alpha + n * m->beta);
}

static double cost_scatter_ring(const struct rk_cost_model *m, int p, double n)
{
    return (rk_log2_ceil(p) + p - 1) * m->alpha + 2.0 * (p - 1) / p * n * m->beta;
}

static double cost_chain(const struct rk_cost_model *m, int p, double n)
{
    double k = n > 65536 ? n / 65536 : 1;

    return (p - 2 + k) * (m->alpha + n / k * m->beta);
}

static double cost_reduce_binomial(const struct rk_cost_model *m, int p, double n)
{
    return rk_log2_ceil(p) * (m->alpha + n * (m->beta + m->gamma));
}

static double cost_reduce_rabenseifner(const struct rk_cost_model *m, int p, double n)
{
    double fold = rk_is_pow2(p) ? 0 : n * (m->beta + m->gamma);

    return (folded_rounds(p) + p) * m->alpha + 2 * n * m->beta + n * m->gamma + fold;
}

static double cost_doubling(const struct rk_cost_model *m, int p, double n)
{
    return folded_rounds(p) * (m->alpha + n * (m->beta + m->gamma));
}

static double cost_rabenseifner(const struct rk_cost_model *m, int p, double n)
{
    double fold = rk_is_pow2(p) ? 0 : n * (2 * m->beta + m->gamma);

    return 2 * folded_rounds(p) * m->alpha + 2.0 * (p - 1) / p * n * m->beta +
           1.0 * (p - 1) / p * n * m->gamma + fold;
}

static double cost_ring_allreduce(const struct rk_cost_model *m, int p, double n)
{
    return 2 * (p - 1) * m->alpha + (2 * m->beta + m->gamma) * (p - 1) / p * n;
}

/* Data to or from one rank in a tree, or around a ring: p - 1 blocks. */
static double cost_tree_blocks(const struct rk_cost_model *m, int p, double n)
{
    return rk_log2_ceil(p) * m->alpha + (p - 1) * n * m->beta * 1.5; /* forwarded, and copied */
}

static double cost_linear(const struct rk_cost_model *m, int p, double n)
{
    return (p - 1) * (m->alpha + n * m->beta);
}

static double cost_doubling_blocks(const struct rk_cost_model *m, int p, double n)
{
    return rk_log2_ceil(p) * m->alpha + (p - 1) * n * m->beta;
}

static double cost_halving_blocks(const struct rk_cost_model *m, int p, double n)
{
    double fold = rk_is_pow2(p) ? 0 : p * n * (m->beta + m->gamma);

    return folded_rounds(p) * m->alpha + (p - 1) * n * (m->beta + m->gamma) + fold;
}

static double cost_linear_reduced(const struct rk_cost_model *m, int p, double n)
{
    return (p - 1) * (m->alpha + n * (m->beta + m->gamma));
}

static double cost_alltoall_bruck(const struct rk_cost_model *m, int p, double n)
{
    return rk_log2_ceil(p) * (m->alpha + p / 2.0 * n * m->beta * 2);
}

/* Two levels: phases on a host of k ranks, and between hosts. */

#define NET (&rk_cost_models[false])
#define NODE (&rk_cost_models[true])

static double cost_hosts_barrier(int hosts, int k, double n)
{
    return cost_dissemination(NET, hosts, n) + 2 * cost_dissemination(NODE, k, n);
}

static double cost_hosts_bcast(int hosts, int k, double n)
{
    double binomial = cost_binomial(NET, hosts, n), chain = n > 65536 && hosts > 2 ? cost_chain(NET, hosts, n) : binomial;

    return (chain < binomial ? chain : binomial) + cost_binomial(NODE, k, n);
}

static double cost_hosts_reduce(int hosts, int k, double n)
{
    double between = n > 65536 && hosts > 2 ? cost_reduce_rabenseifner(NET, hosts, n) : cost_reduce_binomial(NET, hosts, n);

    return between + cost_reduce_binomial(NODE, k, n);
}

static double cost_hosts_allreduce(int hosts, int k, double n)
{
    double lane = n > 8192 && k > 1 ? n / k : n, local;
    double between = lane > 65536 ? cost_rabenseifner(NET, hosts, lane) : cost_doubling(NET, hosts, lane);

    if (lane < n) /* a slice to and from each rank of the host */
        local = cost_linear_reduced(NODE, k, lane) + cost_linear(NODE, k, lane);
    else
        local = cost_reduce_binomial(NODE, k, n) + cost_binomial(NODE, k, n);
    return between + local;
}

static double cost_hosts_allgather(int hosts, int k, double n)
{
    return cost_tree_blocks(NODE, k, n) + cost_linear(NET, hosts, n * k) + cost_binomial(NODE, k, n * hosts * k);
}

static double cost_hosts_reduce_scatter(int hosts, int k, double n)
{
    return cost_reduce_binomial(NODE, k, n * hosts * k) + cost_linear_reduced(NET, hosts, n * k) + cost_linear(NODE, k, n);
}

static double cost_hosts_alltoall(int hosts, int k, double n)
{
    double all = n * hosts * k;

    return 2 * cost_linear(NODE, k, all) + 2 * k * all * NODE->beta + cost_linear(NET, hosts, n * k * k);
}

#define HOSTS4(coll)                                                                                        \
    static double cost_hosts4_##coll(const struct rk_cost_model *m, int p, double n)                        \
    {                                                                                                       \
        (void)m;                                                                                            \
        return cost_hosts_##coll((p + 3) / 4, p < 4 ? p : 4, n);                                            \
    }
HOSTS4(barrier)
HOSTS4(bcast)
HOSTS4(reduce)
HOSTS4(allreduce)
HOSTS4(allgather)
HOSTS4(reduce_scatter)
HOSTS4(alltoall)

static double cost_scan_doubling(const struct rk_cost_model *m, int p, double n)
{
    return rk_log2_ceil(p) * (m->alpha + n * (m->beta + m->gamma));
}

static double cost_scan_chain(const struct rk_cost_model *m, int p, double n)
{
    double k = n > 65536 ? n / 65536 : 1;

    return (p - 2 + k) * (m->alpha + n / k * (m->beta + m->gamma));
}

/* ------------------------------------------------------------------------- table */

#define SHM(coll, reason) {.name = "shm", .kind = coll, .needs = RK_NEEDS_ARENA, .cost = cost_shm, .why = reason}

/* Short blocks: a line of each rank. */
#define LINES(coll, reason)                                                                                            \
    {.name = "lines", .kind = coll, .needs = RK_NEEDS_CELLS, .bytes_max = RK_SLOT_DATA, .ranks_max = RK_FLAT_MAX,        \
     .cost = cost_lines, .why = reason, .build = rk_build_lines}

#define SLICES(coll, formula, reason)                                                              \
    {.name = "slices", .kind = coll, .needs = RK_NEEDS_CELLS, .cost = formula, .why = reason, .build = rk_build_slices}

/* Ranks that do not know all lengths agree on the longest block: slices or direct. */
#define BY_LENGTH(coll, formula)                                                                   \
    {.name = "by_length", .kind = coll, .needs = RK_NEEDS_CELLS, .cost = formula,                  \
     .why = "the longest block decides: slices, or direct", .build = rk_build_by_length}

#define DIRECT(coll, formula, reason)                                                              \
    {.name = "direct", .kind = coll, .needs = RK_NEEDS_CELLS, .cost = formula, .why = reason, .build = rk_build_direct}

#define DEVICE(coll, ranks, reason)                                                                 \
    {.name = "device", .kind = coll, .needs = RK_NEEDS_CELLS | RK_NEEDS_DEVICE, .ranks_max = ranks, .cost = cost_device, \
     .why = reason, .build = rk_build_device}
#define DEVICE_MOVES(coll, reason) DEVICE(coll, 0, reason)
#define DEVICE_SUMS(coll, reason) DEVICE(coll, RK_KIND_OPERANDS, reason)

const struct rk_algo rk_algos[] = {
    SHM(RK_COLL_BARRIER, "each rank sets a flag that all others read"),
    {.name = "dissemination", .kind = RK_COLL_BARRIER, .cost = cost_dissemination,
     .why = "least rounds", .build = rk_build_barrier_dissemination},
    {.name = "two_level", .kind = RK_COLL_BARRIER, .needs = RK_NEEDS_HOSTS,
     .cost = cost_hosts4_barrier, .cost_hosts = cost_hosts_barrier,
     .why = "one message a host crosses the network in each round", .build = rk_build_barrier_two_level},
    LINES(RK_COLL_BARRIER, "each rank sets a flag that all others read"),
    SLICES(RK_COLL_BARRIER, cost_slices, "each rank raises a counter that all others read"),

    SHM(RK_COLL_BCAST, "all read what the root writes"),
    {.name = "binomial", .kind = RK_COLL_BCAST, .cost = cost_binomial,
     .why = "least rounds", .build = rk_build_bcast_binomial},
    {.name = "scatter_ring", .kind = RK_COLL_BCAST, .min_count = 1, .cost = cost_scatter_ring,
     .why = "every rank sends and receives about the message twice, whatever their number",
     .build = rk_build_bcast_scatter_ring},
    {.name = "chain", .kind = RK_COLL_BCAST, .min_count = 1, .cost = cost_chain,
     .why = "segments on all links at once: each byte crosses each rank once",
     .build = rk_build_bcast_chain},
    {.name = "two_level", .kind = RK_COLL_BCAST, .needs = RK_NEEDS_HOSTS,
     .cost = cost_hosts4_bcast, .cost_hosts = cost_hosts_bcast,
     .why = "the message crosses the network once a host", .build = rk_build_bcast_two_level},
    LINES(RK_COLL_BCAST, "all read the line of the root"),
    SLICES(RK_COLL_BCAST, cost_slices, "the root copies in, all copy out at once"),
    DIRECT(RK_COLL_BCAST, cost_direct, "all copy from the root"),
    DEVICE_MOVES(RK_COLL_BCAST, "all copy from the root"),

    SHM(RK_COLL_REDUCE, "the root reads what all write"),
    {.name = "binomial", .kind = RK_COLL_REDUCE, .balanced = true, .cost = cost_reduce_binomial,
     .why = "least rounds", .build = rk_build_reduce_binomial},
    {.name = "rabenseifner", .kind = RK_COLL_REDUCE, .balanced = true,
     .min_count = 1, .cost = cost_reduce_rabenseifner,
     .why = "all ranks share the reducing", .build = rk_build_reduce_rabenseifner},
    {.name = "two_level", .kind = RK_COLL_REDUCE, .needs = RK_NEEDS_HOSTS | RK_NEEDS_COMMUTATIVE,
     .cost = cost_hosts4_reduce, .cost_hosts = cost_hosts_reduce,
     .why = "one sum a host crosses the network", .build = rk_build_reduce_two_level},
    LINES(RK_COLL_REDUCE, "the root reads the lines of all"),
    SLICES(RK_COLL_REDUCE, cost_slices_reduced, "the root reduces all inputs at once; many ranks share it"),
    DIRECT(RK_COLL_REDUCE, cost_direct_reduced, "the root reduces all inputs where they are; many ranks share it"),
    DEVICE_SUMS(RK_COLL_REDUCE, "a rank of each device reduces a slice of all inputs"),

    SHM(RK_COLL_ALLREDUCE, "all read what all write: one hand-over"),
    {.name = "recursive_doubling", .kind = RK_COLL_ALLREDUCE, .balanced = true, .cost = cost_doubling,
     .why = "least rounds", .build = rk_build_allreduce_doubling},
    {.name = "rabenseifner", .kind = RK_COLL_ALLREDUCE, .balanced = true, .min_count = 1, .cost = cost_rabenseifner,
     .why = "least bytes in few rounds", .build = rk_build_allreduce_rabenseifner},
    {.name = "ring", .kind = RK_COLL_ALLREDUCE, .needs = RK_NEEDS_COMMUTATIVE, .min_count = 1, .segment = RK_RING_SEGMENT,
     .cost = cost_ring_allreduce, .why = "least bytes, neighbours only, in slices that overlap",
     .build = rk_build_allreduce_ring},
    {.name = "two_level", .kind = RK_COLL_ALLREDUCE, .needs = RK_NEEDS_HOSTS | RK_NEEDS_COMMUTATIVE,
     .cost = cost_hosts4_allreduce, .cost_hosts = cost_hosts_allreduce,
     .why = "sums of a host cross the network; long ones in a lane a rank", .build = rk_build_allreduce_two_level},
    LINES(RK_COLL_ALLREDUCE, "all read the lines of all"),
    SLICES(RK_COLL_ALLREDUCE, cost_slices_reduced, "each rank reduces a slice of all inputs at once"),
    DIRECT(RK_COLL_ALLREDUCE, cost_direct_shared, "each reduces a share of all inputs where they are"),
    DEVICE_SUMS(RK_COLL_ALLREDUCE, "a rank of each device reduces a slice of all inputs"),

    SHM(RK_COLL_GATHER, "the root reads what all write"),
    {.name = "binomial", .kind = RK_COLL_GATHER, .cost = cost_tree_blocks,
     .why = "least rounds", .build = rk_build_gather_binomial},
    {.name = "linear", .kind = RK_COLL_GATHER, .cost = cost_linear,
     .why = "no copies on the way", .build = rk_build_gather_linear},
    LINES(RK_COLL_GATHER, "the root reads the lines of all"),
    SLICES(RK_COLL_GATHER, cost_slices_blocks, "all copy in at once, the root copies out"),
    DIRECT(RK_COLL_GATHER, cost_direct_blocks, "the root copies from all"),
    DEVICE_MOVES(RK_COLL_GATHER, "the root copies from all"),

    SHM(RK_COLL_ALLGATHER, "all read what all write: one hand-over"),
    {.name = "bruck", .kind = RK_COLL_ALLGATHER, .cost = cost_doubling_blocks,
     .why = "least rounds, for any number of ranks", .build = rk_build_allgather_bruck},
    {.name = "recursive_doubling", .kind = RK_COLL_ALLGATHER, .needs = RK_NEEDS_POW2,
     .cost = cost_doubling_blocks, .why = "least rounds, without a copy",
     .build = rk_build_allgather_doubling},
    {.name = "ring", .kind = RK_COLL_ALLGATHER, .cost = cost_linear,
     .why = "least bytes, neighbours only", .build = rk_build_allgather_ring},
    {.name = "two_level", .kind = RK_COLL_ALLGATHER, .needs = RK_NEEDS_HOSTS,
     .cost = cost_hosts4_allgather, .cost_hosts = cost_hosts_allgather,
     .why = "each byte crosses the network once a host, in long messages", .build = rk_build_allgather_two_level},
    LINES(RK_COLL_ALLGATHER, "all read the lines of all"),
    SLICES(RK_COLL_ALLGATHER, cost_slices_blocks, "each copies in once, all copy out"),
    DIRECT(RK_COLL_ALLGATHER, cost_direct_blocks, "each copies from all"),
    DEVICE_MOVES(RK_COLL_ALLGATHER, "each copies from all"),

    {.name = "linear", .kind = RK_COLL_ALLGATHERV, .cost = cost_linear,
     .why = "all at once, without waiting for a neighbour", .build = rk_build_allgatherv_linear},
    {.name = "ring", .kind = RK_COLL_ALLGATHERV, .cost = cost_linear,
     .why = "least bytes, neighbours only", .build = rk_build_allgather_ring},
    SLICES(RK_COLL_ALLGATHERV, cost_slices_blocks, "each copies in once, all copy out"),
    DIRECT(RK_COLL_ALLGATHERV, cost_direct_blocks, "each copies from all"),
    DEVICE_MOVES(RK_COLL_ALLGATHERV, "each copies from all"),

    SHM(RK_COLL_SCATTER, "each reads its block where the root wrote all"),
    {.name = "binomial", .kind = RK_COLL_SCATTER, .cost = cost_tree_blocks,
     .why = "least rounds", .build = rk_build_scatter_binomial},
    {.name = "linear", .kind = RK_COLL_SCATTER, .cost = cost_linear,
     .why = "no copies on the way", .build = rk_build_scatter_linear},
    SLICES(RK_COLL_SCATTER, cost_slices_blocks, "the root copies in, all copy out at once"),
    DIRECT(RK_COLL_SCATTER, cost_direct, "all copy from the root"),
    DEVICE_MOVES(RK_COLL_SCATTER, "all copy from the root"),

    SHM(RK_COLL_REDUCE_SCATTER, "each reads its block from all"),
    {.name = "recursive_halving", .kind = RK_COLL_REDUCE_SCATTER, .balanced = true,
     .cost = cost_halving_blocks, .why = "least rounds",
     .build = rk_build_reduce_scatter_halving},
    {.name = "pairwise", .kind = RK_COLL_REDUCE_SCATTER, .needs = RK_NEEDS_COMMUTATIVE, .strided = true,
     .cost = cost_linear_reduced, .why = "least bytes, nothing forwarded",
     .build = rk_build_reduce_scatter_pairwise},
    {.name = "ring", .kind = RK_COLL_REDUCE_SCATTER, .needs = RK_NEEDS_COMMUTATIVE, .strided = true,
     .cost = cost_linear_reduced, .why = "least bytes, neighbours only",
     .build = rk_build_reduce_scatter_ring},
    {.name = "two_level", .kind = RK_COLL_REDUCE_SCATTER, .needs = RK_NEEDS_HOSTS | RK_NEEDS_COMMUTATIVE,
     .cost = cost_hosts4_reduce_scatter, .cost_hosts = cost_hosts_reduce_scatter,
     .why = "sums of a host cross the network", .build = rk_build_reduce_scatter_two_level},
    SLICES(RK_COLL_REDUCE_SCATTER, cost_slices_blocks_reduced, "each reduces its block of all inputs at once"),
    DIRECT(RK_COLL_REDUCE_SCATTER, cost_direct_reduced, "each reduces its block of all inputs where they are"),
    DEVICE_SUMS(RK_COLL_REDUCE_SCATTER, "a rank of each device reduces the blocks of its ranks"),

    SHM(RK_COLL_ALLTOALL, "each reads its block from all"),
    {.name = "bruck", .kind = RK_COLL_ALLTOALL, .cost = cost_alltoall_bruck,
     .why = "least rounds; blocks travel together", .build = rk_build_alltoall_bruck},
    {.name = "pairwise", .kind = RK_COLL_ALLTOALL, .cost = cost_linear,
     .why = "least bytes, pairs meet", .build = rk_build_alltoall_pairwise},
    {.name = "two_level", .kind = RK_COLL_ALLTOALL, .needs = RK_NEEDS_HOSTS,
     .cost = cost_hosts4_alltoall, .cost_hosts = cost_hosts_alltoall,
     .why = "blocks between two hosts travel together", .build = rk_build_alltoall_two_level},
    SLICES(RK_COLL_ALLTOALL, cost_slices_blocks, "all copy in at once, then out of each cell"),
    DIRECT(RK_COLL_ALLTOALL, cost_direct_blocks, "each copies from all"),
    DEVICE_MOVES(RK_COLL_ALLTOALL, "each copies from all"),

    {.name = "linear", .kind = RK_COLL_GATHERV, .cost = cost_linear,
     .why = "only the root knows all lengths", .build = rk_build_gatherv_linear},
    SLICES(RK_COLL_GATHERV, cost_slices_blocks, "all copy in at once, the root copies out"),
    DIRECT(RK_COLL_GATHERV, cost_direct_blocks, "the root copies from all"),
    DEVICE_MOVES(RK_COLL_GATHERV, "the root copies from all"),
    BY_LENGTH(RK_COLL_GATHERV, cost_slices_blocks),

    {.name = "linear", .kind = RK_COLL_SCATTERV, .cost = cost_linear,
     .why = "only the root knows all lengths", .build = rk_build_scatterv_linear},
    SLICES(RK_COLL_SCATTERV, cost_slices_blocks, "the root copies in, all copy out at once"),
    DIRECT(RK_COLL_SCATTERV, cost_direct, "all copy from the root"),
    DEVICE_MOVES(RK_COLL_SCATTERV, "all copy from the root"),
    BY_LENGTH(RK_COLL_SCATTERV, cost_slices_blocks),

    {.name = "pairwise", .kind = RK_COLL_ALLTOALLV, .cost = cost_linear,
     .why = "least bytes, pairs meet", .build = rk_build_alltoallv_pairwise},
    SLICES(RK_COLL_ALLTOALLV, cost_slices_blocks, "all copy in at once, then out of each cell"),
    DIRECT(RK_COLL_ALLTOALLV, cost_direct_blocks, "each copies from all"),
    DEVICE_MOVES(RK_COLL_ALLTOALLV, "each copies from all"),
    BY_LENGTH(RK_COLL_ALLTOALLV, cost_slices_blocks),

    {.name = "recursive_halving", .kind = RK_COLL_REDUCE_SCATTERV, .balanced = true, .cost = cost_halving_blocks,
     .why = "least rounds", .build = rk_build_reduce_scatterv_halving},
    {.name = "pairwise", .kind = RK_COLL_REDUCE_SCATTERV, .strided = true, .cost = cost_linear_reduced,
     .why = "least bytes, nothing forwarded", .build = rk_build_reduce_scatterv_pairwise},
    SLICES(RK_COLL_REDUCE_SCATTERV, cost_slices_blocks_reduced, "each reduces its block of all inputs at once"),
    DIRECT(RK_COLL_REDUCE_SCATTERV, cost_direct_reduced, "each reduces its block of all inputs where they are"),
    DEVICE_SUMS(RK_COLL_REDUCE_SCATTERV, "a rank of each device reduces the blocks of its ranks"),

#define SCANS(coll)                                                                                                        \
    SHM(coll, "each reads what the lower ranks write"),                                                                   \
    {.name = "recursive_doubling", .kind = coll, .balanced = true, .cost = cost_scan_doubling, .why = "least rounds",     \
     .build = rk_build_scan_doubling},                                                                                    \
    {.name = "chain", .kind = coll, .cost = cost_scan_chain,                                                              \
     .why = "segments on all links at once: each byte crosses each rank once", .build = rk_build_scan_chain},             \
    LINES(coll, "each reads the lines of the lower ranks"),                                                            \
    SLICES(coll, cost_slices_reduced, "each reduces a slice of all prefixes"),                                               \
    DIRECT(coll, cost_direct_reduced, "each reduces the inputs of the lower ranks where they are")
    SCANS(RK_COLL_SCAN),
    SCANS(RK_COLL_EXSCAN),
};

const int rk_nalgos = RK_ARRAY_LEN(rk_algos);

const struct rk_algo *rk_algo_find(enum rk_coll_kind kind, const char *name, size_t len)
{
    for (int i = 0; i < rk_nalgos; i++) {
        if (rk_algos[i].kind == kind && strlen(rk_algos[i].name) == len &&
            memcmp(rk_algos[i].name, name, len) == 0)
            return &rk_algos[i];
    }
    return NULL;
}
