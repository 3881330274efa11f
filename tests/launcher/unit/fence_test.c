/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence_test.c: run fences over a tree of nodes without a network.
 *
 * A fence that the ranks of a host gave up need not come again for the others. If it does, the same fence answers it, even if
 * that one is over. However many fences there are, little of them is kept. A node reports the missing ranks as far as its data
 * goes. A fence with more data than a message holds fails and breaks nothing.
 */
#include "launcher/overlay/fence.h"
#include "launcher/overlay/protocol.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct event_base *base;
    struct xr_tree *tree;
    struct xr_job job;
    struct xr_liveness *gone;
    struct xr_fence_table *fences;
    unsigned answers;
    void *token;
    int status;
    char data[8];
    size_t len;
};

enum { RANKS = 32 }; /* the even ones are here */
static uint32_t host_of[RANKS];
static char *hosts[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", NULL};
static char one, two, three, four; /* tokens */

static void on_done(void *arg, void *token, int status, const void *data, size_t len)
{
    struct world *w = arg;

    w->answers++;
    w->token = token;
    w->status = status;
    w->len = len;
    assert_true(len < sizeof(w->data));
    if (len)
        memcpy(w->data, data, len);
}

static bool on_message(void *arg, uint32_t kind, struct xr_unpacker *u)
{
    (void)arg;
    (void)kind;
    (void)u;
    return true;
}

/* A node of a tree of fan-out 2; host_of maps ranks to nodes. */
static int open_node(void **state, uint32_t self, uint32_t nodes)
{
    static const struct xr_tree_ops ops = {.on_message = on_message};
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->base = event_base_new();
    assert_non_null(w->base);
    w->job = (struct xr_job){.size = RANKS, .nhosts = nodes, .hosts = hosts, .host_of = host_of, .fanout = 2};
    assert_int_equal(xr_tree_open(w->base, self, &(struct xr_kary){.nodes = nodes, .fanout = 2}, &ops, w, &w->tree), RANK_OK);
    assert_int_equal(xr_liveness_open(&w->job, &w->gone), RANK_OK);
    assert_int_equal(xr_fence_open(w->tree, &w->job, w->gone, self, on_done, w, &w->fences), RANK_OK);
    *state = w;
    return 0;
}

/* The first of two hosts; the front end above is the test. */
static int open_world(void **state)
{
    for (uint32_t r = 0; r < RANKS; r++)
        host_of[r] = r % 2;
    return open_node(state, 0, 2);
}

static int close_world(void **state)
{
    struct world *w = *state;

    xr_fence_close(w->fences);
    xr_liveness_close(w->gone);
    xr_tree_close(w->tree);
    event_base_free(w->base);
    free(w);
    return 0;
}

static void enter(struct world *w, void *token)
{
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, NULL, 0, "x", 1, token);
}

/* The parent reports its end; n 0: that of all ranks. */
static void over_of(struct world *w, int status, const uint32_t *ranks, uint32_t n, const char *data)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;

    xr_pack_u32(&p, XR_FENCE_PMIX);
    xr_pack_u32(&p, (uint32_t)status);
    xr_pack_u32(&p, n);
    for (uint32_t i = 0; i < n; i++)
        xr_pack_u32(&p, ranks[i]);
    xr_pack_bytes(&p, data, strlen(data));
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_true(xr_fence_take(w->fences, XR_NODE_FRONT, XR_MSG_FENCE_DOWN, &u));
    xr_packer_free(&p);
}

static void over(struct world *w, int status, const char *data)
{
    over_of(w, status, NULL, 0, data);
}

static void expect(struct world *w, void *token, int status, const char *data)
{
    assert_int_equal(w->answers, 1);
    assert_ptr_equal(w->token, token);
    assert_int_equal(w->status, status);
    assert_int_equal(w->len, strlen(data));
    assert_memory_equal(w->data, data, w->len);
    w->answers = 0;
}

static void given_up_and_over(void **state)
{
    struct world *w = *state;

    enter(w, &one);
    xr_fence_abandon(w->fences, &one);
    over(w, 0, "ab");
    assert_int_equal(w->answers, 0); /* none waits */
    enter(w, &two);
    expect(w, &two, 0, "ab");
    enter(w, &three); /* the next one */
    assert_int_equal(w->answers, 0);
    over(w, 0, "cd");
    expect(w, &three, 0, "cd");
}

static void given_up_and_failed(void **state)
{
    struct world *w = *state;

    enter(w, &one);
    xr_fence_abandon(w->fences, &one);
    over(w, -7, "");
    enter(w, &two);
    expect(w, &two, -7, "");
}

static void back_in_time(void **state)
{
    struct world *w = *state;

    enter(w, &one);
    xr_fence_abandon(w->fences, &one);
    enter(w, &two);
    xr_fence_abandon(w->fences, &two);
    enter(w, &three);
    assert_int_equal(w->answers, 0);
    over(w, 0, "ab");
    expect(w, &three, 0, "ab");
    over(w, 0, "no more"); /* there was one fence */
    assert_int_equal(w->answers, 0);
    enter(w, &four);
    assert_int_equal(w->answers, 0);
}

