/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_coll.c: implement the blocking collectives of rank.h.
 *
 * A call runs directly in shared memory if the team and the size allow it, else as a schedule that it waits for.
 */
#include "collectives/coll_args.h"
#include "collectives/trivial.h"
#include "collectives/state.h"

/* Everything but the fast path. */
static rank_status_t api_coll_run(const struct rk_coll_call *c)
{
    return rk_is_local(c) ? rk_local_do(c, NULL) : rk_coll_run(c);
}

/* Arena for this call, or NULL. Empty blocks are handled locally. */
RK_INLINE struct rk_arena *arena_for(const struct rk_coll_call *c, rank_status_t *st)
{
    struct rk_arena *a = rk_coll_arena(c->team, c->kind, c->bytes);

    if (!a || (c->bytes == 0 && c->kind != RK_COLL_BARRIER))
        return NULL;
    a->kind = (uint8_t)c->kind;
    *st = rk_coll_may_begin(c->team);
    return a;
}

RK_INLINE void divide_if_avg(const struct rk_coll_call *c)
{
    if (c->op == RANK_AVG)
        rk_op_divide(c->dtype, c->rbuf, (size_t)c->count, c->team->size);
}

rank_status_t rank_barrier(rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_barrier(__func__, &c, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    return st ? st : rk_arena_barrier(a);
}

rank_status_t rank_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_bcast(__func__, &c, buf, count, dtype, root, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    return st ? st : rk_arena_bcast(a, buf, c.bytes, root);
}

rank_status_t rank_reduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                          rank_op_t op, int root, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_reduce(__func__, &c, sbuf, rbuf, count, dtype, op, root, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    if (!st)
        st = rk_arena_reduce(a, c.sbuf, c.rbuf, (size_t)count, c.bytes, c.fn, root);
    if (!st && team->rank == root)
        divide_if_avg(&c);
    return st;
}

rank_status_t rank_allreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                             rank_op_t op, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_allreduce(__func__, &c, sbuf, rbuf, count, dtype, op, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    if (!st)
        st = rk_arena_allreduce(a, c.sbuf, c.rbuf, (size_t)count, c.bytes, c.fn);
    if (!st)
        divide_if_avg(&c);
    return st;
}

rank_status_t rank_gather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                          int root, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_gather(__func__, &c, sbuf, rbuf, count, dtype, root, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    return st ? st : rk_arena_gather(a, c.sbuf, c.rbuf, c.bytes, root);
}

rank_status_t rank_allgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                             rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_allgather(__func__, &c, sbuf, rbuf, count, dtype, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    return st ? st : rk_arena_allgather(a, c.sbuf, c.rbuf, c.bytes);
}

rank_status_t rank_allgatherv(const void *sbuf, int64_t scount, void *rbuf, const int64_t *rcounts,
                              const int64_t *displs, rank_dtype_t dtype, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_allgatherv(__func__, &c, sbuf, scount, rbuf, rcounts, displs, dtype, team);

    return st ? st : api_coll_run(&c);
}

rank_status_t rank_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                           int root, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_scatter(__func__, &c, sbuf, rbuf, count, dtype, root, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    return st ? st : rk_arena_scatter(a, c.sbuf, c.rbuf, c.bytes, root);
}

rank_status_t rank_reduce_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                                  rank_op_t op, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_reduce_scatter(__func__, &c, sbuf, rbuf, count, dtype, op, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    if (!st)
        st = rk_arena_reduce_scatter(a, c.sbuf, c.rbuf, (size_t)count, c.bytes, c.fn);
    if (!st)
        divide_if_avg(&c);
    return st;
}

rank_status_t rank_alltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                            rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_alltoall(__func__, &c, sbuf, rbuf, count, dtype, team);
    struct rk_arena *a;

    if (rk_unlikely(st))
        return st;
    a = arena_for(&c, &st);
    if (!a)
        return api_coll_run(&c);
    return st ? st : rk_arena_alltoall(a, c.sbuf, c.rbuf, c.bytes);
}
