/* SPDX-License-Identifier: BSD-3-Clause */
/* match_test.c: compare the match tables with a plain list. */
#include "tests/unit/unit.h"

#include "lib/base/clock.h"
#include "lib/p2p/match.h"

enum { TEAM = 5 };

static int setup(void **state)
{
    struct rk_match *m = calloc(1, sizeof(*m));

    *state = m;
    return rk_match_init(m) ? -1 : 0;
}

static int teardown(void **state)
{
    rk_match_destroy(*state);
    rk_match_destroy(*state); /* twice is fine */
    free(*state);
    return 0;
}

static void want(struct rank_request *r, uint64_t team, uint32_t src, uint64_t tag)
{
    memset(r, 0, sizeof(*r));
    r->team = team;
    r->src = src;
    r->tag = tag;
}

static void message(struct rk_unexpected *u, uint64_t team, uint32_t src, uint64_t tag)
{
    memset(u, 0, sizeof(*u));
    u->team = team;
    u->src = src;
    u->tag = tag;
}

static void nothing(void **state)
{
    struct rk_match *m = *state;

    assert_null(rk_match_arrive(m, TEAM, 0, 0));
    assert_null(rk_match_find(m, TEAM, 0, 0));
    assert_null(rk_match_find(m, TEAM, RK_SRC_ANY, RK_TAG_ANY));
}

static void posted_in_order(void **state)
{
    struct rk_match *m = *state;
    struct rank_request r[10];

    for (int i = 0; i < 10; i++) {
        want(&r[i], TEAM, 3, 9);
        rk_match_post(m, &r[i]);
        assert_true(r[i].flags & RK_REQ_POSTED);
    }
    assert_null(rk_match_arrive(m, TEAM, 3, 8));
    assert_null(rk_match_arrive(m, TEAM, 4, 9));
    assert_null(rk_match_arrive(m, TEAM + 1, 3, 9));
    for (int i = 0; i < 10; i++) {
        assert_ptr_equal(rk_match_arrive(m, TEAM, 3, 9), &r[i]);
        assert_false(r[i].flags & RK_REQ_POSTED);
    }
    assert_null(rk_match_arrive(m, TEAM, 3, 9));
    assert_int_equal(m->nposted, 0);
}

/* Specific and wild receives: the one posted first gets it. */
static void wild_in_order(void **state)
{
    struct rk_match *m = *state;
    struct rank_request r[8];
    static const struct {
        uint32_t src;
        uint64_t tag;
    } k[8] = {{3, 9}, {RK_SRC_ANY, 9}, {3, RK_TAG_ANY}, {3, 9},
              {RK_SRC_ANY, RK_TAG_ANY}, {3, 9}, {RK_SRC_ANY, 9}, {4, 9}};

    for (int i = 0; i < 8; i++) {
        want(&r[i], TEAM, k[i].src, k[i].tag);
        rk_match_post(m, &r[i]);
    }
    for (int i = 0; i < 7; i++)
        assert_ptr_equal(rk_match_arrive(m, TEAM, 3, 9), &r[i]);
    assert_null(rk_match_arrive(m, TEAM, 3, 9));
    assert_ptr_equal(rk_match_arrive(m, TEAM, 4, 9), &r[7]);
    assert_int_equal(m->nposted, 0);
    assert_int_equal(m->nwild, 0);
    /* A wild receive of another team is not for us. */
    want(&r[0], TEAM + 1, RK_SRC_ANY, RK_TAG_ANY);
    rk_match_post(m, &r[0]);
    assert_null(rk_match_arrive(m, TEAM, 3, 9));
    assert_ptr_equal(rk_match_arrive(m, TEAM + 1, 0, 0), &r[0]);
}

/* The order of posting survives any number of receives in between. */
static void order_lasts(void **state)
{
    struct rk_match *m = *state;
    struct rank_request r[4];

    want(&r[0], TEAM, RK_SRC_ANY, 9);
    rk_match_post(m, &r[0]);
    m->seq += 1ull << 31;
    want(&r[1], TEAM, 3, 9);
    rk_match_post(m, &r[1]);
    m->seq += 3ull << 31;
    want(&r[2], TEAM, 3, RK_TAG_ANY);
    rk_match_post(m, &r[2]);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(rk_match_arrive(m, TEAM, 3, 9), &r[i]);

    m->seq = UINT32_MAX - 1;
    for (int i = 0; i < 4; i++) {
        want(&r[i], TEAM, i & 1 ? RK_SRC_ANY : 3, 9);
        rk_match_post(m, &r[i]);
    }
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(rk_match_arrive(m, TEAM, 3, 9), &r[i]);
}

