/* SPDX-License-Identifier: BSD-3-Clause */
/* api_coll_init.c: implement the persistent collectives of rank.h. */
#include "collectives/coll_args.h"
#include "collectives/state.h"

static rank_status_t coll_init_request(const struct rk_coll_call *call, rank_request_t *req)
{
    RK_ENTER_TEAM(call->team);
    struct rk_coll_call c = *call;
    rank_status_t st = req ? rk_coll_check(&c) : rk_arg_null(call->name, "req");

    return st ? st : rk_coll_persist(&c, req);
}

#define INIT(what, ...)                                                                                                 \
    coll_init_request(&(const struct rk_coll_call){.name = __func__, .kind = RK_COLL_##what, .team = team, __VA_ARGS__}, req)

rank_status_t rank_barrier_init(rank_team_t team, rank_request_t *req)
{
    return INIT(BARRIER, .dtype = RANK_BYTE);
}

rank_status_t rank_bcast_init(void *buf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team, rank_request_t *req)
{
    return INIT(BCAST, .rbuf = buf, .count = count, .dtype = dtype, .root = root);
}

rank_status_t rank_reduce_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, int root,
                               rank_team_t team, rank_request_t *req)
{
    return INIT(REDUCE, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op, .root = root);
}

rank_status_t rank_allreduce_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
                                  rank_team_t team, rank_request_t *req)
{
    return INIT(ALLREDUCE, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op);
}

rank_status_t rank_gather_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team,
                               rank_request_t *req)
{
    return INIT(GATHER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .root = root);
}

rank_status_t rank_allgather_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_team_t team,
                                  rank_request_t *req)
{
    return INIT(ALLGATHER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype);
}

rank_status_t rank_allgatherv_init(const void *sbuf, int64_t scount, void *rbuf, const int64_t *rcounts,
                                   const int64_t *displs, rank_dtype_t dtype, rank_team_t team, rank_request_t *req)
{
    return INIT(ALLGATHERV, .sbuf = sbuf, .count = scount, .rbuf = rbuf, .rcounts = rcounts, .rdispls = displs,
                .dtype = dtype);
}

rank_status_t rank_scatter_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root, rank_team_t team,
                                rank_request_t *req)
{
    return INIT(SCATTER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .root = root);
}

rank_status_t rank_gatherv_init(const void *sbuf, int64_t scount, void *rbuf, const int64_t *rcounts, const int64_t *displs,
                                rank_dtype_t dtype, int root, rank_team_t team, rank_request_t *req)
{
    return INIT(GATHERV, .sbuf = sbuf, .count = sbuf == RANK_IN_PLACE ? 0 : scount, .rbuf = rbuf, .rcounts = rcounts,
                .rdispls = displs, .dtype = dtype, .root = root);
}

rank_status_t rank_scatterv_init(const void *sbuf, const int64_t *scounts, const int64_t *displs, void *rbuf, int64_t rcount,
                                 rank_dtype_t dtype, int root, rank_team_t team, rank_request_t *req)
{
    return INIT(SCATTERV, .sbuf = sbuf, .scounts = scounts, .sdispls = displs, .rbuf = rbuf,
                .count = rbuf == RANK_IN_PLACE ? 0 : rcount, .dtype = dtype, .root = root);
}

rank_status_t rank_reduce_scatter_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
                                       rank_team_t team, rank_request_t *req)
{
    return INIT(REDUCE_SCATTER, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op);
}

rank_status_t rank_alltoall_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_team_t team,
                                 rank_request_t *req)
{
    return INIT(ALLTOALL, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype);
}

rank_status_t rank_alltoallv_init(const void *sbuf, const int64_t *scounts, const int64_t *sdispls, void *rbuf,
                                  const int64_t *rcounts, const int64_t *rdispls, rank_dtype_t dtype, rank_team_t team,
                                  rank_request_t *req)
{
    return INIT(ALLTOALLV, .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .rbuf = rbuf, .rcounts = rcounts,
                .rdispls = rdispls, .dtype = dtype);
}

rank_status_t rank_reduce_scatterv_init(const void *sbuf, void *rbuf, const int64_t *rcounts, rank_dtype_t dtype, rank_op_t op,
                                        rank_team_t team, rank_request_t *req)
{
    return INIT(REDUCE_SCATTERV, .sbuf = sbuf, .rbuf = rbuf, .rcounts = rcounts, .dtype = dtype, .op = op);
}

rank_status_t rank_scan_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                             rank_request_t *req)
{
    return INIT(SCAN, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op);
}

rank_status_t rank_exscan_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                               rank_request_t *req)
{
    return INIT(EXSCAN, .sbuf = sbuf, .rbuf = rbuf, .count = count, .dtype = dtype, .op = op);
}

RK_PUBLIC(rank_barrier_init); RK_PUBLIC(rank_bcast_init); RK_PUBLIC(rank_reduce_init); RK_PUBLIC(rank_allreduce_init);
RK_PUBLIC(rank_gather_init); RK_PUBLIC(rank_allgather_init); RK_PUBLIC(rank_allgatherv_init);
RK_PUBLIC(rank_scatter_init); RK_PUBLIC(rank_gatherv_init); RK_PUBLIC(rank_scatterv_init);
RK_PUBLIC(rank_reduce_scatter_init); RK_PUBLIC(rank_alltoall_init); RK_PUBLIC(rank_alltoallv_init);
RK_PUBLIC(rank_reduce_scatterv_init); RK_PUBLIC(rank_scan_init); RK_PUBLIC(rank_exscan_init);
