/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_coll.c: implement the collectives of rank.h.
 *
 * All calls pass rk_coll_enter. A blocking one runs directly in shared memory if the team and the size allow it.
 * Any other is a schedule.
 */
#include "collectives/average.h"
#include "collectives/coll.h"
#include "collectives/coll_kind.h"
#include "collectives/coll_mismatch.h"
#include "collectives/state.h"

/* Run a blocking call in shared memory. */
RK_INLINE rank_status_t arena_run(struct rk_arena *a, const struct rk_coll_call *c)
{
    size_t count = (size_t)c->count;
    rank_status_t st = RANK_OK;

    switch (c->kind) {
    case RK_COLL_BARRIER:
        return rk_arena_barrier(a);
    case RK_COLL_BCAST:
        return rk_arena_bcast(a, c->rbuf, c->bytes, c->root);
    case RK_COLL_REDUCE:
        st = rk_arena_reduce(a, c->sbuf, c->rbuf, count, c->bytes, c->fn, c->root);
        break;
    case RK_COLL_ALLREDUCE:
        st = rk_arena_allreduce(a, c->sbuf, c->rbuf, count, c->bytes, c->fn);
        break;
    case RK_COLL_GATHER:
        return rk_arena_gather(a, c->sbuf, c->rbuf, c->bytes, c->root);
    case RK_COLL_ALLGATHER:
        return rk_arena_allgather(a, c->sbuf, c->rbuf, c->bytes);
    case RK_COLL_SCATTER:
        return rk_arena_scatter(a, c->sbuf, c->rbuf, c->bytes, c->root);
    case RK_COLL_REDUCE_SCATTER:
        st = rk_arena_reduce_scatter(a, c->sbuf, c->rbuf, count, c->bytes, c->fn);
        break;
    case RK_COLL_ALLTOALL:
        return rk_arena_alltoall(a, c->sbuf, c->rbuf, c->bytes);
    case RK_COLL_SCAN:
    case RK_COLL_EXSCAN:
        return rk_arena_scan(a, c->sbuf, c->rbuf, count, c->bytes, c->fn, c->kind == RK_COLL_EXSCAN);
    case RK_COLL_ALLGATHERV:
    case RK_COLL_GATHERV:
    case RK_COLL_SCATTERV:
    case RK_COLL_ALLTOALLV:
    case RK_COLL_REDUCE_SCATTERV:
    case RK_COLL_COUNT:
        break;
    }
    if (c->op == RANK_AVG && !st && (c->kind != RK_COLL_REDUCE || c->team->rank == c->root))
        rk_op_divide(c->dtype, c->rbuf, count, c->team->size);
    return st;
}

/* May this rank leave the call before others have begun it? */
RK_INLINE bool leaves_early(const struct rk_coll_call *c)
{
    bool at_root = c->team->rank == c->root;

    return c->kind == RK_COLL_BCAST || c->kind == RK_COLL_SCATTER ? at_root
           : c->kind == RK_COLL_REDUCE || c->kind == RK_COLL_GATHER ? !at_root : false;
}

RK_INLINE rank_status_t arena_enter(struct rk_arena *a, const struct rk_coll_call *c)
{
    struct rk_coll_call copy;
    rank_status_t st;

    a->kind = (uint8_t)c->kind;
    st = rk_coll_may_begin(c->team);
    if (rk_unlikely(st)) {
        copy = *c;
        return rk_coll_returns(&copy, st);
    }
    rk_arena_next_call(a, c);
    if (rk_coll_shape[c->kind].reduces && c->kind != RK_COLL_SCAN && c->kind != RK_COLL_EXSCAN && rk_sums_halves(c)) {
        copy = *c; /* as in rk_coll_enter */
        st = rk_arena_sum_halves(a, &copy);
    } else {
        st = arena_run(a, c);
    }
    if (rk_unlikely(st)) {
        copy = *c;
        return rk_coll_returns(&copy, rk_call_failed(a, &copy, st));
    }
    if (leaves_early(c))
        rk_call_publish(a, rk_arena_call_number(c->team, a), rk_call_desc_of(c, RK_FORM_BLOCKING, 0));
    return RANK_OK;
}

RK_COLD rank_status_t rk_coll_in_arena(struct rk_arena *a, const struct rk_coll_call *c)
{
    return arena_enter(a, c);
}

/*
 * Check and run a call. req NULL: block; else return a request. Inlined into each blocking call, where kind is a
 * constant, so that the compiler keeps only what that collective needs.
 */
RK_INLINE rank_status_t rk_coll_enter(const struct rk_coll_call *call, rank_request_t *req)
{
    RK_ENTER_TEAM(call->team);
    struct rk_coll_call c = *call, copy;
    rank_status_t st = rk_coll_check(&c);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    if (req)
        return rk_coll_schedule(&c, req);
    a = rk_coll_has_counts(c.kind) ? NULL : rk_coll_arena(c.team, c.kind, c.bytes);
    if (!a || (rk_coll_shape[c.kind].reduces && rk_unlikely(c.user)) || rk_coll_is_empty(&c)) {
        copy = c; /* c itself would then be in memory on the other path too */
        st = rk_coll_schedule(&copy, NULL);
        return rk_likely(!st) ? st : rk_coll_returns(&copy, st);
    }
    return arena_enter(a, &c);
}

