/* SPDX-License-Identifier: BSD-3-Clause */
/* affinity_test.c: find ranks that share cores. */
/* Compared with the cases that occur, and with Hall's condition on all groups. */
#include "tests/unit/unit.h"

#include "lib/node/affinity.h"

#include <limits.h>
#include <sched.h>

enum { MOST = 8 };

/* Rank i may use the cores of bits[i], and so many are for it. */
static void check(int n, const uint64_t *bits, const int *share)
{
    struct rk_affinity of[MOST];

    memset(of, 0, sizeof(of));
    for (int i = 0; i < n; i++)
        of[i].word[0] = bits[i];
    for (int i = 0; i < n; i++)
        assert_int_equal(rk_affinity_share(of, n, i), share[i]);
}
#define BITS (const uint64_t[])
#define SHARE (const int[])

static void those_that_occur(void **state)
{
    (void)state;
    check(1, BITS{15}, SHARE{4});
    check(4, BITS{1, 2, 4, 8}, SHARE{1, 1, 1, 1});
    check(2, BITS{15, 15}, SHARE{2, 2});
    check(4, BITS{15, 15, 15, 15}, SHARE{1, 1, 1, 1});
    check(5, BITS{15, 15, 15, 15, 15}, SHARE{0, 0, 0, 0, 0});
    /* two of three on one core of four */
    check(3, BITS{1, 1, 8}, SHARE{0, 0, 1});
    /* a part of the machine is full, the other is not */
    check(5, BITS{3, 3, 3, 12, 12}, SHARE{0, 0, 0, 1, 1});
    check(4, BITS{7, 8, 8, 8}, SHARE{3, 0, 0, 0});
    /* one that may run anywhere: there is a core left; there is none; it has to go where others are */
    check(3, BITS{1, 1, 15}, SHARE{0, 0, 1});
    check(3, BITS{1, 2, 7}, SHARE{1, 1, 1});
    check(3, BITS{1, 2, 3}, SHARE{0, 0, 0});
    check(2, BITS{1, 3}, SHARE{1, 1});
    /* three levels: the package is short by what may run in all of it, the rest of the machine is not */
    check(5, BITS{1, 2, 3, 15, 15}, SHARE{0, 0, 0, 0, 0});
    check(4, BITS{1, 2, 3, 12}, SHARE{0, 0, 0, 2});
    /* overlapping in other ways, each set by itself large enough */
    check(4, BITS{3, 6, 5, 3}, SHARE{0, 0, 0, 0});
    check(3, BITS{3, 6, 12}, SHARE{1, 1, 1});
}

/* Unknown sets are not counted. */
static void unknown(void **state)
{
    (void)state;
    check(3, BITS{0, 1, 0}, SHARE{INT_MAX, 1, INT_MAX});
    check(3, BITS{0, 1, 1}, SHARE{INT_MAX, 0, 0});
}

static void many_cores(void **state)
{
    struct rk_affinity of[3];

    (void)state;
    memset(of, 0, sizeof(of));
    of[0].word[15] = of[1].word[15] = 1ull << 63;
    of[2].word[1] = 1ull << 63;
    assert_int_equal(rk_affinity_share(of, 3, 0), 0);
    assert_int_equal(rk_affinity_share(of, 3, 1), 0);
    assert_int_equal(rk_affinity_share(of, 3, 2), 1);
    memset(of, 0xff, sizeof(of));
    assert_int_equal(rk_affinity_share(of, 3, 1), 341);
}

static void asked(void **state)
{
    struct rk_affinity cores;
    cpu_set_t one;
    int cpu = sched_getcpu();

    (void)state;
    assert_true(cpu >= 0 && cpu < 1024);
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    rk_affinity_query(&cores);
    for (int i = 0; i < 16; i++)
        assert_true(cores.word[i] == (i == cpu / 64 ? 1ull << cpu % 64 : 0));
}

/* ------------------------------------------------------------------------- all groups */

static uint64_t below(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

/* Some group that rank me is in, or any group if me is -1, has fewer cores than members. */
static bool some_group_is_short(int n, const uint64_t *bits, int me)
{
    for (unsigned group = 1; group < 1u << n; group++) {
        uint64_t cores = 0;

        if (me >= 0 && !(group >> me & 1))
            continue;
        for (int i = 0; i < n; i++)
            cores |= group >> i & 1 ? bits[i] : 0;
        if (__builtin_popcountll(cores) < __builtin_popcount(group))
            return true;
    }
    return false;
}

/* A part of the machine, and of that a part, and so on: of parts that are the same for all. */
static uint64_t part(uint64_t tree, uint64_t *random)
{
    int from = 0, to = MOST;

    while (to - from > 1 && below(random, 3)) {
        int cut = from + 1 + (int)below(&tree, (uint64_t)(to - from - 1));

        if (below(random, 2)) {
            from = cut;
            tree += 1;
        } else {
            to = cut;
        }
    }
    return (1u << to) - (1u << from);
}

static void as_hall_says(void **state)
{
    uint64_t random = 1;
    int shorts = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        bool nested = round % 2, found = false;
        int n = 1 + (int)below(&random, MOST);
        uint64_t bits[MOST], tree = below(&random, 1000);
        struct rk_affinity of[MOST];

        memset(of, 0, sizeof(of));
        for (int i = 0; i < n; i++)
            of[i].word[0] = bits[i] = nested ? part(tree, &random) : 1 + below(&random, 255);
        for (int i = 0; i < n; i++) {
            bool shares = rk_affinity_share(of, n, i) == 0;

            found = found || shares;
            if (shares) /* never in vain */
                assert_true(some_group_is_short(n, bits, i));
        }
        if (nested) /* and never overlooked */
            assert_int_equal(found, some_group_is_short(n, bits, -1));
        shorts += found;
    }
    assert_true(shorts > 1000 && shorts < 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_occur), cmocka_unit_test(unknown), cmocka_unit_test(many_cores),
        cmocka_unit_test(as_hall_says), cmocka_unit_test(asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
