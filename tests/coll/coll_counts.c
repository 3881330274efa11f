/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_counts.c: end calls whose ranks disagree about the length of a block. */
#include "tests/coll/mp_coll.h"

#include <stdlib.h>

static const double limit_s = 10; /* of a busy machine */

enum wrong { GATHERV, SCATTERV, ALLTOALLV, WRONGS };

/* Rank 1 has `has` elements where the others assume count. */
static rank_status_t wrong_call(const struct coll_test *t, rank_team_t team, enum wrong what, int64_t count, int64_t has)
{
    int64_t counts[64], displs[64], mine[64];
    double *out = mp_alloc((size_t)(count * 2 * t->size) * sizeof(*out));
    double *in = mp_alloc((size_t)(count * 2 * t->size) * sizeof(*in));
    rank_status_t st;

    for (int r = 0; r < t->size; r++) {
        counts[r] = mine[r] = count;
        displs[r] = count * 2 * r;
    }
    has = t->rank == 1 ? has : count;
    mine[0] = t->rank == 1 ? has : count;
    if (what == GATHERV)
        st = rank_gatherv(out, has, in, counts, displs, RANK_F64, 0, team);
    else if (what == SCATTERV)
        st = rank_scatterv(out, counts, displs, in, has, RANK_F64, 0, team);
    else
        st = rank_alltoallv(out, mine, displs, in, counts, displs, RANK_F64, team);
    free(out);
    free(in);
    return st;
}

/* The receiver of the wrong block reports it, and no rank waits for ever: the next collective fails on all. */
void coll_counts(struct coll_test *t)
{
    static const int64_t counts[] = {4, 50000};

    for (int i = 0; i < 2 * 3 * WRONGS && t->size > 1; i++) {
        enum wrong what = (enum wrong)(i % WRONGS);
        int64_t count = counts[i / WRONGS % 2], has = i / WRONGS / 2 == 0 ? 0 : i / WRONGS / 2 == 1 ? count - 1 : count + 1;
        int receiver = what == SCATTERV ? 1 : 0;
        rank_status_t st;
        rank_team_t team;
        double start;

        MP_OK(rank_team_dup(t->team, &team));
        mp_barrier(t->mp->world); /* a failure may overtake the end of an earlier collective of the team */
        start = mp_now();
        st = wrong_call(t, team, what, count, has);
        if (t->rank == receiver)
            MP_CHECK(st == RANK_ERR_TRUNCATED || st == RANK_ERR_COLLECTIVE);
        MP_CHECK(!st || st == RANK_ERR_TRUNCATED || st == RANK_ERR_COLLECTIVE);
        MP_STATUS(rank_barrier(team), RANK_ERR_COLLECTIVE);
        MP_CHECK(mp_now() - start < limit_s);
        mp_barrier(t->mp->world);
        MP_OK(rank_team_free(&team));
        t->checks++;
    }
}