static void unpost(void **state)
{
    struct rk_match *m = *state;
    struct rank_request r[3];

    for (int i = 0; i < 3; i++) {
        want(&r[i], TEAM, i == 1 ? RK_SRC_ANY : 3, 9);
        rk_match_post(m, &r[i]);
    }
    rk_match_unpost(m, &r[0]);
    rk_match_unpost(m, &r[1]);
    assert_int_equal(m->nwild, 0);
    assert_int_equal(m->nposted, 1);
    assert_ptr_equal(rk_match_arrive(m, TEAM, 3, 9), &r[2]);
    assert_null(rk_match_arrive(m, TEAM, 3, 9));
}

static void messages_in_order(void **state)
{
    struct rk_match *m = *state;
    struct rk_unexpected u[6];

    message(&u[0], TEAM, 1, 10);
    message(&u[1], TEAM, 2, 10);
    message(&u[2], TEAM, 1, 11);
    message(&u[3], TEAM, 1, 10);
    message(&u[4], TEAM + 1, 1, 10);
    message(&u[5], TEAM, 2, 11);
    for (int i = 0; i < 6; i++)
        rk_match_add_unexpected(m, &u[i]);
    assert_ptr_equal(rk_match_find(m, TEAM, 1, 10), &u[0]);
    assert_ptr_equal(rk_match_find(m, TEAM, 1, 10), &u[0]); /* left in place */
    assert_ptr_equal(rk_match_find(m, TEAM, RK_SRC_ANY, RK_TAG_ANY), &u[0]);
    assert_ptr_equal(rk_match_find(m, TEAM, RK_SRC_ANY, 11), &u[2]);
    assert_ptr_equal(rk_match_find(m, TEAM, 2, RK_TAG_ANY), &u[1]);
    assert_ptr_equal(rk_match_find(m, TEAM + 1, RK_SRC_ANY, 10), &u[4]);
    assert_null(rk_match_find(m, TEAM, 3, RK_TAG_ANY));
    assert_null(rk_match_find(m, TEAM + 2, RK_SRC_ANY, RK_TAG_ANY));
    rk_match_drop(m, &u[0]);
    assert_ptr_equal(rk_match_find(m, TEAM, 1, 10), &u[3]);
    assert_ptr_equal(rk_match_find(m, TEAM, 1, RK_TAG_ANY), &u[2]);
    for (int i = 1; i < 6; i++)
        rk_match_drop(m, &u[i]);
    assert_int_equal(m->nwaiting, 0);
    assert_null(rk_match_find(m, TEAM, RK_SRC_ANY, RK_TAG_ANY));
}

/* 100,000 of each, taken in the reverse order: the tables grow, and it takes no square time. */
static void many(void **state)
{
    enum { N = 100000 };
    struct rk_match *m = *state;
    struct rank_request *r = calloc(N, sizeof(*r));
    struct rk_unexpected *u = calloc(N, sizeof(*u));
    uint64_t t0 = rk_clock_ns();

    for (int i = 0; i < N; i++) {
        want(&r[i], TEAM, (uint32_t)i % 7, (uint64_t)i);
        rk_match_post(m, &r[i]);
        message(&u[i], TEAM, (uint32_t)i % 5, (uint64_t)i * 3);
        rk_match_add_unexpected(m, &u[i]);
    }
    assert_int_equal(m->nposted, N);
    assert_int_equal(m->nwaiting, N);
    assert_true(m->posted_mask >= N / 4);
    assert_true(m->waiting_mask >= N / 4);
    for (int i = N - 1; i >= 0; i--) {
        assert_ptr_equal(rk_match_arrive(m, TEAM, (uint32_t)i % 7, (uint64_t)i), &r[i]);
        assert_ptr_equal(rk_match_find(m, TEAM, (uint32_t)i % 5, (uint64_t)i * 3), &u[i]);
        rk_match_drop(m, &u[i]);
    }
    assert_int_equal(m->nposted, 0);
    assert_int_equal(m->nwaiting, 0);
    /* A second would do for the square of a tenth of this; slow machines and sanitizers included. */
    assert_true(rk_clock_ns() - t0 < 5000000000u);
    free(r);
    free(u);
}

/* Wildcards among many others: receives with other tags from any source, messages with other tags, all
 * taken in the reverse order. */
