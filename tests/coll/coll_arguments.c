/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_arguments.c: refuse wrong arguments, without a message to the other ranks. */
#include "tests/coll/mp_coll.h"
#include "lib/base/compiler.h"

#include <string.h>

/* Blocks of different lengths, at root only. */
static void rooted_counts(struct coll_test *t)
{
    rank_team_t w = t->team;
    double a[8] = {0}, b[64] = {0};
    int64_t counts[64] = {0}, displs[64] = {0};
    rank_request_t req = RANK_REQUEST_NULL;

    MP_STATUS(rank_gatherv(a, 1, b, counts, displs, RANK_F64, t->size, w), RANK_ERR_RANK);
    MP_STATUS(rank_scatterv(a, counts, displs, b, 1, RANK_F64, -1, w), RANK_ERR_RANK);
    MP_STATUS(rank_gatherv(a, -1, b, counts, displs, RANK_F64, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_scatterv(a, counts, displs, b, -1, RANK_F64, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_igatherv(a, 1, b, counts, displs, RANK_F64, 0, w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_iscatterv(a, counts, displs, b, 1, RANK_F64, 0, w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_gatherv(a, 1, b, counts, displs, RANK_SUM, 0, w), RANK_ERR_DTYPE);
    if (t->rank != 0) {
        MP_STATUS(rank_gatherv(RANK_IN_PLACE, 1, b, counts, displs, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_gatherv(NULL, 1, b, counts, displs, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_scatterv(a, counts, displs, RANK_IN_PLACE, 1, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_scatterv(a, counts, displs, NULL, 1, RANK_F64, 0, w), RANK_ERR_ARG);
    } else {
        MP_STATUS(rank_gatherv(a, 0, b, NULL, displs, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_gatherv(a, 0, b, counts, NULL, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_scatterv(a, NULL, displs, b, 0, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_scatterv(a, counts, NULL, b, 0, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_gatherv(a, 2, b, counts, displs, RANK_F64, 0, w), RANK_ERR_COUNT);
        MP_STATUS(rank_scatterv(a, counts, displs, b, 2, RANK_F64, 0, w), RANK_ERR_COUNT);
        displs[t->size - 1] = -1;
        MP_STATUS(rank_gatherv(a, 0, b, counts, displs, RANK_F64, 0, w), RANK_ERR_COUNT);
        MP_STATUS(rank_scatterv(a, counts, displs, b, 0, RANK_F64, 0, w), RANK_ERR_COUNT);
        displs[t->size - 1] = (1ll << 59) + 1;
        MP_STATUS(rank_gatherv(a, 0, b, counts, displs, RANK_F64, 0, w), RANK_ERR_COUNT);
        displs[t->size - 1] = 0;
        counts[0] = 1;
        MP_STATUS(rank_gatherv(RANK_IN_PLACE, 1, RANK_IN_PLACE, counts, displs, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_gatherv(a, 1, NULL, counts, displs, RANK_F64, 0, w), RANK_ERR_ARG);
        MP_STATUS(rank_scatterv(NULL, counts, displs, b, 1, RANK_F64, 0, w), RANK_ERR_ARG);
        if (t->size > 1) {
            counts[0] = counts[1] = 1ll << 58;
            MP_STATUS(rank_scatterv(a, counts, displs, b, 1ll << 58, RANK_F64_COMPLEX, 0, w), RANK_ERR_COUNT);
        }
    }
    /* Nothing needs no buffers, and the arrays at root only. */
    counts[0] = counts[1] = 0;
    displs[t->size - 1] = 7;
    MP_OK(rank_gatherv(NULL, 0, NULL, t->rank ? NULL : counts, t->rank ? NULL : displs, RANK_F64, 0, w));
    MP_OK(rank_iscatterv(NULL, t->rank ? NULL : counts, t->rank ? NULL : displs, NULL, 0, RANK_F64, 0, w, &req));
    MP_OK(rank_wait(&req, NULL));
    t->checks += 24;
}

/* Blocks of different lengths between all ranks. */
static void pair_counts(struct coll_test *t)
{
    int64_t counts[64] = {0}, other[64] = {0}, displs[64] = {0}, wide[64] = {0};
    rank_request_t req = RANK_REQUEST_NULL;
    double a[64] = {0}, b[64] = {0};
    rank_team_t w = t->team;

    MP_STATUS(rank_alltoallv(a, NULL, displs, b, counts, displs, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_alltoallv(a, counts, NULL, b, counts, displs, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_alltoallv(a, counts, displs, b, NULL, displs, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_alltoallv(a, counts, displs, b, counts, NULL, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_ialltoallv(a, counts, displs, b, counts, displs, RANK_F64, w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_alltoallv(a, counts, displs, b, counts, displs, RANK_MAX, w), RANK_ERR_DTYPE);
    other[t->rank] = 1;
    MP_STATUS(rank_alltoallv(a, counts, displs, b, other, displs, RANK_F64, w), RANK_ERR_COUNT);
    MP_STATUS(rank_alltoallv(a, other, displs, RANK_IN_PLACE, other, displs, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_alltoallv(a, other, displs, NULL, other, displs, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_alltoallv(NULL, other, displs, b, other, displs, RANK_F64, w), RANK_ERR_ARG);
    wide[t->size - 1] = -1;
    MP_STATUS(rank_alltoallv(a, wide, displs, b, counts, displs, RANK_F64, w), RANK_ERR_COUNT);
    MP_STATUS(rank_alltoallv(a, counts, displs, b, counts, wide, RANK_F64, w), RANK_ERR_COUNT);
    wide[t->size - 1] = (1ll << 59) + 1;
    MP_STATUS(rank_alltoallv(a, counts, wide, b, counts, displs, RANK_F64, w), RANK_ERR_COUNT);
    if (RK_CHECK_OVERLAP && t->size > 1) {
        for (int r = 0; r < t->size; r++)
            counts[r] = 1;
        MP_STATUS(rank_alltoallv(a, counts, displs, b, counts, displs, RANK_F64, w), RANK_ERR_ARG);
        memset(counts, 0, sizeof(counts));
    }
    MP_OK(rank_alltoallv(NULL, counts, displs, NULL, counts, displs, RANK_F64, w));
    MP_OK(rank_ialltoallv(RANK_IN_PLACE, NULL, NULL, NULL, counts, displs, RANK_F64, w, &req));
    MP_OK(rank_wait(&req, NULL));
    t->checks += 16;
}

/* One rank is first, so its request is pending; the request of a freed team can only be freed. */
static void persistent(struct coll_test *t)
{
    rank_request_t req, other, never, null = RANK_REQUEST_NULL;
    rank_team_t dup;
    double x = 1, y = 0;

    MP_STATUS(rank_allreduce_init(&x, &y, 1, RANK_F64, RANK_SUM, t->team, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_allreduce_init(&x, &y, -1, RANK_F64, RANK_SUM, t->team, &null), RANK_ERR_COUNT);
    MP_STATUS(rank_allreduce_init(&x, NULL, 1, RANK_F64, RANK_SUM, t->team, &null), RANK_ERR_ARG);
    MP_STATUS(rank_bcast_init(&x, 1, RANK_F64, t->size, t->team, &null), RANK_ERR_RANK);
    MP_STATUS(rank_barrier_init(RANK_TEAM_NULL, &null), RANK_ERR_HANDLE);
    MP_CHECK(null == RANK_REQUEST_NULL);
    MP_OK(rank_barrier_init(t->team, &req));
    MP_OK(rank_wait(&req, NULL)); /* not started: complete */
    if (t->size > 1 && t->rank == 0) {
        MP_OK(rank_start(&req));
        MP_STATUS(rank_start(&req), RANK_ERR_STATE);
        MP_STATUS(rank_request_free(&req), RANK_ERR_NOT_SUPPORTED);
        MP_STATUS(rank_cancel(&req), RANK_ERR_NOT_SUPPORTED);
        for (int r = 1; r < t->size; r++)
            MP_OK(rank_send(NULL, 0, RANK_BYTE, r, 3, t->team));
    } else {
        if (t->size > 1)
            MP_OK(rank_recv(NULL, 0, RANK_BYTE, 0, 3, t->team, NULL));
        MP_OK(rank_start(&req));
    }
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_request_free(&req));

    MP_OK(rank_team_dup(t->team, &dup));
    MP_OK(rank_allreduce_init(&x, &y, 1, RANK_F64, RANK_SUM, dup, &other));
    MP_OK(rank_start(&other));
    MP_OK(rank_wait(&other, NULL));
    MP_CHECK(y == t->size);
    MP_OK(rank_team_free(&dup));
    MP_STATUS(rank_start(&other), RANK_ERR_HANDLE);
    MP_OK(rank_request_free(&other));
    MP_OK(rank_allreduce_init(&x, &y, 1, RANK_F64, RANK_SUM, t->team, &never)); /* rank_finalize frees it */
    t->checks += 10;
}

void coll_arguments(struct coll_test *t)
{
    rank_team_t w = t->team, bogus = (rank_team_t)(void *)&(uint64_t[64]){0};
    rank_request_t req = RANK_REQUEST_NULL;
    double a[8] = {0}, b[64] = {0};
    int64_t counts[64] = {0}, displs[64] = {0};
    bool root = t->rank == 0;

    MP_STATUS(rank_barrier(RANK_TEAM_NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_barrier(bogus), RANK_ERR_HANDLE);
    MP_STATUS(rank_ibarrier(w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_bcast(a, 1, RANK_F64, 0, RANK_TEAM_NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_bcast(a, -1, RANK_F64, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_bcast(a, INT64_MAX, RANK_F64, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_bcast(a, 1, RANK_SUM, 0, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_bcast(a, 1, (rank_dtype_t)-1, 0, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_bcast(a, 1, RANK_F64, t->size, w), RANK_ERR_RANK);
    MP_STATUS(rank_bcast(a, 1, RANK_F64, -1, w), RANK_ERR_RANK);
    MP_STATUS(rank_bcast(NULL, 1, RANK_F64, 0, w), RANK_ERR_ARG);
    MP_STATUS(rank_bcast(RANK_IN_PLACE, 1, RANK_F64, 0, w), RANK_ERR_ARG);
    MP_STATUS(rank_ibcast(a, 1, RANK_F64, 0, w, NULL), RANK_ERR_ARG);

    MP_STATUS(rank_allreduce(a, b, 1, RANK_F64, RANK_INT8, w), RANK_ERR_OP);
    MP_STATUS(rank_allreduce(a, b, 1, RANK_F64, (rank_op_t)-1, w), RANK_ERR_OP);
    MP_STATUS(rank_allreduce(a, b, 1, RANK_F64, RANK_BAND, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_allreduce(a, b, 1, RANK_INT32, RANK_AVG, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_allreduce(a, b, 1, RANK_F64_COMPLEX, RANK_MAX, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_allreduce(a, b, 1, RANK_F64, RANK_MINLOC, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_allreduce(NULL, b, 1, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_allreduce(a, NULL, 1, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_allreduce(a, RANK_IN_PLACE, 1, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_allreduce(a, b, -5, RANK_F64, RANK_SUM, w), RANK_ERR_COUNT);
    MP_STATUS(rank_iallreduce(a, b, 1, RANK_F64, RANK_SUM, w, NULL), RANK_ERR_ARG);

    MP_STATUS(rank_reduce(a, b, 1, RANK_F64, RANK_SUM, t->size + 3, w), RANK_ERR_RANK);
    MP_STATUS(rank_reduce(NULL, b, 1, RANK_F64, RANK_SUM, 0, w), RANK_ERR_ARG);
    if (root)
        MP_STATUS(rank_reduce(a, NULL, 1, RANK_F64, RANK_SUM, 0, w), RANK_ERR_ARG);
    else
        MP_STATUS(rank_reduce(RANK_IN_PLACE, b, 1, RANK_F64, RANK_SUM, 0, w), RANK_ERR_ARG);

    MP_STATUS(rank_gather(a, b, 1, RANK_F64, t->size, w), RANK_ERR_RANK);
    if (t->size > 1)
        MP_STATUS(rank_gather(a, b, INT64_MAX / 8, RANK_F64, 0, w), RANK_ERR_COUNT);
    MP_STATUS(rank_scatter(root ? NULL : a, root ? b : NULL, 1, RANK_F64, 0, w), RANK_ERR_ARG);
    MP_STATUS(rank_allgather(NULL, b, 1, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_alltoall(a, NULL, 1, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_reduce_scatter(a, b, -1, RANK_F64, RANK_SUM, w), RANK_ERR_COUNT);

    MP_STATUS(rank_allgatherv(a, 0, b, NULL, displs, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_allgatherv(a, 0, b, counts, NULL, RANK_F64, w), RANK_ERR_ARG);
    MP_STATUS(rank_allgatherv(a, 3, b, counts, displs, RANK_F64, w), RANK_ERR_COUNT);
    counts[0] = -1;
    MP_STATUS(rank_allgatherv(a, 0, b, counts, displs, RANK_F64, w), RANK_ERR_COUNT);

    MP_STATUS(rank_scan(a, b, 1, RANK_F64, RANK_AVG, w), RANK_ERR_OP);
    MP_STATUS(rank_exscan(a, b, 1, RANK_F32, RANK_AVG, w), RANK_ERR_OP);
    MP_STATUS(rank_scan(a, b, 1, RANK_INT32, RANK_AVG, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_scan(a, RANK_IN_PLACE, 1, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_exscan(NULL, b, 1, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_exscan(a, t->rank ? NULL : b, -1, RANK_F64, RANK_SUM, w), RANK_ERR_COUNT);
    if (t->rank > 0)
        MP_STATUS(rank_exscan(a, NULL, 1, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_iscan(a, b, 1, RANK_F64, RANK_SUM, w, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_reduce_scatterv(a, b, NULL, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_reduce_scatterv(a, b, displs, RANK_F64, RANK_BAND, w), RANK_ERR_DTYPE);
    MP_STATUS(rank_reduce_scatterv(a, b, displs, RANK_F64, RANK_F64, w), RANK_ERR_OP);
    counts[0] = -1;
    MP_STATUS(rank_reduce_scatterv(a, b, counts, RANK_F64, RANK_SUM, w), RANK_ERR_COUNT);
    for (int r = 0; r < t->size; r++)
        counts[r] = 1ll << 59;
    if (t->size > 1)
        MP_STATUS(rank_reduce_scatterv(a, b, counts, RANK_F64, RANK_SUM, w), RANK_ERR_COUNT);
    for (int r = 0; r < t->size; r++)
        counts[r] = 1;
    MP_STATUS(rank_reduce_scatterv(NULL, b, counts, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_reduce_scatterv(a, NULL, counts, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_reduce_scatterv(a, RANK_IN_PLACE, counts, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_reduce_scatterv(RANK_IN_PLACE, NULL, counts, RANK_F64, RANK_SUM, w), RANK_ERR_ARG);
    MP_STATUS(rank_ireduce_scatterv(a, b, counts, RANK_F64, RANK_SUM, w, NULL), RANK_ERR_ARG);
    MP_OK(rank_reduce_scatterv(NULL, NULL, displs, RANK_F64, RANK_SUM, w));
    persistent(t);
    rooted_counts(t);
    pair_counts(t);

    /* Nothing is fine everywhere, also as a request. */
    MP_OK(rank_bcast(NULL, 0, RANK_F64, 0, w));
    MP_OK(rank_allreduce(NULL, NULL, 0, RANK_F64, RANK_SUM, w));
    MP_OK(rank_alltoall(NULL, NULL, 0, RANK_F64, w));
    MP_OK(rank_iallreduce(NULL, NULL, 0, RANK_F64, RANK_SUM, w, &req));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK(req == RANK_REQUEST_NULL);
    t->checks += 40;
    MP_OK(rank_barrier(w));
}
