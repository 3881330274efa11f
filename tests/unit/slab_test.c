/* SPDX-License-Identifier: BSD-3-Clause */
/* slab_test.c: allocate and free objects at random, against a model. */
#include "tests/unit/unit.h"

#include "lib/base/slab.h"

#include <stdbool.h>

enum { LIVE_MAX = 300, SLAB_STEPS = 50000 };

struct item {
    uint32_t magic;
    int owner;
    void *next;
    unsigned char rest[44];
};

enum { ITEM_LINK = offsetof(struct item, next) };

static void random_program(void **state)
{
    struct rk_slab slab = RK_SLAB_INIT(sizeof(struct item), 7);
    struct item *live[LIVE_MAX] = {NULL};
    size_t n = 0, most = 0;

    (void)state;
    srand(18);
    for (int step = 0; step < SLAB_STEPS; step++) {
        int i = rand() % LIVE_MAX;
        if (live[i]) {
            assert_int_equal(live[i]->owner, i); /* no other object shares its memory */
            for (size_t k = 0; k < sizeof(live[i]->rest); k++)
                assert_int_equal(live[i]->rest[k], i & 255);
            live[i]->magic = 0;
            rk_slab_free(&slab, live[i], ITEM_LINK);
            assert_int_equal(live[i]->magic, 0);
            assert_int_equal(live[i]->owner, i); /* only the link is overwritten */
            live[i] = NULL;
            n--;
        } else {
            live[i] = rk_slab_alloc(&slab, ITEM_LINK);
            assert_non_null(live[i]);
            assert_int_equal((uintptr_t)live[i] % 16, 0);
            live[i]->owner = i;
            memset(live[i]->rest, i & 255, sizeof(live[i]->rest));
            n++;
        }
        most = n > most ? n : most;
        if (step % 500 == 0)
            assert_int_equal(rk_slab_in_use(&slab, ITEM_LINK), n);
        assert_true(slab.made <= most);
    }
    assert_int_equal(slab.made, most); /* free objects are used first */
    rk_slab_close(&slab);
    assert_int_equal(rk_slab_in_use(&slab, ITEM_LINK), 0);
    assert_non_null(rk_slab_alloc(&slab, ITEM_LINK)); /* opens again */
    rk_slab_close(&slab);
}

static void last_freed_first(void **state)
{
    struct rk_slab slab = RK_SLAB_INIT(sizeof(struct item), 4);
    struct item *a, *b;

    (void)state;
    assert_null(rk_slab_reuse(&slab, ITEM_LINK));
    a = rk_slab_alloc(&slab, ITEM_LINK);
    b = rk_slab_alloc(&slab, ITEM_LINK);
    rk_slab_free(&slab, a, ITEM_LINK);
    rk_slab_free(&slab, b, ITEM_LINK);
    assert_ptr_equal(rk_slab_reuse(&slab, ITEM_LINK), b);
    assert_ptr_equal(rk_slab_reuse(&slab, ITEM_LINK), a);
    assert_null(rk_slab_reuse(&slab, ITEM_LINK));
    rk_slab_close(&slab);
}

static void lines(void **state)
{
    struct rk_slab slab = RK_SLAB_INIT(3 * RK_CACHE_LINE, 5);

    (void)state;
    for (int i = 0; i < 23; i++)
        assert_int_equal((uintptr_t)rk_slab_alloc(&slab, 0) % RK_CACHE_LINE, 0);
    rk_slab_close(&slab);
}

static int visits;

static bool visit(void *object)
{
    visits++;
    assert_int_equal(((struct item *)object)->owner, 5);
    ((struct item *)object)->owner = 6;
    return false;
}

static bool is_sixth(void *object)
{
    (void)object;
    return ++visits == 6;
}

static void each(void **state)
{
    struct rk_slab slab = RK_SLAB_INIT(sizeof(struct item), 4);

    (void)state;
    assert_null(rk_slab_find(&slab, visit));
    assert_int_equal(visits, 0);
    for (int n = 0; n < 10; n++) {
        struct item *it = rk_slab_extend(&slab);
        it->owner = 5;
        if (n % 3 == 0)
            rk_slab_free(&slab, it, ITEM_LINK);
    }
    assert_null(rk_slab_find(&slab, visit)); /* free ones too, once each */
    assert_int_equal(visits, 10);
    visits = 0;
    assert_non_null(rk_slab_find(&slab, is_sixth));
    assert_int_equal(visits, 6);
    rk_slab_close(&slab);
}

/* Free objects of chunks that are not in use are given back: they are mapped and zero, and none is lost or doubled. */
static void trim(void **state)
{
    enum { MANY = 40000, KEPT = 25 };
    struct rk_slab slab = RK_SLAB_INIT(sizeof(struct item), 256);
    struct item **all = calloc(MANY, sizeof(*all));
    size_t zero = 0, made;

    (void)state;
    assert_non_null(all);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            all[i] = rk_slab_alloc(&slab, ITEM_LINK);
            assert_non_null(all[i]);
            all[i]->magic = 0x6d61676bu;
            all[i]->owner = i;
        }
        made = slab.made;
        rk_slab_trim(&slab, ITEM_LINK); /* no-op: all are in use */
        assert_int_equal(slab.made, made);
        for (int i = 0; i < MANY; i++) { /* some stay, in chunks of their own and together */
            assert_int_equal(all[i]->owner, i);
            if (i % (MANY / KEPT) != 7)
                rk_slab_free(&slab, all[i], ITEM_LINK);
        }
        rk_slab_trim(&slab, ITEM_LINK);
        assert_true(slab.made >= KEPT && slab.made <= (KEPT + 1) * 256);
        assert_int_equal(rk_slab_in_use(&slab, ITEM_LINK), KEPT);
        for (int i = 0; i < MANY; i++) { /* reading a free one is allowed */
            zero += all[i]->magic == 0;
            if (i % (MANY / KEPT) == 7) {
                assert_int_equal(all[i]->owner, i);
                rk_slab_free(&slab, all[i], ITEM_LINK);
            }
        }
        assert_true(zero > MANY / 2);
    }
    assert_int_equal(rk_slab_in_use(&slab, ITEM_LINK), 0);
    rk_slab_close(&slab);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_program),
        cmocka_unit_test(last_freed_first),
        cmocka_unit_test(lines),
        cmocka_unit_test(each),
        cmocka_unit_test(trim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