/* The nonblocking calls share one copy of that code. */
static __attribute__((noinline)) rank_status_t coll_enter_nb(const struct rk_coll_call *call, rank_request_t *req)
{
    return req ? rk_coll_enter(call, req) : rk_arg_null(call->name, "req");
}

#define CALL(what, ...) (&(const struct rk_coll_call){.name = __func__, .kind = RK_COLL_##what, __VA_ARGS__})

rank_status_t rank_barrier(rank_team_t team)
{
    return rk_coll_enter(CALL(BARRIER, .dtype = RANK_BYTE, .team = team), NULL);
}

rank_status_t rank_ibarrier(rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(CALL(BARRIER, .dtype = RANK_BYTE, .team = team), req);
}

rank_status_t rank_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team)
{
    return rk_coll_enter(CALL(BCAST, .rbuf = buf, .count = count, .dtype = dtype, .root = root, .team = team), NULL);
}

rank_status_t rank_ibcast(void *buf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(CALL(BCAST, .rbuf = buf, .count = count, .dtype = dtype, .root = root, .team = team), req);
}

rank_status_t rank_reduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team)
{
    return rk_coll_enter(CALL(REDUCE, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op, .root = root,
                              .team = team), NULL);
}

rank_status_t rank_ireduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, int root,
                           rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(CALL(REDUCE, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op, .root = root,
                              .team = team), req);
}

rank_status_t rank_allreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team)
{
    return rk_coll_enter(CALL(ALLREDUCE, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op, .team = team), NULL);
}

rank_status_t rank_iallreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                              rank_request_t *req)
{
    return coll_enter_nb(CALL(ALLREDUCE, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op, .team = team), req);
}

rank_status_t rk_worst_of_all(struct rank_team *team, rank_status_t mine)
{
    int32_t in = mine, all = mine;
    rank_status_t st = rank_allreduce(&in, &all, 1, RANK_INT32, RANK_MIN, team);

    return st ? st : (rank_status_t)all;
}

rank_status_t rank_gather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team)
{
    return rk_coll_enter(CALL(GATHER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .root = root,
                              .team = team), NULL);
}

rank_status_t rank_igather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team,
                           rank_request_t *req)
{
    return coll_enter_nb(CALL(GATHER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .root = root, .team = team), req);
}

rank_status_t rank_allgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_team_t team)
{
    return rk_coll_enter(CALL(ALLGATHER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .team = team), NULL);
}

rank_status_t rank_iallgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_team_t team,
                              rank_request_t *req)
{
    return coll_enter_nb(CALL(ALLGATHER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .team = team), req);
}

rank_status_t rank_allgatherv(const void *sbuf, int64_t scount, void *rbuf, const int64_t *rcounts, const int64_t *displs,
                              rank_dtype_t dtype, rank_team_t team)
{
    return rk_coll_enter(CALL(ALLGATHERV, .sbuf = sbuf, .count = scount, .rbuf = rbuf, .rcounts = rcounts, .rdispls = displs,
                              .dtype = dtype, .team = team), NULL);
}

rank_status_t rank_iallgatherv(const void *sbuf, int64_t scount, void *rbuf, const int64_t *rcounts, const int64_t *displs,
                               rank_dtype_t dtype, rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(CALL(ALLGATHERV, .sbuf = sbuf, .count = scount, .rbuf = rbuf, .rcounts = rcounts, .rdispls = displs,
                              .dtype = dtype, .team = team), req);
}

rank_status_t rank_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team)
{
    return rk_coll_enter(CALL(SCATTER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .root = root,
                              .team = team), NULL);
}

rank_status_t rank_iscatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team,
                            rank_request_t *req)
{
    return coll_enter_nb(CALL(SCATTER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .root = root,
                              .team = team), req);
}

/* Of a rank whose block is in place, the count of the other argument holds. */
#define GATHERV_CALL                                                                                                       \
    CALL(GATHERV, .sbuf = sbuf, .count = sbuf == RANK_IN_PLACE ? 0 : scount, .rbuf = rbuf, .rcounts = rcounts,            \
         .rdispls = displs, .dtype = dtype, .root = root, .team = team)
#define SCATTERV_CALL                                                                                                      \
    CALL(SCATTERV, .sbuf = sbuf, .scounts = scounts, .sdispls = displs, .rbuf = rbuf,                                     \
         .count = rbuf == RANK_IN_PLACE ? 0 : rcount, .dtype = dtype, .root = root, .team = team)

rank_status_t rank_gatherv(const void *sbuf, int64_t scount, void *rbuf, const int64_t *rcounts, const int64_t *displs,
                           rank_dtype_t dtype, int root, rank_team_t team)
{
    return rk_coll_enter(GATHERV_CALL, NULL);
}

rank_status_t rank_igatherv(const void *sbuf, int64_t scount, void *rbuf, const int64_t *rcounts, const int64_t *displs,
                            rank_dtype_t dtype, int root, rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(GATHERV_CALL, req);
}

