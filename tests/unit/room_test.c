/* SPDX-License-Identifier: BSD-3-Clause */
/* room_test.c: test the registration of rooms. */
#include "lib/core/engine.h"
#include "lib/core/root.h"

#include "tests/unit/unit.h"

static int calls;

static int polled(struct rk_ctx *ctx)
{
    (void)ctx;
    calls++;
    return 0;
}

static void no_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                     const struct rk_rndv *rndv)
{
    (void)ctx, (void)peer, (void)hdr, (void)payload, (void)rndv;
}

static void test_rooms(void **state)
{
    static const struct rk_room always = {.name = "always", .progress = polled};
    static const struct rk_room later = {.name = "later", .progress = polled, .progress_on_demand = true};
    static const struct rk_room twice = {.name = "twice", .frames = {{RK_KIND_MSG, no_frame}}};
    struct rk_ctx *ctx = rk_root;
    int before = ctx->engine->nrooms;

    (void)state;
    assert_int_equal(rk_room_open(ctx, &twice), RANK_ERR_INTERNAL); /* p2p has that kind */
    assert_int_equal(rk_room_open(ctx, &later), RANK_OK);
    rk_progress(ctx);
    assert_int_equal(calls, 0);
    rk_room_start_progress(ctx, &later);
    rk_room_start_progress(ctx, &later);
    rk_progress(ctx);
    assert_int_equal(calls, 1);
    assert_int_equal(ctx->engine->nrooms, before + 1);
    while (ctx->engine->nrooms < RK_ROOMS_MAX)
        assert_int_equal(rk_room_open(ctx, &later), RANK_OK);
    assert_int_equal(rk_room_open(ctx, &always), RANK_ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rooms)};
    int failed;

    if (rank_init(NULL))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rank_finalize() || failed;
}