/* The i-th subset that has ranks of both hosts. */
static uint32_t subset(uint32_t i, uint32_t *ranks)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < RANKS; r++) {
        if (r < 2 || (i >> (r - 2) & 1))
            ranks[n++] = r;
    }
    return n;
}

/* A job may have any number of fences over as many subsets of its ranks. */
static void many_subsets(void **state)
{
    struct world *w = *state;
    uint32_t ranks[RANKS];
    size_t before = 0;

    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t n = subset(i, ranks);
        if (i == 1000)
            before = mallinfo2().uordblks;
        xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, ranks, n, "x", 1, &one);
        over_of(w, 0, ranks, n, "ab");
        expect(w, &one, 0, "ab");
    }
    assert_true(mallinfo2().uordblks <= before + 4096);
}

/* Nor do those that their ranks gave up, each time over another subset, take ever more. */
static void many_given_up(void **state)
{
    enum { MANY = 4096 };
    struct world *w = *state;
    uint32_t ranks[RANKS], n;

    for (uint32_t i = 0; i < MANY; i++) {
        n = subset(i, ranks);
        xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, ranks, n, "x", 1, &one);
        xr_fence_abandon(w->fences, &one);
        over_of(w, 0, ranks, n, "ab");
    }
    n = subset(MANY - 1, ranks);
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, ranks, n, "x", 1, &two);
    expect(w, &two, 0, "ab");
    n = subset(0, ranks); /* forgotten: it begins anew */
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, ranks, n, "x", 1, &three);
    assert_int_equal(w->answers, 0);
    over_of(w, 0, ranks, n, "cd");
    expect(w, &three, 0, "cd");
}

/* Of two more hosts below the first. */
static int open_tree(void **state)
{
    for (uint32_t r = 0; r < RANKS; r++)
        host_of[r] = r % 2 ? 2 : 0;
    return open_node(state, 0, 3);
}

/* The front end above 14 hosts: a has c and d below it and g to j below those, b the others. */
static int open_front(void **state)
{
    for (uint32_t r = 0; r < RANKS; r++)
        host_of[r] = r % 14;
    return open_node(state, XR_NODE_FRONT, 14);
}

/* The child below reports it. */
static void ended_below(struct world *w, enum xr_liveness_what what, uint32_t number, bool sense)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;

    xr_pack_u32(&p, what);
    xr_pack_u32(&p, number);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_int_equal(xr_fence_take(w->fences, 2, XR_MSG_FENCE_ENDED, &u), sense);
    xr_packer_free(&p);
}

static void come_from(struct world *w, uint32_t child, const uint32_t *ranks, uint32_t n)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;

    xr_pack_u32(&p, XR_FENCE_PMIX);
    xr_pack_u32(&p, 0);
    xr_pack_u32(&p, n);
    for (uint32_t i = 0; i < n; i++)
        xr_pack_u32(&p, ranks[i]);
    xr_pack_bytes(&p, "y", 1);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_true(xr_fence_take(w->fences, child, XR_MSG_FENCE_UP, &u));
    xr_packer_free(&p);
}

static void come_below(struct world *w, const uint32_t *ranks, uint32_t n)
{
    come_from(w, 2, ranks, n);
}

/* A failed rank is waited for neither in present fences nor in later ones. */
static void gone_below(void **state)
{
    struct world *w = *state;
    const uint32_t alone[] = {0, 1}, more[] = {0, 1, 3};

    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, alone, 2, "x", 1, &one);
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, more, 3, "x", 1, &two);
    ended_below(w, XR_FAILED_RANK, 0, false); /* that is here */
    ended_below(w, XR_FAILED_RANK, RANKS, false);
    ended_below(w, XR_FAILED_AGENT, 2, false); /* no node can send that */
    assert_int_equal(w->answers, 0);
    ended_below(w, XR_FAILED_RANK, 1, true);
    expect(w, &one, -2, "x"); /* the other one has a rank that may come */
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, alone, 2, "x", 1, &one);
    expect(w, &one, -2, "x");
    assert_false(xr_liveness(w->gone, XR_FAILED_RANK, 3));
    ended_below(w, XR_FAILED_HOST, 2, true);
    expect(w, &two, -2, "x");
    assert_true(xr_liveness(w->gone, XR_FAILED_RANK, 3));
    assert_false(xr_liveness(w->gone, XR_FAILED_AGENT, 2));
}

/* A fence that was given up ends by that, and is one too many to be kept with those behind it. */
static void gone_and_forgotten(void **state)
{
    struct world *w = *state;
    uint32_t ranks[RANKS], n;

    enter(w, &one);
    xr_fence_abandon(w->fences, &one);
    for (uint32_t i = 0; i < 256; i++) {
        n = subset(i, ranks);
        xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, ranks, n, "x", 1, &two);
        xr_fence_abandon(w->fences, &two);
        come_below(w, ranks, n);
    }
    xr_liveness_note(w->gone, XR_FAILED_AGENT, 2);
    assert_int_equal(w->answers, 0);
    n = subset(255, ranks); /* still kept */
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, ranks, n, "x", 1, &three);
    expect(w, &three, 0, "xy");
}

