/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_random.c: run collectives of all kinds and forms in random order.
 *
 * All ranks draw the same program on two teams: a call of any form, a persistent one once more, or all of these at once. Each
 * rank waits in an order of its own. Inputs differ in each start.
 */
#include "tests/coll/any_coll.h"
#include "tests/coll/mp_coll.h"

#include <string.h>

enum { SLOTS = 9, ROUNDS = 500 };

struct slot {
    struct any_coll c;
    bool open, started;
};

static void add(const void *in, void *inout, int64_t count, rank_dtype_t dtype, void *arg)
{
    (void)dtype, (void)arg;
    for (int64_t i = 0; i < count; i++)
        ((uint64_t *)inout)[i] += ((const uint64_t *)in)[i];
}

/* The operation is freed once it is used: the request keeps it. */
static void start_anew(struct coll_test *t, struct slot *s, rank_team_t team)
{
    static const int64_t sizes[] = {0, 1, 1, 2, 6, 7, 8, 64, 65, 512, 513, 3000, 9000, 20000};
    bool own = mp_below(&t->seed, 3) == 0, is_long = mp_below(&t->seed, 8) == 0;
    enum any_kind kind = (enum any_kind)mp_below(&t->seed, ANY_KINDS);
    rank_op_t op = RANK_SUM;

    if (own)
        MP_OK(rank_op_create(add, NULL, RANK_OP_COMMUTATIVE, &op));
    if (s->open)
        any_coll_close(&s->c);
    any_coll_open(&s->c, team, kind, sizes[mp_below(&t->seed, is_long ? 14 : 11)], RANK_UINT64, op, &t->seed);
    MP_OK(any_coll_start(&s->c));
    s->open = s->started = true;
    if (own)
        MP_OK(rank_op_free(&op));
}

static void end(struct coll_test *t, struct slot *s, bool poll)
{
    int done = 0;

    if (!s->started)
        return;
    while (poll && !done)
        MP_OK(rank_test(&s->c.req, &done, NULL));
    MP_OK(any_coll_finish(&s->c));
    MP_CHECK((s->c.req != RANK_REQUEST_NULL) == (s->c.form == ANY_PERSISTENT));
    any_coll_check(&s->c);
    s->started = false;
    t->checks++;
}

static void start_all(struct coll_test *t, struct slot *slots)
{
    rank_request_t reqs[SLOTS], back[SLOTS];
    int n = 0;

    for (int i = 0; i < SLOTS; i++) {
        if (!slots[i].open || slots[i].c.form != ANY_PERSISTENT)
            continue;
        end(t, &slots[i], false);
        MP_OK(any_coll_init(&slots[i].c));
        slots[i].started = true;
        reqs[n++] = slots[i].c.req;
    }
    memcpy(back, reqs, sizeof(back));
    MP_OK(rank_startall(n, reqs));
    MP_CHECK(memcmp(back, reqs, (size_t)n * sizeof(reqs[0])) == 0);
}

void coll_mixed(struct coll_test *t)
{
    int64_t rounds = t->full ? ROUNDS * 10 : mp_rounds(ROUNDS);
    struct slot slots[SLOTS];
    rank_team_t teams[2] = {t->team}; /* with the same ranks */
    uint64_t own = t->seed + (uint64_t)t->rank * 77;

    memset(slots, 0, sizeof(slots));
    MP_OK(rank_team_dup(t->team, &teams[1]));
    for (int64_t k = 0; k < rounds; k++) {
        struct slot *s = &slots[mp_below(&t->seed, SLOTS)];
        int what = (int)mp_below(&t->seed, 8);

        end(t, s, mp_below(&own, 2));
        if (!s->open || s->c.form != ANY_PERSISTENT || what < 2) {
            start_anew(t, s, teams[mp_below(&t->seed, 2)]);
        } else if (what == 2) {
            start_all(t, slots);
        } else {
            MP_OK(any_coll_start(&s->c));
            s->started = true;
        }
        if (s->c.form == ANY_BLOCKING)
            end(t, s, false);
        if (mp_below(&own, 3) == 0) /* now and then some rank completes others early */
            end(t, &slots[mp_below(&own, SLOTS)], false);
    }
    for (int i = SLOTS - 1; i >= 0; i--) {
        end(t, &slots[i], false);
        if (slots[i].open)
            any_coll_close(&slots[i].c);
    }
    MP_OK(rank_team_free(&teams[1]));
}
