/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algo.h: describe collective calls and their algorithms.
 *
 * An algorithm is a const struct in table.c: name, requirements, cost, reason to use it, and a function that
 * builds its schedule. select.c chooses one.
 */
#ifndef RK_COLL_ALGO_H
#define RK_COLL_ALGO_H

#include "collectives/sched.h"

enum rk_coll_kind {
    RK_COLL_BARRIER,
    RK_COLL_BCAST,
    RK_COLL_REDUCE,
    RK_COLL_ALLREDUCE,
    RK_COLL_GATHER,
    RK_COLL_ALLGATHER,
    RK_COLL_ALLGATHERV,
    RK_COLL_SCATTER,
    RK_COLL_REDUCE_SCATTER,
    RK_COLL_ALLTOALL,
    RK_COLL_GATHERV,
    RK_COLL_SCATTERV,
    RK_COLL_ALLTOALLV,
    RK_COLL_REDUCE_SCATTERV,
    RK_COLL_SCAN,
    RK_COLL_EXSCAN,
    RK_COLL_COUNT
};

extern const char *const rk_coll_name[RK_COLL_COUNT];

struct rk_stage;

/* Have the blocks lengths of their own? */
RK_INLINE bool rk_coll_has_counts(enum rk_coll_kind kind)
{
    return kind == RK_COLL_ALLGATHERV || kind == RK_COLL_GATHERV || kind == RK_COLL_SCATTERV || kind == RK_COLL_ALLTOALLV ||
           kind == RK_COLL_REDUCE_SCATTERV;
}

/* Do ranks not know the lengths of all blocks? No choice may then depend on lengths: ranks would choose differently. */
RK_INLINE bool rk_coll_has_own_counts(enum rk_coll_kind kind)
{
    return kind == RK_COLL_GATHERV || kind == RK_COLL_SCATTERV || kind == RK_COLL_ALLTOALLV;
}

/*
 * A collective call. Its caller sets the arguments that the collective has and leaves the rest zero; rk_coll_check
 * sets those after root. A block is what one rank contributes or gets. A buffer that only the root uses is undefined on
 * other ranks.
 *
 * The check resolves RANK_IN_PLACE: sbuf and rbuf become the actual buffers, and in_place means that they overlap.
 */
struct rk_coll_call {
    const char *name; /* public function, for errors */
    enum rk_coll_kind kind;
    struct rank_team *team;
    const char *sbuf;
    char *rbuf;       /* BCAST: the buffer of all ranks */
    /* Elements of a block. ALLGATHERV: of sbuf, and once checked of the longest block. GATHERV, SCATTERV: of this rank's
     * block. ALLTOALLV: 0. REDUCE_SCATTERV: of the longest block, once checked. */
    int64_t count;
    /* Of rbuf and sbuf, in elements, for blocks of their own lengths; valid while the schedule is built. */
    const int64_t *rcounts, *rdispls, *scounts, *sdispls;
    rank_dtype_t dtype;
    rank_op_t op;
    int root;
    bool in_place;
    bool ordered;     /* reduce in the order of ranks: the operation is not commutative */
    bool user;        /* the operation is one of rank_op_create: only schedules use it */
    size_t bytes;     /* of count elements */
    size_t elem;
    size_t stride;    /* REDUCE_SCATTER: bytes between the blocks of sbuf; 0: they lie in a row */
    rk_op_fn fn;      /* kernel of a reduction */
    struct rk_stage *stage; /* its buffers are this host memory, not what the program has passed; NULL: they are */
};

/* Block r of what a reduce_scatter sends. */
RK_INLINE const char *rk_sent_block(const struct rk_coll_call *c, int r)
{
    return c->sbuf + (size_t)r * (c->stride ? c->stride : c->bytes);
}

/* Does no rank of the team have data? */
RK_INLINE bool rk_coll_is_empty(const struct rk_coll_call *c)
{
    return c->bytes == 0 && c->kind != RK_COLL_BARRIER && !rk_coll_has_own_counts(c->kind);
}

/* Does this rank get a result? In exscan rank 0 gets none, and uses rbuf as its input in place only. */
RK_INLINE bool rk_coll_has_result(const struct rk_coll_call *c)
{
    return c->kind != RK_COLL_EXSCAN || c->team->rank > 0 || c->sbuf == RANK_IN_PLACE;
}

