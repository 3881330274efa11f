/* SPDX-License-Identifier: BSD-3-Clause */
/* outlier_test.c: measure a size again if its rate is far from its neighbours'. */
/* As rankinfo --calibrate does. */
#include "tests/unit/unit.h"

#include "tools/rankinfo/outlier.h"

static void outliers_are_found(void **state)
{
    /* GB/s * 10 as once kept: two outliers side by side. */
    static const uint32_t kept[] = {120, 150, 170, 17, 33, 240, 220, 210};

    (void)state;
    for (int i = 0; i < 8; i++)
        assert_int_equal(info_is_outlier(kept, 8, i), i == 3 || i == 4);
}

static void a_slope_is_none(void **state)
{
    static const uint32_t slope[] = {24, 39, 61, 82, 100, 114, 120, 123, 130, 121, 86};
    static const uint32_t step[] = {290, 300, 310, 120, 125, 130, 128, 126};
    static const uint32_t one[] = {5}, two[] = {5, 6};

    (void)state;
    for (int i = 0; i < 11; i++)
        assert_false(info_is_outlier(slope, 11, i));
    for (int i = 0; i < 8; i++) /* a drop that stays: a cache is full */
        assert_true(!info_is_outlier(step, 8, i) || i == 2);
    assert_false(info_is_outlier(one, 1, 0));
    assert_false(info_is_outlier(two, 2, 0) || info_is_outlier(two, 2, 1));
}

static void ends_and_extremes(void **state)
{
    static const uint32_t first[] = {9, 100, 100, 100}, last[] = {100, 100, 100, 900};
    static const uint32_t most[] = {UINT32_MAX, 1, UINT32_MAX, UINT32_MAX};

    (void)state;
    assert_true(info_is_outlier(first, 4, 0) && !info_is_outlier(first, 4, 1));
    assert_true(info_is_outlier(last, 4, 3) && !info_is_outlier(last, 4, 2));
    assert_true(info_is_outlier(most, 4, 1) && !info_is_outlier(most, 4, 2));
}

static void the_nearer_counts(void **state)
{
    (void)state;
    assert_int_equal(info_nearer_rate(100, 17, 95), 95);
    assert_int_equal(info_nearer_rate(100, 240, 110), 110);
    assert_int_equal(info_nearer_rate(100, 45, 200), 200); /* by ratio */
    assert_int_equal(info_nearer_rate(100, 55, 200), 55);
    assert_int_equal(info_nearer_rate(100, 17, 17), 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outliers_are_found),
        cmocka_unit_test(a_slope_is_none),
        cmocka_unit_test(ends_and_extremes),
        cmocka_unit_test(the_nearer_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
