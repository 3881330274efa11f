/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_sched_test.c: run schedules: order, events, calls, memory, re-arm, failure. */
#include "tests/unit/unit.h"

#include "lib/base/clock.h"
#include "tests/coll/fake_p2p.h"

struct bench {
    struct fake_world w;
    struct rank_request req;
    char trail[64]; /* what ran, in order */
};

struct mark {
    struct bench *b;
    char name;
    rank_status_t status;
};

static rank_status_t leave_mark(void *arg)
{
    struct mark *m = arg;
    size_t n = strlen(m->b->trail);

    if (n < sizeof(m->b->trail) - 1)
        m->b->trail[n] = m->name;
    return m->status;
}

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof(*b));

    fake_open(&b->w, 4, true, 1);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;

    fake_close(&b->w);
    free(b);
    return 0;
}

static struct rk_sched *new_sched(struct bench *b, int rank)
{
    struct rk_sched *s = rk_sched_new(&b->w.scheds, &b->w.team[rank], 5);

    assert_non_null(s);
    return s;
}

static void start(struct bench *b, struct rk_sched *s, struct rank_request *req)
{
    memset(req, 0, sizeof(*req));
    rk_sched_request(req, &b->w.ctx);
    rk_sched_start(s, req);
}

static struct rk_step *mark(struct bench *b, struct rk_sched *s, struct rk_step *after, char name,
                            rank_status_t status)
{
    struct mark *m = rk_sched_scratch(s, sizeof(*m));

    *m = (struct mark){b, name, status};
    return rk_sched_call(s, after, leave_mark, m);
}

static void empty(void **state)
{
    struct bench *b = *state;

    start(b, new_sched(b, 0), &b->req);
    assert_true(b->req.done);
    assert_int_equal(b->req.status, RANK_OK);
    assert_int_equal(b->w.scheds.npool, 1);
}

static void diamond(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0);
    struct rk_step *a, *l, *r, *end;

    end = mark(b, s, NULL, 'd', RANK_OK); /* made first, runs last */
    a = mark(b, s, NULL, 'a', RANK_OK);
    l = mark(b, s, a, 'b', RANK_OK);
    r = mark(b, s, a, 'c', RANK_OK);
    rk_sched_order(l, end);
    rk_sched_order(r, end);
    start(b, s, &b->req);
    assert_true(b->req.done);
    assert_true(strcmp(b->trail, "abcd") == 0 || strcmp(b->trail, "acbd") == 0);
}

static void reduce_and_copy(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0);
    int32_t x[3] = {1, 2, 3}, y[3] = {10, 20, 30}, sum[3] = {0}, copy[3] = {0};
    struct rk_step *r = rk_sched_reduce(s, NULL, sum, x, y, 3);

    s->reducer = (struct rk_reducer){.fn = rk_op_kernel(RANK_SUM, RANK_INT32), .dtype = RANK_INT32};
    rk_sched_copy(s, r, copy, sum, sizeof(sum));
    start(b, s, &b->req);
    assert_true(b->req.done);
    assert_int_equal(copy[2], 33);
}

/* A hundred thousand steps one after the other: no recursion. Both through calls and messages. */
static void long_chain(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0), *t = new_sched(b, 1);
    struct rk_step *prev = NULL, *other = NULL;
    struct rank_request req;
    int ping = 0, pong = 0;

    for (uint32_t i = 0; i < 50000; i++) {
        prev = rk_sched_join(s, prev, NULL);
        prev = rk_sched_send(s, prev, 1, i, &ping, sizeof(ping));
        prev = rk_sched_recv(s, prev, 1, i, &ping, sizeof(ping));
        other = rk_sched_recv(t, other, 0, i, &pong, sizeof(pong));
        other = rk_sched_send(t, other, 0, i, &pong, sizeof(pong));
    }
    start(b, s, &b->req);
    start(b, t, &req);
    fake_run(&b->w);
    assert_true(b->req.done && req.done);
    assert_int_equal(b->w.delivered, 100000);
}

static bool flag_is_up(void *flag)
{
    return *(bool *)flag;
}

static void event(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0);
    bool flag = false;

    mark(b, s, rk_sched_event(s, mark(b, s, NULL, 'a', RANK_OK), flag_is_up, &flag), 'b', RANK_OK);
    start(b, s, &b->req);
    assert_string_equal(b->trail, "a");
    assert_true(rk_scheds_busy(&b->w.scheds));
    assert_int_equal(rk_scheds_progress(&b->w.scheds), 0);
    assert_false(b->req.done);
    flag = true;
    assert_int_equal(rk_scheds_progress(&b->w.scheds), 1);
    assert_true(b->req.done);
    assert_string_equal(b->trail, "ab");
    assert_false(rk_scheds_busy(&b->w.scheds));
}

struct turn {
    struct rk_sched *sched;
    bool flag;
};

static bool has_turn_and_flag(void *turn)
{
    const struct turn *t = turn;

    return rk_sched_has_turn(t->sched, 1) && t->flag;
}

