/* SPDX-License-Identifier: BSD-3-Clause */
/* mp_coll.h: the parts of the test of collectives. */
#ifndef TESTS_COLL_MP_COLL_H
#define TESTS_COLL_MP_COLL_H

#include "tests/coll/reference_values.h"
#include "tests/mp/mp.h"

struct coll_test {
    struct mp *mp;
    rank_team_t team; /* the one under test */
    int rank, size;
    bool full;
    uint64_t seed;    /* the same on every rank */
    long checks;      /* calls with a checked result */
};

/* A call, blocking or not: start does it and gives a request for a nonblocking one. */
void coll_reductions(struct coll_test *t); /* every datatype x op x in place */
void coll_movers(struct coll_test *t);     /* the others, sizes, roots, in place */
void coll_barriers(struct coll_test *t);   /* no rank leaves before all have come */
void coll_mixed(struct coll_test *t);      /* blocking and not, many at once, in random order */
void coll_teams(struct coll_test *t);      /* parts of the world, many of them, again and again */
void coll_bits(struct coll_test *t, bool print); /* the same bits everywhere and every time */
void coll_counts(struct coll_test *t);     /* what ends on all ranks, as their counts differ */
void coll_arguments(struct coll_test *t);  /* what is refused */

void coll_user_ops(struct coll_test *t);   /* operations and datatypes of the program */

/* Everything above on another team. */
void coll_on(struct coll_test *t, rank_team_t team, void (*part)(struct coll_test *));

/* Blocking, or nonblocking and waited for: chosen at random, the same on every rank. */
bool coll_toss(struct coll_test *t);

#endif