rank_status_t rank_scatterv(const void *sbuf, const int64_t *scounts, const int64_t *displs, void *rbuf, int64_t rcount,
                            rank_dtype_t dtype, int root, rank_team_t team)
{
    return rk_coll_enter(SCATTERV_CALL, NULL);
}

rank_status_t rank_iscatterv(const void *sbuf, const int64_t *scounts, const int64_t *displs, void *rbuf, int64_t rcount,
                             rank_dtype_t dtype, int root, rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(SCATTERV_CALL, req);
}

rank_status_t rank_reduce_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team)
{
    return rk_coll_enter(CALL(REDUCE_SCATTER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op,
                              .team = team), NULL);
}

rank_status_t rank_ireduce_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                   rank_request_t *req)
{
    return coll_enter_nb(CALL(REDUCE_SCATTER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op,
                              .team = team), req);
}

rank_status_t rank_alltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_team_t team)
{
    return rk_coll_enter(CALL(ALLTOALL, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .team = team), NULL);
}

rank_status_t rank_ialltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(CALL(ALLTOALL, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .team = team), req);
}

#define ALLTOALLV_CALL                                                                                                     \
    CALL(ALLTOALLV, .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .rbuf = rbuf, .rcounts = rcounts,               \
         .rdispls = rdispls, .dtype = dtype, .team = team)

rank_status_t rank_alltoallv(const void *sbuf, const int64_t *scounts, const int64_t *sdispls, void *rbuf,
                             const int64_t *rcounts, const int64_t *rdispls, rank_dtype_t dtype, rank_team_t team)
{
    return rk_coll_enter(ALLTOALLV_CALL, NULL);
}

rank_status_t rank_ialltoallv(const void *sbuf, const int64_t *scounts, const int64_t *sdispls, void *rbuf,
                              const int64_t *rcounts, const int64_t *rdispls, rank_dtype_t dtype, rank_team_t team,
                              rank_request_t *req)
{
    return coll_enter_nb(ALLTOALLV_CALL, req);
}

#define REDUCE_SCATTERV_CALL                                                                                               \
    CALL(REDUCE_SCATTERV, .sbuf = sbuf, .rbuf = rbuf, .rcounts = rcounts, .dtype = dtype, .op = op, .team = team)

rank_status_t rank_reduce_scatterv(const void *sbuf, void *rbuf, const int64_t *rcounts, rank_dtype_t dtype, rank_op_t op,
                                   rank_team_t team)
{
    return rk_coll_enter(REDUCE_SCATTERV_CALL, NULL);
}

rank_status_t rank_ireduce_scatterv(const void *sbuf, void *rbuf, const int64_t *rcounts, rank_dtype_t dtype, rank_op_t op,
                                    rank_team_t team, rank_request_t *req)
{
    return coll_enter_nb(REDUCE_SCATTERV_CALL, req);
}

#define SCAN_CALL(what)                                                                                                    \
    CALL(what, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op, .team = team)

rank_status_t rank_scan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team)
{
    return rk_coll_enter(SCAN_CALL(SCAN), NULL);
}

rank_status_t rank_iscan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                         rank_request_t *req)
{
    return coll_enter_nb(SCAN_CALL(SCAN), req);
}

rank_status_t rank_exscan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team)
{
    return rk_coll_enter(SCAN_CALL(EXSCAN), NULL);
}

rank_status_t rank_iexscan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                           rank_request_t *req)
{
    return coll_enter_nb(SCAN_CALL(EXSCAN), req);
}

RK_PUBLIC(rank_barrier); RK_PUBLIC(rank_bcast); RK_PUBLIC(rank_reduce); RK_PUBLIC(rank_allreduce); RK_PUBLIC(rank_gather);
RK_PUBLIC(rank_allgather); RK_PUBLIC(rank_allgatherv); RK_PUBLIC(rank_scatter); RK_PUBLIC(rank_reduce_scatter);
RK_PUBLIC(rank_alltoall);
RK_PUBLIC(rank_ibarrier); RK_PUBLIC(rank_ibcast); RK_PUBLIC(rank_ireduce); RK_PUBLIC(rank_iallreduce); RK_PUBLIC(rank_igather);
RK_PUBLIC(rank_iallgather); RK_PUBLIC(rank_iallgatherv); RK_PUBLIC(rank_iscatter); RK_PUBLIC(rank_ireduce_scatter);
RK_PUBLIC(rank_ialltoall);
RK_PUBLIC(rank_gatherv); RK_PUBLIC(rank_igatherv); RK_PUBLIC(rank_scatterv); RK_PUBLIC(rank_iscatterv);
RK_PUBLIC(rank_alltoallv); RK_PUBLIC(rank_ialltoallv);
RK_PUBLIC(rank_reduce_scatterv); RK_PUBLIC(rank_ireduce_scatterv);
RK_PUBLIC(rank_scan); RK_PUBLIC(rank_iscan); RK_PUBLIC(rank_exscan); RK_PUBLIC(rank_iexscan);
