/* SPDX-License-Identifier: BSD-3-Clause */
/* allocator_test.c: allocate ranges in random orders, against a map of bytes. */
#include "lib/mem/allocator.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096, PIECES = 200 };

static void test_first_fit(void **state)
{
    struct rk_allocator s;
    size_t a, b, c;

    (void)state;
    assert_true(rk_allocator_create(&s, 100));
    assert_true(rk_allocator_alloc(&s, 10, 1, &a));
    assert_true(rk_allocator_alloc(&s, 10, 64, &b));
    assert_true(rk_allocator_alloc(&s, 54, 2, &c));
    assert_int_equal(a, 0);
    assert_int_equal(b, 64);
    assert_int_equal(c, 10);
    assert_false(rk_allocator_alloc(&s, 27, 1, &a));
    assert_false(rk_allocator_alloc(&s, 0, 1, &a));
    rk_allocator_free(&s, 0, 10);
    rk_allocator_free(&s, c, 54);
    rk_allocator_free(&s, b, 10);
    assert_int_equal(s.npieces, 0);
    assert_int_equal(s.nholes, 1);
    assert_true(rk_allocator_alloc(&s, 100, 1, &a));
    assert_false(rk_allocator_alloc(&s, 1, 1, &b));
    rk_allocator_free(&s, a, 100);
    rk_allocator_destroy(&s);
}

static void test_random(void **state)
{
    static unsigned char map[BYTES];
    size_t at[PIECES], bytes[PIECES] = {0}, align;
    struct rk_allocator s;
    unsigned x = 12345;

    (void)state;
    assert_true(rk_allocator_create(&s, BYTES));
    for (int i = 0; i < 100000; i++) {
        unsigned k;
        x = x * 1103515245u + 12345u;
        k = (x >> 8) % PIECES;
        if (bytes[k]) {
            for (size_t j = 0; j < bytes[k]; j++)
                assert_int_equal(map[at[k] + j], k % 255 + 1);
            memset(map + at[k], 0, bytes[k]);
            rk_allocator_free(&s, at[k], bytes[k]);
            bytes[k] = 0;
            continue;
        }
        bytes[k] = (x >> 16) % 100 + 1;
        align = 1u << (x >> 26) % 6;
        if (!rk_allocator_alloc(&s, bytes[k], align, &at[k])) {
            bytes[k] = 0;
            continue;
        }
        assert_true(at[k] % align == 0 && at[k] + bytes[k] <= BYTES);
        for (size_t j = 0; j < bytes[k]; j++)
            assert_int_equal(map[at[k] + j], 0);
        memset(map + at[k], (int)(k % 255 + 1), bytes[k]);
    }
    for (int k = 0; k < PIECES; k++) {
        if (bytes[k])
            rk_allocator_free(&s, at[k], bytes[k]);
    }
    assert_int_equal(s.nholes, 1);
    assert_int_equal(s.holes[0].bytes, BYTES);
    rk_allocator_destroy(&s);
}

/* As many holes as there can be, and then a piece that joins two of them is given back: for a moment there is one more. */
static void test_all_holes(void **state)
{
    enum { FIRST = 64, REST = 5000, PAGE = 4096 };
    size_t at[256], first, again;
    struct rk_allocator s;

    (void)state;
    for (int n = 1; n < 64; n++) {
        assert_true(rk_allocator_create(&s, 2 << 20));
        assert_true(rk_allocator_alloc(&s, FIRST, FIRST, &first));
        for (int k = 0; k < n; k++)
            assert_true(rk_allocator_alloc(&s, REST, PAGE, &at[k]));
        rk_allocator_free(&s, first, FIRST);
        assert_true(rk_allocator_alloc(&s, REST, PAGE, &again));
        rk_allocator_free(&s, at[n / 2], REST);
        assert_true(s.nholes <= s.cap);
        rk_allocator_destroy(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_fit), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_all_holes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