/* Schedules of a line go on in the order of their starts, at each start. The other ones do not wait. */
static void line(void **state)
{
    struct bench *b = *state;
    struct rk_sched_line line;
    struct rank_request req[3];
    struct turn turn[3];

    rk_sched_line_init(&line);
    for (int i = 0; i < 3; i++) {
        struct rk_step *event;

        turn[i] = (struct turn){new_sched(b, 0), false};
        event = rk_sched_event(turn[i].sched, NULL, has_turn_and_flag, &turn[i]);
        mark(b, turn[i].sched, event, (char)('a' + i), RANK_OK);
        if (i == 1)
            rk_sched_in_line(event, 1);
        turn[i].sched->kept = true;
        if (i < 2)
            rk_sched_line_up(turn[i].sched, 1, &line);
    }
    for (int pass = 0; pass < 2; pass++) {
        int first = pass, then = !pass;

        for (int i = 0; i < 3; i++) {
            rk_sched_rearm(turn[i].sched, 7);
            turn[i].flag = false;
        }
        start(b, turn[first].sched, &req[first]);
        start(b, turn[then].sched, &req[then]);
        start(b, turn[2].sched, &req[2]);
        turn[then].flag = turn[2].flag = true;
        while (rk_scheds_progress(&b->w.scheds) > 0)
            ;
        assert_true(req[2].done && !req[0].done && !req[1].done);
        turn[first].flag = true;
        while (rk_scheds_progress(&b->w.scheds) > 0)
            ;
        assert_true(req[0].done && req[1].done);
    }
    assert_string_equal(b->trail, "cabcba");
    for (int i = 0; i < 3; i++)
        rk_sched_free(turn[i].sched);
}

/* A schedule that leaves early lets the next one go on; each place has a line of its own. */
static void line_left_early(void **state)
{
    struct bench *b = *state;
    struct rk_sched_line line[2];
    struct rank_request req[2];
    struct rk_sched *s[2];
    bool flag = false, up = true;

    for (int i = 0; i < 2; i++) {
        rk_sched_line_init(&line[i]);
        s[i] = new_sched(b, 0);
    }
    for (int i = 0; i < 2; i++) {
        struct rk_step *event = rk_sched_event(s[i], NULL, flag_is_up, &up), *end;

        rk_sched_in_line(event, 0);
        mark(b, s[i], event, (char)('a' + i), RANK_OK);
        end = rk_sched_event(s[i], event, flag_is_up, &flag);
        rk_sched_in_line(end, 1);
        mark(b, s[i], end, (char)('c' + i), RANK_OK);
        for (int k = 0; k < 2; k++)
            rk_sched_line_up(s[i], k, &line[k]);
    }
    start(b, s[0], &req[0]);
    start(b, s[1], &req[1]);
    assert_string_equal(b->trail, "a");
    rk_sched_leave_line(s[0], 0);
    rk_sched_leave_line(s[0], 0); /* only once */
    while (rk_scheds_progress(&b->w.scheds) > 0)
        ;
    assert_string_equal(b->trail, "ab");
    flag = true;
    while (rk_scheds_progress(&b->w.scheds) > 0)
        ;
    assert_true(req[0].done && req[1].done);
    assert_string_equal(b->trail, "abcd");
    assert_true(line[0].done == 2 && line[1].done == 2);
}

/* In the steady state memory comes from the pool: the same schedule, the same blocks. */
static void memory_is_recycled(void **state)
{
    struct bench *b = *state;
    struct rk_sched *first = NULL;
    void *where = NULL;

    for (int i = 0; i < 100; i++) {
        struct rk_sched *s = new_sched(b, 0);
        char *scratch = rk_sched_scratch(s, 3000);
        struct rk_step *step = NULL;

        assert_int_equal((uintptr_t)scratch % RK_CACHE_LINE, 0);
        memset(scratch, i, 3000);
        for (int k = 0; k < 200; k++)
            step = rk_sched_join(s, step, NULL);
        if (i == 1) {
            first = s;
            where = scratch;
        } else if (i > 1) {
            assert_ptr_equal(s, first);
            assert_ptr_equal(scratch, where);
        }
        start(b, s, &b->req);
        assert_true(b->req.done);
    }
}

/* What is large goes back sooner or later: idle schedules hold little. */
static void large_memory_goes_back(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s[12];

    for (int i = 0; i < 12; i++) {
        s[i] = new_sched(b, 0);
        memset(rk_sched_scratch(s[i], 5 << 20), 1, 5 << 20);
        memset(rk_sched_scratch(s[i], 20 << 20), 1, 20 << 20);
    }
    for (int i = 0; i < 12; i++)
        rk_sched_free(s[i]);
    assert_true(b->w.scheds.held <= 16 << 20);
    rk_sched_free(NULL);
}

