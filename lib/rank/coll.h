/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.h: declare collective operations. Part of rank.h. */
#ifndef RANK_COLL_H
#define RANK_COLL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------- rank_coll: collective operations */

/*
 * Every rank calls the same form: a blocking call does not match a nonblocking one. Buffers of different arguments
 * must not overlap. On equal team size and placement, a reduction gives the same bits in every run, except sign and
 * payload of a NaN.
 *
 * MIN and MAX give a NaN if one input is a NaN, as fminimum and fmaximum of C23 do. MINLOC and MAXLOC give the NaN with the
 * lowest index. LAND, LOR and LXOR give 0 or 1, also in a team of one.
 *
 * RANK_IN_PLACE takes the input from the output buffer:
 *   - allreduce, reduce_scatter, reduce_scatterv, allgather, allgatherv, alltoall, alltoallv, scan, exscan: as
 *     sbuf, on every rank.
 *   - reduce, gather, gatherv: as sbuf, at root only. scatter, scatterv: as rbuf, at root only.
 *   - In gathers the input is this rank's block of rbuf. In alltoall and alltoallv it is all of rbuf.
 *   - In reduce_scatter and reduce_scatterv all of the input is in rbuf. The result is written to its start; the rest
 *     is undefined afterwards.
 *
 * All ranks give the same collective, form (blocking, nonblocking, persistent), count, dtype, op and root, and lists of
 * counts where those are equal. A datatype of rank_dtype_create is compared by its size. If a call differs, the log
 * names what differs, and no rank gets data of another call. A rank that gets no data, as the root of rank_bcast,
 * may return success.
 *
 * RANK_ERR_COLLECTIVE: the call failed on another rank, or the ranks did not make the same call. Every later collective
 * of team returns it. Messages and other teams go on.
 * RANK_ERR_PEER_DEAD: a rank of team failed. Every later collective of team returns it, unless it returned
 * RANK_ERR_COLLECTIVE before.
 */

/* Wait until every rank of team has called it. */
RANK_API rank_status_t rank_barrier(rank_team_t team);

/* Copy count elements from root to every rank. */
RANK_API rank_status_t rank_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root,
                                  rank_team_t team);

/* Combine count elements of every rank, at root, or on every rank. At other ranks rbuf is not used. */
RANK_API rank_status_t rank_reduce(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team);
RANK_API rank_status_t rank_allreduce(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_op_t op, rank_team_t team);

/* Collect count elements of every rank, at root, or on every rank. rbuf holds size * count, in rank order. */
RANK_API rank_status_t rank_gather(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, int root, rank_team_t team);
RANK_API rank_status_t rank_allgather(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_team_t team);

/* Collect different counts on every rank. rcounts and displs have an entry a rank, in elements. They are equal on every
 * rank, and are read during the call only. */
RANK_API rank_status_t rank_allgatherv(const void *sbuf, int64_t scount, void *rbuf,
                                       const int64_t *rcounts, const int64_t *displs,
                                       rank_dtype_t dtype, rank_team_t team);

/* Distribute the blocks of sbuf at root. count is the number of elements that each rank receives. */
RANK_API rank_status_t rank_scatter(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, int root, rank_team_t team);

/* Collect different counts at root. rcounts and displs have an entry a rank, in elements. They and rbuf are used at
 * root only, during the call. scount is rcounts[rank] of the root, else the call fails. */
RANK_API rank_status_t rank_gatherv(const void *sbuf, int64_t scount, void *rbuf,
                                    const int64_t *rcounts, const int64_t *displs,
                                    rank_dtype_t dtype, int root, rank_team_t team);

/* Distribute different counts of sbuf at root. scounts and displs have an entry a rank, in elements. They and sbuf
 * are used at root only, during the call. rcount is scounts[rank] of the root. */
RANK_API rank_status_t rank_scatterv(const void *sbuf, const int64_t *scounts,
                                     const int64_t *displs, void *rbuf, int64_t rcount,
                                     rank_dtype_t dtype, int root, rank_team_t team);

/* Combine size * count elements of every rank. Rank i receives block i, of count elements. */
RANK_API rank_status_t rank_reduce_scatter(const void *sbuf, void *rbuf, int64_t count,
                                           rank_dtype_t dtype, rank_op_t op, rank_team_t team);

