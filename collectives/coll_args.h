/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_args.h: check and normalize the arguments of collectives.
 *
 * Each function fills a struct rk_coll_call, or reports an error of the public function call and returns it. A
 * buffer that only the root uses is not checked on other ranks.
 */
#ifndef RK_COLLECTIVES_COLL_ARGS_H
#define RK_COLLECTIVES_COLL_ARGS_H

#include "collectives/algo.h"

rank_status_t rk_args_barrier(const char *call, struct rk_coll_call *c, rank_team_t team);
rank_status_t rk_args_bcast(const char *call, struct rk_coll_call *c, void *buf, int64_t count, rank_dtype_t dtype,
                            int root, rank_team_t team);
rank_status_t rk_args_reduce(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                             rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team);
rank_status_t rk_args_allreduce(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team);
rank_status_t rk_args_gather(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                             rank_dtype_t dtype, int root, rank_team_t team);
rank_status_t rk_args_allgather(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                int64_t count, rank_dtype_t dtype, rank_team_t team);
rank_status_t rk_args_allgatherv(const char *call, struct rk_coll_call *c, const void *sbuf, int64_t scount,
                                 void *rbuf, const int64_t *rcounts, const int64_t *displs,
                                 rank_dtype_t dtype, rank_team_t team);
rank_status_t rk_args_scatter(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                              rank_dtype_t dtype, int root, rank_team_t team);
rank_status_t rk_args_reduce_scatter(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                     int64_t count, rank_dtype_t dtype, rank_op_t op,
                                     rank_team_t team);
rank_status_t rk_args_alltoall(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                               rank_dtype_t dtype, rank_team_t team);

#endif
