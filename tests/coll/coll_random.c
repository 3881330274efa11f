/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_random.c: run collectives of all kinds in random order.
 * Blocking ones between nonblocking ones that are under way on two teams, waited for in
 * random order. Point-to-point messages go on meanwhile.
 */
#include "tests/coll/mp_coll.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 9, KINDS = 12 };

struct job {
    rank_team_t team;
    int kind, root;
    int64_t count;
    uint64_t key;
    char *in, *out;
    rank_request_t req;
};

static char *filled(struct coll_test *t, const struct job *j, int blocks)
{
    size_t bytes = (size_t)j->count * 8;
    char *p = mp_alloc(bytes * (size_t)blocks);

    for (int r = 0; r < blocks; r++)
        mp_fill(p + (size_t)r * bytes, bytes, j->key + (uint64_t)(t->rank * 100 + r));
    return p;
}

static void start(struct coll_test *t, struct job *j, bool blocking)
{
    rank_team_t w = j->team;
    size_t whole = (size_t)j->count * 8 * (size_t)t->size;
    rank_request_t *req = &j->req;
    rank_status_t st = RANK_OK;

    j->req = RANK_REQUEST_NULL;
    j->out = mp_alloc(whole);
    memset(j->out, 0x3c, whole);
    if ((j->kind >= 1 && j->kind <= 3) || j->kind >= 10) {
        j->in = mp_alloc(whole);
        value_fill(j->in, RANK_INT64, RANK_SUM, t->rank, t->size, 0,
                   j->count * (j->kind == 3 ? t->size : 1));
    } else {
        j->in = filled(t, j, t->size);
    }
    switch (j->kind) {
    case 0:
        st = blocking ? rank_barrier(w) : rank_ibarrier(w, req);
        break;
    case 1:
        st = blocking ? rank_allreduce(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w)
                      : rank_iallreduce(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w, req);
        break;
    case 2:
        st = blocking
                 ? rank_reduce(j->in, j->out, j->count, RANK_INT64, RANK_SUM, j->root, w)
                 : rank_ireduce(j->in, j->out, j->count, RANK_INT64, RANK_SUM, j->root, w, req);
        break;
    case 3:
        st = blocking
                 ? rank_reduce_scatter(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w)
                 : rank_ireduce_scatter(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w, req);
        break;
    case 4:
        if (t->rank == j->root)
            mp_fill(j->out, (size_t)j->count * 8, j->key);
        st = blocking ? rank_bcast(j->out, j->count, RANK_F64, j->root, w)
                      : rank_ibcast(j->out, j->count, RANK_F64, j->root, w, req);
        break;
    case 5:
        st = blocking ? rank_gather(j->in, j->out, j->count, RANK_F64, j->root, w)
                      : rank_igather(j->in, j->out, j->count, RANK_F64, j->root, w, req);
        break;
    case 6:
        st = blocking ? rank_scatter(j->in, j->out, j->count, RANK_F64, j->root, w)
                      : rank_iscatter(j->in, j->out, j->count, RANK_F64, j->root, w, req);
        break;
    case 7:
        st = blocking ? rank_allgather(j->in, j->out, j->count, RANK_F64, w)
                      : rank_iallgather(j->in, j->out, j->count, RANK_F64, w, req);
        break;
    case 10:
        st = blocking ? rank_scan(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w)
                      : rank_iscan(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w, req);
        break;
    case 11:
        st = blocking ? rank_exscan(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w)
                      : rank_iexscan(j->in, j->out, j->count, RANK_INT64, RANK_SUM, w, req);
        break;
    default:
        st = blocking ? rank_alltoall(j->in, j->out, j->count, RANK_F64, w)
                      : rank_ialltoall(j->in, j->out, j->count, RANK_F64, w, req);
        break;
    }
    MP_OK(st);
}

/* Block `at` of out holds what rank from wrote as its block `of`. */
static void check_block(const struct job *j, int at, int from, int of)
{
    size_t bytes = (size_t)j->count * 8;

    MP_CHECK_EQ(mp_verify(j->out + (size_t)at * bytes, bytes, j->key + (uint64_t)(from * 100 + of)),
                -1);
}

static void finish(struct coll_test *t, struct job *j)
{
    MP_OK(rank_wait(&j->req, NULL));
    switch (j->kind) {
    case 0:
        break;
    case 1:
        MP_CHECK_EQ(value_check(j->out, RANK_INT64, RANK_SUM, t->size, 0, j->count), -1);
        break;
    case 2:
        if (t->rank == j->root)
            MP_CHECK_EQ(value_check(j->out, RANK_INT64, RANK_SUM, t->size, 0, j->count), -1);
        break;
    case 3:
        MP_CHECK_EQ(value_check(j->out, RANK_INT64, RANK_SUM, t->size,
                                (int64_t)t->rank * j->count, j->count),
                    -1);
        break;
    case 4:
        MP_CHECK_EQ(mp_verify(j->out, (size_t)j->count * 8, j->key), -1);
        break;
    case 5:
        for (int r = 0; r < t->size && t->rank == j->root; r++)
            check_block(j, r, r, 0);
        break;
    case 6:
        check_block(j, 0, j->root, t->rank);
        break;
    case 7:
        for (int r = 0; r < t->size; r++)
            check_block(j, r, r, 0);
        break;
    case 10:
    case 11:
        if (j->kind == 10 || t->rank > 0)
            MP_CHECK_EQ(value_check_prefix(j->out, RANK_INT64, RANK_SUM, t->rank + (j->kind == 10), t->size, 0, j->count),
                        -1);
        break;
    default:
        for (int r = 0; r < t->size; r++)
            check_block(j, r, r, t->rank);
        break;
    }
    free(j->in);
    free(j->out);
    j->in = j->out = NULL;
    t->checks++;
}

void coll_mixed(struct coll_test *t)
{
    static const int64_t sizes[] = {0, 1, 1, 2, 6, 7, 8, 64, 512, 513, 3000, 20000};
    int rounds = t->full ? 3000 : 300;
    struct job jobs[SLOTS];
    rank_team_t teams[2] = {t->team}; /* with the same ranks */
    uint64_t own = t->seed + (uint64_t)t->rank * 77; /* each rank waits in its own order */

    memset(jobs, 0, sizeof(jobs));
    MP_OK(rank_team_dup(t->team, &teams[1]));
    for (int k = 0; k < rounds; k++) {
        int slot = (int)mp_below(&t->seed, SLOTS);
        struct job *j = &jobs[slot];
        bool blocking = mp_below(&t->seed, 2), long_one = mp_below(&t->seed, 8) == 0;

        if (j->in)
            finish(t, j);
        j->team = teams[mp_below(&t->seed, 2)];
        j->kind = (int)mp_below(&t->seed, KINDS);
        j->root = (int)mp_below(&t->seed, (uint64_t)t->size);
        j->count = sizes[mp_below(&t->seed, long_one ? 12 : 9)];
        j->key = mp_random(&t->seed);
        start(t, j, blocking);
        if (blocking)
            finish(t, j);
        /* Now and then some rank completes others early. */
        if (mp_below(&own, 4) == 0) {
            j = &jobs[mp_below(&own, SLOTS)];
            if (j->in)
                finish(t, j);
        }
    }
    for (int i = SLOTS - 1; i >= 0; i--) {
        if (jobs[i].in)
            finish(t, &jobs[i]);
    }
    MP_OK(rank_team_free(&teams[1]));
}
