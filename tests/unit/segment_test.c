/* SPDX-License-Identifier: BSD-3-Clause */
/* segment_test.c: offer and withdraw segments at random, against a model. */
#include "tests/unit/unit.h"

#include "lib/mem/segment.h"

#include <stdbool.h>

enum { LIVE_MAX = 200, STEPS = 40000, BYTES = 1 << 16 };

static char memory[BYTES];

struct live {
    struct rk_segment *seg;
    uint64_t id;
    size_t at, bytes;
    bool hidden;
};

/* Does one of the segments hold the range? */
static bool held(const struct live *live, size_t at, size_t bytes)
{
    for (int i = 0; i < LIVE_MAX; i++)
        if (live[i].seg && !live[i].hidden && live[i].at <= at && at + bytes <= live[i].at + live[i].bytes)
            return true;
    return false;
}

static void search(struct rk_ctx *ctx, const struct live *live)
{
    size_t at = (size_t)rand() % BYTES, bytes = (size_t)rand() % (BYTES - at) / (1 + (size_t)rand() % 64);
    struct rk_segment *seg = rk_segment_holding(ctx, memory + at, bytes);
    uint64_t id, name_at;

    assert_int_equal(seg != NULL, held(live, at, bytes));
    assert_int_equal(rk_segment_name(ctx, memory + at, bytes, &id, &name_at), seg != NULL);
    if (!seg)
        return;
    assert_true(seg->base <= memory + at && memory + at + bytes <= seg->base + seg->bytes);
    assert_int_equal(id, seg->id);
    assert_ptr_equal(rk_segment_by_id(ctx, id), seg);
    assert_ptr_equal(rk_segment_at(ctx, id, name_at, bytes), memory + at);
    assert_null(rk_segment_at(ctx, id, name_at, seg->bytes + 1));
}

static void random_program(void **state)
{
    static struct live live[LIVE_MAX];
    struct rk_ctx ctx = {.level = 0};
    uint64_t ids = 1;

    (void)state;
    srand(19);
    assert_int_equal(rk_segments_open(&ctx), RANK_OK);
    for (int step = 0; step < STEPS; step++) {
        struct live *l = &live[rand() % LIVE_MAX];

        if (!l->seg) {
            l->at = (size_t)rand() % BYTES;
            l->bytes = (size_t)rand() % (BYTES - l->at + 1) / (1 + (size_t)rand() % 32);
            l->id = ids += 2;
            l->hidden = false;
            l->seg = rk_segment_offer(&ctx, l->id, memory + l->at, l->bytes);
            assert_non_null(l->seg);
        } else if (!l->hidden && rand() % 4 == 0) {
            rk_segment_withdraw(l->seg);
            l->hidden = true;
            assert_null(rk_segment_by_id(&ctx, l->id));
        } else {
            rk_segment_close(l->seg);
            l->seg = NULL;
            assert_null(rk_segment_by_id(&ctx, l->id));
        }
        search(&ctx, live);
    }
    rk_segments_close(&ctx);
}

/* Another process maps allocated memory by its card, and read-only if writes are denied. */
static void allocated(void **state)
{
    struct rk_ctx ctx = {.level = 0}, other = {.level = 0};
    const size_t sizes[] = {0, 1, 4096, 70000, 3 << 20};
    struct rk_segment *seg, *map;

    (void)state;
    assert_int_equal(rk_segments_open(&ctx), RANK_OK);
    assert_int_equal(rk_segments_open(&other), RANK_OK);
    for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t bytes = sizes[i / 2];

        assert_int_equal(rk_segment_alloc(&ctx, bytes, "test", &seg), RANK_OK);
        seg->card.denied = i % 2 ? RK_NO_WRITES : 0;
        assert_true(rk_segment_publish(seg, 11 + 2 * i));
        map = rk_segment_map(&other, seg->id, seg->there, bytes, &seg->card);
        assert_int_equal(map != NULL, bytes > 0);
        if (map) {
            memset(seg->base, 0x5a, bytes);
            assert_memory_equal(map->base, seg->base, bytes);
            assert_int_equal(rk_segment_at(&other, seg->id, seg->there, bytes) != NULL, i % 2 == 0); /* for writes, too */
            if (i % 2 == 0)
                map->base[bytes - 1] = 7;
            assert_int_equal(seg->base[bytes - 1], i % 2 ? 0x5a : 7);
            assert_true(rk_segment_revoke(map));
            assert_null(rk_segment_by_id(&other, seg->id));
            memset(map->base, 1, bytes); /* private by now */
            assert_int_equal(seg->base[0], bytes == 1 && i % 2 == 0 ? 7 : 0x5a);
        }
        rk_segment_close(map);
        rk_segment_close(seg);
    }
    rk_segments_close(&other);
    rk_segments_close(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_program),
        cmocka_unit_test(allocated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