static void many_wild(void **state)
{
    enum { N = 60000 };
    struct rk_match *m = *state;
    struct rank_request *r = calloc(N, sizeof(*r));
    struct rk_unexpected *u = calloc(N, sizeof(*u));
    uint64_t t0 = rk_clock_ns();

    for (int i = 0; i < N; i++) {
        bool any_src = i % 2;
        want(&r[i], TEAM, any_src ? RK_SRC_ANY : (uint32_t)i, any_src ? (uint64_t)i : RK_TAG_ANY);
        rk_match_post(m, &r[i]);
        message(&u[i], TEAM + 1, (uint32_t)i, (uint64_t)i * 3);
        rk_match_add_unexpected(m, &u[i]);
    }
    assert_int_equal(m->nwild, N);
    for (int i = N - 1; i >= 0; i--) {
        bool any_src = i % 2;
        assert_ptr_equal(rk_match_arrive(m, TEAM, (uint32_t)i, (uint64_t)i), &r[i]);
        assert_ptr_equal(rk_match_find(m, TEAM + 1, any_src ? RK_SRC_ANY : (uint32_t)i,
                                       any_src ? (uint64_t)i * 3 : RK_TAG_ANY), &u[i]);
        rk_match_drop(m, &u[i]);
    }
    assert_int_equal(m->nwild, 0);
    assert_int_equal(m->nwaiting, 0);
    /* Going through lists would be 3 * 10^9 steps, most of them cache misses. */
    assert_true(rk_clock_ns() - t0 < 5000000000u);
    free(r);
    free(u);
}

/* Equal keys keep their order while the table grows under them. */
static void growth_keeps_order(void **state)
{
    enum { N = 5000, KEYS = 50 };
    struct rk_match *m = *state;
    struct rank_request *r = calloc(N, sizeof(*r));
    struct rk_unexpected *u = calloc(N, sizeof(*u));

    for (int i = 0; i < N; i++) {
        want(&r[i], TEAM, 1, (uint64_t)i % KEYS);
        rk_match_post(m, &r[i]);
        message(&u[i], TEAM, 1, (uint64_t)i % KEYS);
        rk_match_add_unexpected(m, &u[i]);
    }
    for (int k = 0; k < KEYS; k++) {
        for (int i = k; i < N; i += KEYS) {
            assert_ptr_equal(rk_match_arrive(m, TEAM, 1, (uint64_t)k), &r[i]);
            assert_ptr_equal(rk_match_find(m, TEAM, 1, (uint64_t)k), &u[i]);
            rk_match_drop(m, &u[i]);
        }
    }
    free(r);
    free(u);
}

static int longest_chain(const struct rk_link *buckets, uint32_t mask)
{
    int most = 0;

    for (uint32_t b = 0; b <= mask; b++) {
        const struct rk_link *l;
        int n = 0;
        rk_list_for_each(l, &buckets[b]) n++;
        if (n > most)
            most = n;
    }
    return most;
}

/* Keys as programs choose them spread over the buckets: many sources with one tag, tags in steps of
 * any power of two, many teams. */
static void chains_stay_short(void **state)
{
    enum { N = 1024 };
    struct rank_request *r = calloc(N, sizeof(*r));

    (void)state;
    for (int kind = 0; kind < 66; kind++) {
        struct rk_match m;
        int chain;
        assert_int_equal(rk_match_init(&m), RANK_OK);
        for (int i = 0; i < N; i++) {
            if (kind == 64)
                want(&r[i], TEAM, (uint32_t)i, 7);
            else if (kind == 65)
                want(&r[i], (uint64_t)i, 0, 7);
            else if (kind > 53)
                want(&r[i], (uint64_t)i << 32, 0, 7); /* team ids: creator and counter */
            else
                want(&r[i], TEAM, 0, (uint64_t)i << kind);
            rk_match_post(&m, &r[i]);
        }
        chain = longest_chain(m.posted, m.posted_mask);
        if (chain > 16)
            fail_msg("keys of kind %d (a shift of the tag; 64: sources; 65: teams): a chain of %d "
                     "among %d in %u buckets",
                     kind, chain, N, m.posted_mask + 1);
        rk_match_destroy(&m);
    }
    free(r);
}

/* ------------------------------------------------------- against a slow model */

struct model {
    struct rank_request *posted[400];
    int nposted;
    struct rk_unexpected *kept[400];
    int nkept;
};

