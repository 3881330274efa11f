/* SPDX-License-Identifier: BSD-3-Clause */
/* room_test.c: test the registration of rooms and of frame kinds. */
#include "lib/core/engine.h"
#include "lib/core/root.h"

#include "tests/unit/unit.h"

enum { KINDS = RK_KIND_COUNT - RK_KIND_USER_FIRST, OWNERS = 3, STEPS = 20000 };

static const char *const owner_name[OWNERS] = {"queue", "functions", "test"};
static uint64_t seed = 1;

struct got {
    int kind, owner;
    uint64_t tag;
};

static struct got last;
static int args[OWNERS] = {0, 1, 2};

static uint32_t next(uint32_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % below;
}

static void arrived(void *arg, struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    assert_ptr_equal(ctx, peer->ctx);
    assert_int_equal(hdr->len, 8);
    last = (struct got){hdr->kind, *(int *)arg, hdr->tag};
    assert_memory_equal(payload, &last.tag, 8);
}

/* A random program against the model: which owner has which kind. */
static void test_frames(void **state)
{
    struct rk_ctx *ctx = rk_root;
    struct rk_peer *self = rk_engine_peer(ctx, 0);
    int model[KINDS];

    (void)state;
    memset(model, -1, sizeof(model));
    assert_int_equal(rk_peer_try_connect(self), RANK_OK);
    for (uint64_t step = 0; step < STEPS; step++) {
        int k = (int)next(KINDS), kind = RK_KIND_USER_FIRST + k, owner = (int)next(OWNERS);
        struct rk_hdr hdr = {.kind = (uint8_t)kind, .len = 8, .tag = step};

        switch (next(4)) {
        case 0:
            assert_int_equal(rk_frame_register(ctx, kind, owner_name[owner], arrived, &args[owner]),
                             model[k] < 0 ? RANK_OK : RANK_ERR_STATE);
            model[k] = model[k] < 0 ? owner : model[k];
            break;
        case 1:
            rk_frame_unregister(ctx, kind, owner_name[owner]);
            model[k] = model[k] == owner ? -1 : model[k];
            break;
        default:
            last.kind = 0;
            assert_int_equal(self->channel->send(self, &hdr, &step), model[k] < 0 ? RANK_ERR_NOT_SUPPORTED : RANK_OK);
            assert_int_equal(last.kind, model[k] < 0 ? 0 : kind);
            assert_true(model[k] < 0 || (last.owner == model[k] && last.tag == step));
        }
    }
    assert_int_equal(rk_frame_register(ctx, RK_KIND_USER_FIRST - 1, "test", arrived, NULL), RANK_ERR_ARG);
    assert_int_equal(rk_frame_register(ctx, RK_KIND_COUNT, "test", arrived, NULL), RANK_ERR_ARG);
}

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames), cmocka_unit_test(test_rooms)};
    int failed;

    if (rank_init(NULL))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rank_finalize() || failed;
}