/* Combine the sum of rcounts elements of every rank. Rank i receives block i, of rcounts[i] elements. rcounts has an entry a
 * rank, is equal on every rank, and is read during the call only. */
RANK_API rank_status_t rank_reduce_scatterv(const void *sbuf, void *rbuf, const int64_t *rcounts,
                                            rank_dtype_t dtype, rank_op_t op, rank_team_t team);

/* Combine count elements of the ranks up to this one, in their order: with this rank in scan, without it in exscan. In exscan
 * rbuf of rank 0 is left as it is, and may be NULL. RANK_AVG is RANK_ERR_OP. */
RANK_API rank_status_t rank_scan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                                 rank_op_t op, rank_team_t team);
RANK_API rank_status_t rank_exscan(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, rank_op_t op, rank_team_t team);

/* Send block i of sbuf to rank i. count is the number of elements for each peer. */
RANK_API rank_status_t rank_alltoall(const void *sbuf, void *rbuf, int64_t count,
                                     rank_dtype_t dtype, rank_team_t team);

/* Send different counts to each rank. The arrays have an entry a rank, in elements, and are read during the call only.
 * scounts[j] of rank i is rcounts[i] of rank j, else the call fails. RANK_IN_PLACE as sbuf ignores scounts and sdispls: each
 * pair of ranks then exchanges blocks of equal counts. */
RANK_API rank_status_t rank_alltoallv(const void *sbuf, const int64_t *scounts,
                                      const int64_t *sdispls, void *rbuf, const int64_t *rcounts,
                                      const int64_t *rdispls, rank_dtype_t dtype,
                                      rank_team_t team);

/* Start the operation of the same name, with its arguments. A test or wait call completes *req and frees it. */
RANK_API rank_status_t rank_ibarrier(rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ibcast(void *buf, int64_t count, rank_dtype_t dtype, int root,
                                   rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ireduce(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team,
                                    rank_request_t *req);
RANK_API rank_status_t rank_iallreduce(const void *sbuf, void *rbuf, int64_t count,
                                       rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                       rank_request_t *req);
RANK_API rank_status_t rank_igather(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, int root, rank_team_t team,
                                    rank_request_t *req);
RANK_API rank_status_t rank_iallgather(const void *sbuf, void *rbuf, int64_t count,
                                       rank_dtype_t dtype, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_iallgatherv(const void *sbuf, int64_t scount, void *rbuf,
                                        const int64_t *rcounts, const int64_t *displs,
                                        rank_dtype_t dtype, rank_team_t team,
                                        rank_request_t *req);
RANK_API rank_status_t rank_iscatter(const void *sbuf, void *rbuf, int64_t count,
                                     rank_dtype_t dtype, int root, rank_team_t team,
                                     rank_request_t *req);
RANK_API rank_status_t rank_igatherv(const void *sbuf, int64_t scount, void *rbuf,
                                     const int64_t *rcounts, const int64_t *displs,
                                     rank_dtype_t dtype, int root, rank_team_t team,
                                     rank_request_t *req);
RANK_API rank_status_t rank_iscatterv(const void *sbuf, const int64_t *scounts,
                                      const int64_t *displs, void *rbuf, int64_t rcount,
                                      rank_dtype_t dtype, int root, rank_team_t team,
                                      rank_request_t *req);
RANK_API rank_status_t rank_ireduce_scatter(const void *sbuf, void *rbuf, int64_t count,
                                            rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                            rank_request_t *req);
RANK_API rank_status_t rank_ireduce_scatterv(const void *sbuf, void *rbuf, const int64_t *rcounts,
                                             rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                             rank_request_t *req);
RANK_API rank_status_t rank_iscan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                                  rank_op_t op, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_iexscan(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                    rank_request_t *req);
RANK_API rank_status_t rank_ialltoall(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ialltoallv(const void *sbuf, const int64_t *scounts,
                                       const int64_t *sdispls, void *rbuf, const int64_t *rcounts,
                                       const int64_t *rdispls, rank_dtype_t dtype,
                                       rank_team_t team, rank_request_t *req);

#ifdef __cplusplus
}
#endif

#endif
