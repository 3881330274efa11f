/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_init.h: declare persistent collective operations. Part of rank.h. */
#ifndef RANK_COLL_INIT_H
#define RANK_COLL_INIT_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- rank_coll_init: persistent collective operations */

/*
 * Create a persistent request for the operation of the same name. rank_start starts it. Every rank of team makes the call,
 * in the same order as other collectives, and it may wait for the others. The arguments before req are those of the
 * blocking call. Arrays of counts are copied.
 *
 * Each start is a collective call of the team: all ranks make the starts in the same order among the team's
 * collectives. A start reads the buffers that the operation sends. It matches starts only, not a blocking or
 * nonblocking call.
 *
 * A started request is pending until a test or wait call ends it. rank_request_free frees one that is not pending. After
 * rank_team_free the request can only be freed.
 */
RANK_API rank_status_t rank_barrier_init(rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_bcast_init(void *buf, int64_t count, rank_dtype_t dtype, int root,
                                       rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_reduce_init(const void *sbuf, void *rbuf, int64_t count,
                                        rank_dtype_t dtype, rank_op_t op, int root,
                                        rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_allreduce_init(const void *sbuf, void *rbuf, int64_t count,
                                           rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                           rank_request_t *req);
RANK_API rank_status_t rank_gather_init(const void *sbuf, void *rbuf, int64_t count,
                                        rank_dtype_t dtype, int root, rank_team_t team,
                                        rank_request_t *req);
RANK_API rank_status_t rank_allgather_init(const void *sbuf, void *rbuf, int64_t count,
                                           rank_dtype_t dtype, rank_team_t team,
                                           rank_request_t *req);
RANK_API rank_status_t rank_allgatherv_init(const void *sbuf, int64_t scount, void *rbuf,
                                            const int64_t *rcounts, const int64_t *displs,
                                            rank_dtype_t dtype, rank_team_t team,
                                            rank_request_t *req);
RANK_API rank_status_t rank_scatter_init(const void *sbuf, void *rbuf, int64_t count,
                                         rank_dtype_t dtype, int root, rank_team_t team,
                                         rank_request_t *req);
RANK_API rank_status_t rank_gatherv_init(const void *sbuf, int64_t scount, void *rbuf,
                                         const int64_t *rcounts, const int64_t *displs,
                                         rank_dtype_t dtype, int root, rank_team_t team,
                                         rank_request_t *req);
RANK_API rank_status_t rank_scatterv_init(const void *sbuf, const int64_t *scounts,
                                          const int64_t *displs, void *rbuf, int64_t rcount,
                                          rank_dtype_t dtype, int root, rank_team_t team,
                                          rank_request_t *req);
RANK_API rank_status_t rank_reduce_scatter_init(const void *sbuf, void *rbuf, int64_t count,
                                                rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                                rank_request_t *req);
RANK_API rank_status_t rank_alltoall_init(const void *sbuf, void *rbuf, int64_t count,
                                          rank_dtype_t dtype, rank_team_t team,
                                          rank_request_t *req);
RANK_API rank_status_t rank_alltoallv_init(const void *sbuf, const int64_t *scounts, const int64_t *sdispls, void *rbuf,
                                           const int64_t *rcounts, const int64_t *rdispls, rank_dtype_t dtype,
                                           rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_reduce_scatterv_init(const void *sbuf, void *rbuf, const int64_t *rcounts, rank_dtype_t dtype,
                                                 rank_op_t op, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_scan_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
                                      rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_exscan_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
                                        rank_team_t team, rank_request_t *req);

#ifdef __cplusplus
}
#endif

#endif
