/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * any_coll.h: make a collective call of any kind and form, and check its result.
 *
 * All ranks of the team draw the same call from equal seeds. Guards lie around the receive buffer, and gaps between
 * blocks of their own lengths, which may be empty.
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

/* Buffers that are no host memory. */
struct any_memory {
    void *(*alloc)(size_t bytes);
    void (*release)(void *at);
    void (*copy)(void *to, const void *from, size_t bytes, bool in); /* in: from host memory, else to it */
};

struct any_coll {
    rank_team_t team;
    rank_op_t op;       /* one of the program: a sum of UINT64 */
    rank_dtype_t dtype;
    enum any_kind kind;
    enum any_form form;
    const struct any_memory *in_memory, *out_memory; /* NULL: host memory */
    bool in_place, bare; /* bare: NULL for what is used at the root only */
    int rank, size, root;
    int64_t count;  /* elements of a block; of the longest one */
    uint64_t key;   /* of the inputs */
    /* From the first start on: */
    char *in, *out; /* out: behind a guard */
    char *kept_in, *kept_out;
    char *in_at, *out_at; /* what the call gets: copies, if there is any_memory */
    int64_t *send, *recv; /* counts, then displacements, of blocks in either buffer */
    int64_t elements;     /* of either buffer, with all gaps */
    size_t elem;
    uint64_t layout;
    bool here;      /* in place on this rank */
    rank_request_t req;
};

/* Draw form, root, layout and inputs. The caller may change them before the first start. */
void any_coll_open(struct any_coll *c, rank_team_t team, enum any_kind kind, int64_t count, rank_dtype_t dtype, rank_op_t op,
                   uint64_t *seed);
/* Allocate, write new inputs, and create a persistent request; a later start is a rank_start, then. */
rank_status_t any_coll_init(struct any_coll *c);
/* Start, with new inputs each time. A blocking call is done when it returns, with its status; other forms, if RANK_OK, need
 * any_coll_finish. */
rank_status_t any_coll_start(struct any_coll *c);
/* Wait. No-op after a blocking call. */
rank_status_t any_coll_finish(struct any_coll *c);
/* Fail unless the result is right, and guards, gaps and the input are as they were. The result is gone afterwards. */
void any_coll_check(const struct any_coll *c);
/* The same without the result. */
void any_coll_check_guards(const struct any_coll *c);
/* Free the buffers, and a persistent request. */
void any_coll_close(struct any_coll *c);

const char *any_coll_name(enum any_kind kind);
bool any_coll_reduces(enum any_kind kind);

#endif
