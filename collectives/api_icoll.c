/* SPDX-License-Identifier: BSD-3-Clause */
/* api_icoll.c: implement the nonblocking collectives of rank.h, as schedules. */
#include "collectives/coll_args.h"
#include "collectives/trivial.h"
#include "collectives/state.h"

static rank_status_t api_icoll_start(const char *call, const struct rk_coll_call *c, rank_request_t *req)
{
    if (!req)
        return rk_arg_null(call, "req");
    return rk_is_local(c) ? rk_local_do(c, req) : rk_coll_start(c, req);
}

rank_status_t rank_ibarrier(rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_barrier(__func__, &c, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_ibcast(void *buf, int64_t count, rank_dtype_t dtype, int root,
                          rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_bcast(__func__, &c, buf, count, dtype, root, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_ireduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                           rank_op_t op, int root, rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_reduce(__func__, &c, sbuf, rbuf, count, dtype, op, root, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_iallreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                              rank_op_t op, rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_allreduce(__func__, &c, sbuf, rbuf, count, dtype, op, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_igather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                           int root, rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_gather(__func__, &c, sbuf, rbuf, count, dtype, root, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_iallgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                              rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_allgather(__func__, &c, sbuf, rbuf, count, dtype, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_iallgatherv(const void *sbuf, int64_t scount, void *rbuf,
                               const int64_t *rcounts, const int64_t *displs, rank_dtype_t dtype,
                               rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_allgatherv(__func__, &c, sbuf, scount, rbuf, rcounts, displs, dtype, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_iscatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                            int root, rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_scatter(__func__, &c, sbuf, rbuf, count, dtype, root, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_ireduce_scatter(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                   rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_reduce_scatter(__func__, &c, sbuf, rbuf, count, dtype, op, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}

rank_status_t rank_ialltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                             rank_team_t team, rank_request_t *req)
{
    RK_ENTER_TEAM(team);
    struct rk_coll_call c;
    rank_status_t st = rk_args_alltoall(__func__, &c, sbuf, rbuf, count, dtype, team);

    return st ? st : api_icoll_start(__func__, &c, req);
}
