/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * any_coll.h: make a collective call of any kind and form, and check its result.
 *
 * All ranks of the team draw the same call from equal seeds. Guards lie around the receive buffer, and gaps between
 * blocks of their own lengths.
 */
#ifndef TESTS_COLL_ANY_COLL_H
#define TESTS_COLL_ANY_COLL_H

#include "tests/mp/mp.h"

enum any_kind {
    ANY_BARRIER, ANY_BCAST, ANY_REDUCE, ANY_ALLREDUCE, ANY_GATHER, ANY_ALLGATHER, ANY_SCATTER, ANY_REDUCE_SCATTER,
    ANY_ALLTOALL, ANY_SCAN, ANY_EXSCAN, ANY_GATHERV, ANY_ALLGATHERV, ANY_SCATTERV, ANY_REDUCE_SCATTERV, ANY_ALLTOALLV,
    ANY_KINDS
};
enum any_form { ANY_BLOCKING, ANY_NONBLOCKING, ANY_PERSISTENT, ANY_FORMS };

struct any_coll {
    rank_team_t team;
    rank_op_t op;   /* of UINT64: a sum */
    enum any_kind kind;
    enum any_form form;
    int rank, size, root;
    int64_t count;  /* elements of a block */
    uint64_t key;   /* of the inputs */
    uint64_t *in, *out; /* out: behind a guard */
    int64_t *counts, *displs, elements; /* of blocks in either buffer, with all gaps */
    rank_request_t req;
};

/* Draw form, root and inputs, and allocate the buffers. */
void any_coll_open(struct any_coll *c, rank_team_t team, enum any_kind kind, int64_t count, rank_op_t op, uint64_t *seed);
/* A blocking call is done when it returns, with its status; other forms, if RANK_OK, need any_coll_finish. */
rank_status_t any_coll_start(struct any_coll *c);
/* Wait. No-op after a blocking call. */
rank_status_t any_coll_finish(struct any_coll *c);
/* Fail unless the result is right, and guards, gaps and the input are as they were. */
void any_coll_check(const struct any_coll *c);
/* The same without the result. */
void any_coll_check_guards(const struct any_coll *c);
/* Free the buffers, and a persistent request. */
void any_coll_close(struct any_coll *c);

const char *any_coll_name(enum any_kind kind);

#endif
