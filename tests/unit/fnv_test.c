/* SPDX-License-Identifier: BSD-3-Clause */
/* fnv_test.c: compare hashes with FNV-1a: their values never change. */
#include "tests/unit/unit.h"

#include "lib/base/fnv.h"

#include <string.h>

static void values_of_the_standard(void **state)
{
    (void)state;
    assert_true(rk_fnv32(RK_FNV32_START, "", 0) == 0x811c9dc5u);
    assert_true(rk_fnv32(RK_FNV32_START, "a", 1) == 0xe40c292cu);
    assert_true(rk_fnv32(RK_FNV32_START, "foobar", 6) == 0xbf9cf968u);
    assert_true(rk_fnv64(RK_FNV64_START, "", 0) == 0xcbf29ce484222325u);
    assert_true(rk_fnv64(RK_FNV64_START, "a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(rk_fnv64(RK_FNV64_START, "foobar", 6) == 0x85944171f73967e8u);
}

static void a_hash_goes_on(void **state)
{
    uint32_t h32 = rk_fnv32(RK_FNV32_START, "foo", 3);
    uint64_t h64 = rk_fnv64(RK_FNV64_START, "foo", 3);

    (void)state;
    assert_true(rk_fnv32(h32, "bar", 3) == rk_fnv32(RK_FNV32_START, "foobar", 6));
    assert_true(rk_fnv64(h64, "bar", 3) == rk_fnv64(RK_FNV64_START, "foobar", 6));
}

static void values_of_keys(void **state)
{
    (void)state;
    assert_true(RK_FNV64_START_KEYS == 0x14650fb0739d0383u);
    assert_true(rk_fnv64(RK_FNV64_START_KEYS, "\xff", 1) == (RK_FNV64_START_KEYS ^ 0xffu) * 1099511628211u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_the_standard),
        cmocka_unit_test(a_hash_goes_on),
        cmocka_unit_test(values_of_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
