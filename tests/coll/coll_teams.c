/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_teams.c: run collectives on parts of the world.
 * Several at once, in other orders, more than there are arenas in a node, and made anew many times, so
 * that arenas go from team to team.
 */
#include "tests/coll/mp_coll.h"

#include <stdlib.h>

enum { MANY = 40 };

static void sum_on(struct coll_test *t, rank_team_t team, int64_t salt)
{
    int size = rank_team_size(team), rank = rank_team_rank(team);
    int64_t in = rank + salt, out = -1, *all = mp_alloc((size_t)size * sizeof(*all));
    int root = (int)(salt % size);

    MP_OK(rank_allreduce(&in, &out, 1, RANK_INT64, RANK_SUM, team));
    MP_CHECK_EQ(out, (int64_t)size * (size - 1) / 2 + size * salt);
    MP_OK(rank_reduce(&in, &out, 1, RANK_INT64, RANK_MAX, root, team));
    if (rank == root)
        MP_CHECK_EQ(out, size - 1 + salt);
    MP_OK(rank_allgather(&in, all, 1, RANK_INT64, team));
    for (int r = 0; r < size; r++)
        MP_CHECK_EQ(all[r], r + salt);
    out = rank == root ? salt * 3 : 0;
    MP_OK(rank_bcast(&out, 1, RANK_INT64, root, team));
    MP_CHECK_EQ(out, salt * 3);
    MP_OK(rank_barrier(team));
    t->checks += 5;
    free(all);
}

/* Halves, odd and even, backwards: each a team of its own with everything that there is. */
static void parts(struct coll_test *t)
{
    rank_team_t half, parity, back, dup;

    MP_OK(rank_team_split(t->team, t->rank < t->size / 2, t->rank, &half));
    MP_OK(rank_team_split(t->team, t->rank % 2, -t->rank, &parity));
    MP_OK(rank_team_split(t->team, 0, t->size - t->rank, &back));
    MP_OK(rank_team_dup(parity, &dup));
    MP_CHECK_EQ(rank_team_rank(back), t->size - 1 - t->rank);
    for (int i = 0; i < 20; i++) {
        sum_on(t, half, i);
        sum_on(t, t->team, i + 1);
        sum_on(t, parity, i + 2);
        sum_on(t, back, i + 3);
        sum_on(t, dup, i + 4);
    }
    coll_on(t, half, coll_mixed);
    coll_on(t, back, coll_movers);
    coll_on(t, parity, coll_reductions);
    MP_OK(rank_team_free(&dup));
    MP_OK(rank_team_free(&half));
    MP_OK(rank_team_free(&back));
    MP_OK(rank_team_free(&parity));
}

/* More teams than arenas. */
static void many(struct coll_test *t)
{
    rank_team_t teams[MANY];

    for (int i = 0; i < MANY; i++)
        MP_OK(rank_team_dup(t->team, &teams[i]));
    for (int i = 0; i < MANY; i++)
        sum_on(t, teams[(i * 7) % MANY], i);
    for (int i = 0; i < MANY; i++)
        MP_OK(rank_team_free(&teams[(i * 3) % MANY]));
}

/* A team is freed while its collectives are under way; the next one may get its memory. */
static void freed_at_work(struct coll_test *t)
{
    enum { COUNT = 20000, CALLS = 3 };
    int64_t *in = mp_alloc(COUNT * sizeof(*in)), *out[CALLS];

    for (int c = 0; c < CALLS; c++)
        out[c] = mp_alloc(COUNT * sizeof(*in));
    for (int i = 0; i < 8; i++) {
        rank_request_t req[CALLS];
        rank_team_t team, next;

        MP_OK(rank_team_dup(t->team, &team));
        for (int64_t k = 0; k < COUNT; k++)
            in[k] = t->rank + k + i;
        for (int c = 0; c < CALLS; c++)
            MP_OK(rank_iallreduce(in, out[c], COUNT, RANK_INT64, RANK_SUM, team, &req[c]));
        MP_OK(rank_team_free(&team));
        MP_OK(rank_team_dup(t->team, &next));
        sum_on(t, next, i);
        for (int c = 0; c < CALLS; c++) {
            MP_OK(rank_wait(&req[c], NULL));
            for (int64_t k = 0; k < COUNT; k++)
                MP_CHECK_EQ(out[c][k], t->size * (t->size - 1) / 2 + t->size * (k + i));
        }
        MP_OK(rank_team_free(&next));
    }
    for (int c = 0; c < CALLS; c++)
        free(out[c]);
    free(in);
}

/* Teams come and go; some ranks are late in leaving. */
static void again_and_again(struct coll_test *t)
{
    int rounds = t->full ? 300 : 40;

    for (int i = 0; i < rounds; i++) {
        rank_team_t a, b;
        int color = (int)mp_below(&t->seed, 3);

        color = (t->rank + color) % 3 == 0 ? RANK_UNDEFINED : t->rank % 2;
        MP_OK(rank_team_split(t->team, color, (int)mp_below(&t->seed, 10) * t->rank, &a));
        MP_OK(rank_team_dup(t->team, &b));
        if (a != RANK_TEAM_NULL) {
            sum_on(t, a, i);
            MP_OK(rank_team_free(&a));
        }
        sum_on(t, b, i);
        MP_OK(rank_team_free(&b));
    }
}

void coll_teams(struct coll_test *t)
{
    parts(t);
    many(t);
    freed_at_work(t);
    again_and_again(t);
}
