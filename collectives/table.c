/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c: list the algorithms.
 *
 * n is the block: what one rank contributes or gets. Direct code in shared memory is estimated by cache lines
 * handed over, at a quarter of a message's latency each.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

#include <string.h>

const char *const rk_coll_name[RK_COLL_COUNT] = {
    [RK_COLL_BARRIER] = "barrier",       [RK_COLL_BCAST] = "bcast",
    [RK_COLL_REDUCE] = "reduce",         [RK_COLL_ALLREDUCE] = "allreduce",
    [RK_COLL_GATHER] = "gather",         [RK_COLL_ALLGATHER] = "allgather",
    [RK_COLL_ALLGATHERV] = "allgatherv", [RK_COLL_SCATTER] = "scatter",
    [RK_COLL_REDUCE_SCATTER] = "reduce_scatter", [RK_COLL_ALLTOALL] = "alltoall",
    [RK_COLL_GATHERV] = "gatherv",       [RK_COLL_SCATTERV] = "scatterv",
    [RK_COLL_ALLTOALLV] = "alltoallv",
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

/* ------------------------------------------------------------------------- table */

#define SHM(coll, reason) {.name = "shm", .kind = coll, .needs = RK_NEEDS_ARENA, .cost = cost_shm, .why = reason}

const struct rk_algo rk_algos[] = {
    SHM(RK_COLL_BARRIER, "each rank sets a flag that all others read"),
    {.name = "dissemination", .kind = RK_COLL_BARRIER, .cost = cost_dissemination,
     .why = "least rounds", .build = rk_build_barrier_dissemination},

    SHM(RK_COLL_BCAST, "all read what the root writes"),
    {.name = "binomial", .kind = RK_COLL_BCAST, .cost = cost_binomial,
     .why = "least rounds", .build = rk_build_bcast_binomial},
    {.name = "scatter_ring", .kind = RK_COLL_BCAST, .min_count = 1, .cost = cost_scatter_ring,
     .why = "every rank sends and receives about the message twice, whatever their number",
     .build = rk_build_bcast_scatter_ring},
    {.name = "chain", .kind = RK_COLL_BCAST, .min_count = 1, .cost = cost_chain,
     .why = "segments on all links at once: each byte crosses each rank once",
     .build = rk_build_bcast_chain},

    SHM(RK_COLL_REDUCE, "the root reads what all write"),
    {.name = "binomial", .kind = RK_COLL_REDUCE, .balanced = true, .cost = cost_reduce_binomial,
     .why = "least rounds", .build = rk_build_reduce_binomial},
    {.name = "rabenseifner", .kind = RK_COLL_REDUCE, .balanced = true,
     .min_count = 1, .cost = cost_reduce_rabenseifner,
     .why = "all ranks share the reducing", .build = rk_build_reduce_rabenseifner},

    SHM(RK_COLL_ALLREDUCE, "all read what all write: one hand-over"),
    {.name = "recursive_doubling", .kind = RK_COLL_ALLREDUCE, .balanced = true, .cost = cost_doubling,
     .why = "least rounds", .build = rk_build_allreduce_doubling},
    {.name = "rabenseifner", .kind = RK_COLL_ALLREDUCE, .balanced = true, .min_count = 1, .cost = cost_rabenseifner,
     .why = "least bytes in few rounds", .build = rk_build_allreduce_rabenseifner},
    {.name = "ring", .kind = RK_COLL_ALLREDUCE, .needs = RK_NEEDS_COMMUTATIVE, .min_count = 1,
     .cost = cost_ring_allreduce, .why = "least bytes, neighbours only, in slices that overlap",
     .build = rk_build_allreduce_ring},

    SHM(RK_COLL_GATHER, "the root reads what all write"),
    {.name = "binomial", .kind = RK_COLL_GATHER, .cost = cost_tree_blocks,
     .why = "least rounds", .build = rk_build_gather_binomial},
    {.name = "linear", .kind = RK_COLL_GATHER, .cost = cost_linear,
     .why = "no copies on the way", .build = rk_build_gather_linear},

    SHM(RK_COLL_ALLGATHER, "all read what all write: one hand-over"),
    {.name = "bruck", .kind = RK_COLL_ALLGATHER, .cost = cost_doubling_blocks,
     .why = "least rounds, for any number of ranks", .build = rk_build_allgather_bruck},
    {.name = "recursive_doubling", .kind = RK_COLL_ALLGATHER, .needs = RK_NEEDS_POW2,
     .cost = cost_doubling_blocks, .why = "least rounds, without a copy",
     .build = rk_build_allgather_doubling},
    {.name = "ring", .kind = RK_COLL_ALLGATHER, .cost = cost_linear,
     .why = "least bytes, neighbours only", .build = rk_build_allgather_ring},

    {.name = "linear", .kind = RK_COLL_ALLGATHERV, .cost = cost_linear,
     .why = "all at once, without waiting for a neighbour", .build = rk_build_allgatherv_linear},
    {.name = "ring", .kind = RK_COLL_ALLGATHERV, .cost = cost_linear,
     .why = "least bytes, neighbours only", .build = rk_build_allgather_ring},

    SHM(RK_COLL_SCATTER, "each reads its block where the root wrote all"),
    {.name = "binomial", .kind = RK_COLL_SCATTER, .cost = cost_tree_blocks,
     .why = "least rounds", .build = rk_build_scatter_binomial},
    {.name = "linear", .kind = RK_COLL_SCATTER, .cost = cost_linear,
     .why = "no copies on the way", .build = rk_build_scatter_linear},

    SHM(RK_COLL_REDUCE_SCATTER, "each reads its block from all"),
    {.name = "recursive_halving", .kind = RK_COLL_REDUCE_SCATTER, .balanced = true,
     .cost = cost_halving_blocks, .why = "least rounds",
     .build = rk_build_reduce_scatter_halving},
    {.name = "pairwise", .kind = RK_COLL_REDUCE_SCATTER, .needs = RK_NEEDS_COMMUTATIVE,
     .cost = cost_linear_reduced, .why = "least bytes, nothing forwarded",
     .build = rk_build_reduce_scatter_pairwise},
    {.name = "ring", .kind = RK_COLL_REDUCE_SCATTER, .needs = RK_NEEDS_COMMUTATIVE,
     .cost = cost_linear_reduced, .why = "least bytes, neighbours only",
     .build = rk_build_reduce_scatter_ring},

    SHM(RK_COLL_ALLTOALL, "each reads its block from all"),
    {.name = "bruck", .kind = RK_COLL_ALLTOALL, .cost = cost_alltoall_bruck,
     .why = "least rounds; blocks travel together", .build = rk_build_alltoall_bruck},
    {.name = "pairwise", .kind = RK_COLL_ALLTOALL, .cost = cost_linear,
     .why = "least bytes, pairs meet", .build = rk_build_alltoall_pairwise},

    {.name = "linear", .kind = RK_COLL_GATHERV, .cost = cost_linear,
     .why = "only the root knows all lengths", .build = rk_build_gatherv_linear},

    {.name = "linear", .kind = RK_COLL_SCATTERV, .cost = cost_linear,
     .why = "only the root knows all lengths", .build = rk_build_scatterv_linear},

    {.name = "pairwise", .kind = RK_COLL_ALLTOALLV, .cost = cost_linear,
     .why = "least bytes, pairs meet", .build = rk_build_alltoallv_pairwise},
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
