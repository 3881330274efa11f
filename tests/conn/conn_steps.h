/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_steps.h: do random operations on a connection, and check all data. */
#ifndef TESTS_CONN_CONN_STEPS_H
#define TESTS_CONN_CONN_STEPS_H

#include "tests/conn/conn_pair.h"

enum { STEPS_REGION = 1 << 16 };

/* One side of a connection. */
struct steps {
    rank_team_t conn;
    int me;
    uint64_t random;       /* the same on both sides */
    unsigned char *region; /* the other side writes here */
    unsigned char *model;  /* what the other side's region has */
    rank_mem_t mem, remote;
    int source;            /* of signals: the other side's rank of the world, or RANK_ANY_SOURCE */
    int size_bits;         /* of a message */
    uint64_t signals;      /* sent or awaited, the sum of both directions */
    uint64_t sum;          /* of the signals that came here */
};

/* Register memory and exchange keys. Both ranks of a team of two call each of these. */
void steps_open(struct steps *s, rank_ctx_t ctx, rank_team_t conn, uint64_t seed);
/* Do the next operation. */
void steps_next(struct steps *s);
void steps_close(struct steps *s);

#endif