/* The block at displ elements; NULL in no buffer, where it is empty. */
RK_INLINE char *rk_block_at(const char *buf, int64_t displ, size_t elem)
{
    return buf ? (char *)(uintptr_t)buf + (size_t)displ * elem : NULL;
}

/* Times in microseconds. All ranks use the same constants, as they must select the same algorithm. */
struct rk_cost_model {
    double alpha; /* per message */
    double beta;  /* per byte moved between ranks */
    double gamma; /* per byte reduced */
};

/* Index true: all ranks are on one node. */
extern const struct rk_cost_model rk_cost_models[2];

enum rk_algo_needs {
    RK_NEEDS_POW2 = 1,        /* number of ranks: a power of two */
    RK_NEEDS_COMMUTATIVE = 2, /* a commutative operation */
    RK_NEEDS_ARENA = 4,       /* all ranks on one node, with an arena */
    RK_NEEDS_HOSTS = 8,       /* several hosts, one with several ranks, known to all: builders take them from the schedule */
    RK_NEEDS_CELLS = 16,      /* the cells of an arena (shm/slices.h) */
    RK_NEEDS_DEVICE = 32      /* ranks that may have device memory */
};

struct rk_algo {
    const char *name;
    enum rk_coll_kind kind;
    unsigned needs;
    bool balanced;      /* ordered calls sum each element by one tree: ranks fold (rk_fold), then halves of the vranks */
    size_t segment;     /* reductions: bytes a rank of a segment (segments.h); 0: a usual one */
    bool strided;       /* its builder takes a stride, or rdispls: parts of the blocks where they are */
    int64_t min_count;  /* minimum elements of a block */
    size_t bytes_max;   /* of a block; 0: any */
    int ranks_max;      /* 0: any */
    /* Estimated time for size ranks and blocks of bytes. */
    double (*cost)(const struct rk_cost_model *m, int size, double bytes);
    /* The same for hosts with k ranks each; with RK_NEEDS_HOSTS. cost assumes 4. */
    double (*cost_hosts)(int hosts, int k, double bytes);
    const char *why;
    /* NULL: direct code instead of a schedule (RK_NEEDS_ARENA). */
    void (*build)(struct rk_sched *s, const struct rk_coll_call *c);
};

/* Slices of a ring: bytes of each rank's part, and their number in a segment. */
enum { RK_RING_PART = 128 << 10, RK_RING_SLICES = 64, RK_RING_SEGMENT = RK_RING_PART * RK_RING_SLICES };

extern const struct rk_algo rk_algos[];
extern const int rk_nalgos;

/* NULL if the collective has no such algorithm. */
const struct rk_algo *rk_algo_find(enum rk_coll_kind kind, const char *name, size_t len);

/* Shared by builders. */

/* Last part of a reduction: AVG divides. Returns the last step. */
struct rk_step *rk_build_finish(struct rk_sched *s, struct rk_step *after,
                                const struct rk_coll_call *c, void *buf, int64_t count);
/* dst = a op b with the operand of the lower rank first, so that partners get identical bits. */
struct rk_step *rk_build_reduce_pair(struct rk_sched *s, struct rk_step *after,
                                     const struct rk_coll_call *c, int peer, void *dst,
                                     const void *mine, const void *theirs, int64_t count);

/* Builders, by file. */
void rk_build_lines(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_slices(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_by_length(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_direct(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_device(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_barrier_dissemination(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_bcast_binomial(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_bcast_chain(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_bcast_scatter_ring(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_binomial(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_rabenseifner(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allreduce_doubling(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allreduce_rabenseifner(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allreduce_ring(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_gather_binomial(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_gather_linear(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_gatherv_linear(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_scatter_binomial(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_scatter_linear(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_scatterv_linear(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allgather_bruck(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allgather_doubling(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allgather_ring(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allgatherv_linear(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_scatter_halving(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_scatter_pairwise(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_scatter_ring(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_alltoall_bruck(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_alltoall_pairwise(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_barrier_two_level(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_bcast_two_level(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_two_level(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allreduce_two_level(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_allgather_two_level(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_scatter_two_level(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_alltoall_two_level(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_alltoallv_pairwise(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_scatterv_halving(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_reduce_scatterv_pairwise(struct rk_sched *s, const struct rk_coll_call *c);
void rk_build_scan_doubling(struct rk_sched *s, const struct rk_coll_call *c); /* and exscan */
void rk_build_scan_chain(struct rk_sched *s, const struct rk_coll_call *c);

#endif