/* So much comes from the child. */
static void much_below(struct world *w, const char *data, size_t len)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;

    xr_pack_u32(&p, XR_FENCE_PMIX);
    xr_pack_u32(&p, 0);
    xr_pack_u32(&p, 0);
    xr_pack_bytes(&p, data, len);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_true(xr_fence_take(w->fences, 2, XR_MSG_FENCE_UP, &u));
    xr_packer_free(&p);
}

/* Each host's part would go, all of them do not; nor does one that is a message but for what stands before it. */
static void too_much(void **state)
{
    struct world *w = *state;
    char *data = calloc(1, XR_MESSAGE_MAX);

    assert_non_null(data);
    much_below(w, data, XR_MESSAGE_MAX / 2);
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, NULL, 0, data, XR_MESSAGE_MAX / 2, &one);
    expect(w, &one, -3, "");
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, NULL, 0, data, XR_MESSAGE_MAX - 15, &two);
    come_below(w, NULL, 0);
    expect(w, &two, -3, "");
    enter(w, &three); /* the next one */
    come_below(w, NULL, 0);
    expect(w, &three, 0, "xy");
    free(data);
}

/* The fence of this rank waits for those; NULL: it is in no fence of this node. */
static void waits(struct world *w, uint32_t rank, const char *names)
{
    const struct xr_fence *f = xr_fence_of(w->fences, XR_FENCE_PMIX, rank);
    char text[80];

    assert_null(xr_fence_of(w->fences, XR_FENCE_PMI1, rank));
    assert_true(!f == !names);
    if (!f || !names)
        return;
    assert_true(xr_fence_awaited(w->fences, f, text, sizeof(text)) == (strcmp(names, "other hosts") != 0));
    assert_string_equal(text, names);
    xr_fence_awaited(w->fences, f, text, 4);
    assert_memory_equal(text, names, 3);
    assert_int_equal(strlen(text), 3);
}

static void waited_for_here(void **state)
{
    struct world *w = *state;
    const uint32_t some[] = {0, 1, 4};

    waits(w, 0, NULL);
    waits(w, RANKS, NULL);
    enter(w, &one);
    waits(w, 0, "host c");
    waits(w, 1, NULL); /* that is below, and has not come */
    xr_fence_abandon(w->fences, &one);
    waits(w, 0, NULL);
    enter(w, &one);
    waits(w, 0, "host c");
    xr_fence_enter(w->fences, XR_FENCE_PMIX, 0, some, 3, "x", 1, &two);
    waits(w, 2, "host c");
    waits(w, 4, NULL); /* in both: which is meant? */
    come_below(w, some, 3);
    waits(w, 4, "host c");
    come_below(w, NULL, 0);
    waits(w, 0, NULL);
    assert_int_equal(w->answers, 2);
    assert_null(xr_fence_of(NULL, XR_FENCE_PMIX, 0));
}

/* The nodes above have it. */
static void waited_for_above(void **state)
{
    struct world *w = *state;

    enter(w, &one);
    waits(w, 0, "other hosts");
    waits(w, 1, NULL); /* this node has nothing of that host */
    over(w, 0, "ab");
    waits(w, 0, NULL);
}

static void children_waited_for(void **state)
{
    struct world *w = *state;
    const uint32_t two_hosts[] = {0, 1}, three_hosts[] = {2, 3, 12};

    come_from(w, 1, NULL, 0);
    waits(w, 13, "some of hosts a,c,d,g and 3 more");
    waits(w, 0, NULL);
    xr_liveness_note(w->gone, XR_FAILED_HOST, 2);
    waits(w, 13, "some of hosts a,d,g,h and 2 more");
    come_from(w, 1, two_hosts, 2);
    waits(w, 5, "some of hosts a,d,g,h and 2 more");
    come_from(w, 0, NULL, 0);
    waits(w, 5, NULL);
    waits(w, 1, "host a");
    come_from(w, 0, three_hosts, 3);
    waits(w, 3, "host m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(given_up_and_over, open_world, close_world),
        cmocka_unit_test_setup_teardown(given_up_and_failed, open_world, close_world),
        cmocka_unit_test_setup_teardown(back_in_time, open_world, close_world),
        cmocka_unit_test_setup_teardown(many_subsets, open_world, close_world),
        cmocka_unit_test_setup_teardown(many_given_up, open_world, close_world),
        cmocka_unit_test_setup_teardown(gone_below, open_tree, close_world),
        cmocka_unit_test_setup_teardown(gone_and_forgotten, open_tree, close_world),
        cmocka_unit_test_setup_teardown(too_much, open_tree, close_world),
        cmocka_unit_test_setup_teardown(waited_for_here, open_tree, close_world),
        cmocka_unit_test_setup_teardown(waited_for_above, open_world, close_world),
        cmocka_unit_test_setup_teardown(children_waited_for, open_front, close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