static void no_memory(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0);
    struct unit_stderr e;
    void *p;

    unit_stderr_begin(&e);
    p = rk_sched_scratch(s, SIZE_MAX / 4);
    assert_contains(unit_stderr_end(&e), "out of memory for a collective");
    assert_non_null(p);
    rk_sched_send(s, NULL, 1, 0, p, 8);
    start(b, s, &b->req);
    assert_true(b->req.done);
    assert_int_equal(b->req.status, RANK_ERR_NO_MEMORY);
    assert_int_equal(b->w.nsends, 0);
}

static void armed_again(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0);
    struct rk_step *send = rk_sched_send(s, NULL, 1, 3, "x", 1);
    char in;

    mark(b, s, send, 'm', RANK_OK);
    s->kept = true;
    for (uint64_t i = 0; i < 5; i++) {
        struct rk_sched *t = rk_sched_new(&b->w.scheds, &b->w.team[1], 40 + i);
        struct rank_request req;

        rk_sched_recv(t, NULL, 0, 3, &in, 1);
        rk_sched_rearm(s, 40 + i);
        start(b, s, &b->req);
        start(b, t, &req);
        fake_run(&b->w);
        assert_true(b->req.done && req.done);
    }
    assert_string_equal(b->trail, "mmmmm");
    rk_sched_free(s);
}

static void call_fails(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0);
    char in;

    rk_sched_recv(s, NULL, 1, 0, &in, 1); /* will never come */
    mark(b, s, mark(b, s, NULL, 'a', RANK_ERR_INTERNAL), 'b', RANK_OK);
    start(b, s, &b->req);
    rk_scheds_progress(&b->w.scheds);
    assert_true(b->req.done);
    assert_int_equal(b->req.status, RANK_ERR_INTERNAL);
    assert_string_equal(b->trail, "a");
    assert_int_equal(b->w.nrecvs, 0); /* taken back */
    assert_true(rk_list_empty(&b->w.scheds.failing));
}

/* Ranks that disagree about a length: a status, not silence. */
static void truncation(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0), *t = new_sched(b, 1);
    struct rank_request req;
    char in[4];

    rk_sched_recv(s, NULL, 1, 0, in, 4);
    rk_sched_recv(s, NULL, 1, 1, in, 4);
    rk_sched_send(t, NULL, 0, 0, "12345678", 8);
    start(b, s, &b->req);
    start(b, t, &req);
    fake_run(&b->w);
    rk_scheds_progress(&b->w.scheds);
    assert_true(b->req.done && req.done);
    assert_int_equal(b->req.status, RANK_ERR_TRUNCATED);
}

static void death(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0), *other = new_sched(b, 2);
    struct rank_request req;
    bool flag = false;
    char in[2];

    rk_sched_recv(s, NULL, 1, 0, in, 1);
    rk_sched_recv(s, NULL, 3, 0, in + 1, 1);
    rk_sched_event(s, NULL, flag_is_up, &flag);
    rk_sched_recv(other, NULL, 1, 0, in, 1);
    start(b, s, &b->req);
    start(b, other, &req);
    b->w.team[0].ndead = 1; /* the other schedule's team has lost none */
    rk_scheds_peer_died(&b->w.scheds);
    assert_true(b->req.done);
    assert_int_equal(b->req.status, RANK_ERR_PEER_DEAD);
    assert_false(req.done);
    assert_int_equal(b->w.nrecvs, 1);
    assert_true(rk_list_empty(&b->w.scheds.events));
    b->w.team[2].ndead = 1;
    rk_scheds_peer_died(&b->w.scheds);
    assert_int_equal(req.status, RANK_ERR_PEER_DEAD);
}

/* A send that was announced and is never received: the call ends in time, its memory stays until
 * the send ends. */
static void orphan(void **state)
{
    struct bench *b = *state;
    struct rk_sched *s = new_sched(b, 0), *t;
    uint64_t began = rk_clock_ns();
    struct rank_request req;
    char in;

    rk_sched_send(s, NULL, 1, 0, "x", 1);
    start(b, s, &b->req);
    b->w.team[0].ndead = 1;
    rk_scheds_peer_died(&b->w.scheds);
    assert_false(b->req.done);
    while (!b->req.done && rk_clock_ns() - began < 2000000000u)
        rk_scheds_progress(&b->w.scheds);
    assert_true(b->req.done);
    assert_int_equal(b->req.status, RANK_ERR_PEER_DEAD);
    assert_false(rk_list_empty(&b->w.scheds.orphans));
    /* A late receiver: then it goes. */
    t = new_sched(b, 1);
    rk_sched_recv(t, NULL, 0, 0, &in, 1);
    start(b, t, &req);
    fake_run(&b->w);
    assert_true(req.done);
    assert_int_equal(in, 'x');
    assert_true(rk_list_empty(&b->w.scheds.orphans));
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(empty), WITH(diamond), WITH(reduce_and_copy), WITH(long_chain), WITH(event), WITH(line), WITH(line_left_early),
        WITH(memory_is_recycled), WITH(large_memory_goes_back), WITH(no_memory),
        WITH(armed_again), WITH(call_fails), WITH(truncation), WITH(death), WITH(orphan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