static bool fits(const struct rank_request *r, uint64_t team, uint32_t src, uint64_t tag)
{
    return r->team == team && (r->src == src || r->src == RK_SRC_ANY) &&
           (r->tag == tag || r->tag == RK_TAG_ANY);
}

static uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

/* Sources, tags, and one in how many has a wildcard: of each kind. Few keys meet soon, many pile up. */
static void against_model(struct rk_match *m, int rounds, uint32_t srcs, uint64_t tags, uint32_t wild, uint64_t s)
{
    struct rank_request r[400];
    struct rk_unexpected u[400];

    for (int round = 0; round < rounds; round++) {
        struct model o = {.nposted = 0};
        int nr = 0, nu = 0;
        while (nr < 400 && nu < 400) {
            uint64_t team = next_random(&s) % 2, tag = next_random(&s) % tags;
            uint32_t src = (uint32_t)(next_random(&s) % srcs);
            if (next_random(&s) % 2) { /* a message */
                struct rank_request *expect = NULL;
                int at;
                for (at = 0; at < o.nposted && !expect; at++) {
                    if (fits(o.posted[at], team, src, tag))
                        expect = o.posted[at];
                }
                assert_ptr_equal(rk_match_arrive(m, team, src, tag), expect);
                if (expect) {
                    memmove(&o.posted[at - 1], &o.posted[at],
                            (size_t)(o.nposted - at) * sizeof(o.posted[0]));
                    o.nposted--;
                    continue;
                }
                message(&u[nu], team, src, tag);
                rk_match_add_unexpected(m, &u[nu]);
                o.kept[o.nkept++] = &u[nu++];
            } else { /* a receive */
                struct rk_unexpected *expect = NULL;
                int at;
                if (next_random(&s) % wild == 0)
                    src = RK_SRC_ANY;
                if (next_random(&s) % wild == 0)
                    tag = RK_TAG_ANY;
                want(&r[nr], team, src, tag);
                for (at = 0; at < o.nkept && !expect; at++) {
                    if (fits(&r[nr], o.kept[at]->team, o.kept[at]->src, o.kept[at]->tag))
                        expect = o.kept[at];
                }
                assert_ptr_equal(rk_match_find(m, team, src, tag), expect);
                if (expect) {
                    rk_match_drop(m, expect);
                    memmove(&o.kept[at - 1], &o.kept[at],
                            (size_t)(o.nkept - at) * sizeof(o.kept[0]));
                    o.nkept--;
                    continue;
                }
                rk_match_post(m, &r[nr]);
                o.posted[o.nposted++] = &r[nr++];
            }
        }
        assert_int_equal(m->nposted + m->nwild, o.nposted);
        assert_int_equal(m->nwaiting, o.nkept);
        assert_int_equal(m->nwild, m->nwild_of[1] + m->nwild_of[2] + m->nwild_of[3]);
        for (int i = 0; i < o.nposted; i++)
            rk_match_unpost(m, o.posted[i]);
        for (int i = 0; i < o.nkept; i++)
            rk_match_drop(m, o.kept[i]);
    }
}

static void random_against_model(void **state)
{
    against_model(*state, 100, 4, 4, 4, 20261);
    against_model(*state, 50, 100, 3, 2, 20262);
    against_model(*state, 50, 3, 100, 2, 20263);
    against_model(*state, 50, 30, 30, 3, 20264);
    against_model(*state, 50, 1000, 1000, 10, 20265);
}

static void count_and_unpost(struct rank_request *req, void *arg)
{
    void **a = arg;

    ++*(int *)a[1];
    if (req->tag % 2)
        rk_match_unpost(a[0], req);
}

static void each_posted(void **state)
{
    struct rk_match *m = *state;
    struct rank_request r[300];
    int n = 0;
    void *arg[2] = {m, &n};

    for (int i = 0; i < 300; i++) {
        want(&r[i], TEAM, i % 3 ? 1 : RK_SRC_ANY, (uint64_t)i);
        rk_match_post(m, &r[i]);
    }
    rk_match_each_posted(m, count_and_unpost, arg);
    assert_int_equal(n, 300);
    n = 0;
    rk_match_each_posted(m, count_and_unpost, arg);
    assert_int_equal(n, 150);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(nothing),      WITH(posted_in_order),   WITH(wild_in_order),
        WITH(order_lasts),  WITH(unpost),            WITH(messages_in_order),
        WITH(many), WITH(many_wild), WITH(growth_keeps_order), WITH(chains_stay_short),
        WITH(random_against_model), WITH(each_posted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
