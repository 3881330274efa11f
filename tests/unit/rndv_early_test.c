/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rndv_early_test.c: fetch messages before their receive, within the bound.
 * Also while another message comes all the time. One rank, which sends to itself.
 */
#include "lib/p2p/p2p_internal.h"
#include "lib/core/root.h"

#include "tests/unit/unit.h"

enum { BYTES = 1 << 20, TIMEOUT_S = 60 };

static int something_comes(struct rk_ctx *ctx)
{
    (void)ctx;
    return 1;
}

/* Without a bout in which nothing comes. */
static void test_steady(void **state)
{
    struct rk_engine *e = rk_root->engine;
    char *out = calloc(2, BYTES);
    rank_request_t req;

    (void)state;
    memset(out, 'x', BYTES);
    e->hooks[e->nhooks++] = something_comes;
    assert_int_equal(rank_isend(out, BYTES, RANK_BYTE, 0, 1, rank_world(), &req), RANK_OK);
    assert_int_equal(rank_wait(&req, NULL), RANK_OK);
    e->nhooks--;
    assert_int_equal(rank_recv(out + BYTES, BYTES, RANK_BYTE, 0, 1, rank_world(), NULL), RANK_OK);
    assert_memory_equal(out, out + BYTES, BYTES);
    free(out);
}

static struct rank_request *under_way[2];
static int nunder_way;

static void hold(const struct rk_rndv *rndv, const struct rk_view *view, struct rank_request *req)
{
    (void)rndv;
    (void)view;
    under_way[nunder_way++] = req;
}

static const struct rk_channel holding = {.name = "holding", .rndv_recv = hold};

static struct rk_unexpected *announce(struct rk_peer *peer, uint64_t bytes)
{
    struct rk_p2p *p2p = peer->ctx->p2p;
    struct rk_unexpected *u = rk_unexpected_alloc(p2p);

    u->team = 7;
    u->tag = u->src = 0;
    u->kind = RK_KIND_RNDV;
    u->bytes = bytes;
    u->peer = peer;
    u->u.rndv = (struct rk_rndv){.peer = peer};
    rk_early_add(p2p, u, 0);
    rk_unexpected_add(p2p, u);
    return u;
}

static void look(struct rk_ctx *ctx)
{
    const struct rk_wait w = {.kind = RK_FOR_OTHER};

    if (ctx->engine->stuck)
        ctx->engine->stuck(ctx, &w, UINT64_MAX, UINT64_MAX, UINT64_MAX);
}

/* Empty ones count too, and one with a failed fetch leaves its room to the next, received or not. */
static void test_bound(void **state)
{
    struct rk_ctx *ctx = rk_root;
    struct rk_p2p *p2p = ctx->p2p;
    struct rk_peer peer = {.ctx = ctx, .channel = &holding, .state = RK_PEER_UP, .window = rk_conf.eager_window};
    int64_t max = rk_conf.rndv_unexpected_max;
    struct rk_unexpected *u[2];

    (void)state;
    rk_sendq_init(&peer.sendq);
    rk_conf.rndv_unexpected_max = 1;
    u[0] = announce(&peer, 0);
    assert_null(ctx->engine->stuck);
    u[1] = announce(&peer, UINT64_MAX - 10);
    assert_null(ctx->engine->stuck);
    for (int i = 0; i < 2; i++) {
        u[i]->kind = RK_KIND_MSG; /* no sender needs a notice */
        u[i]->bytes = 0;
        rk_recv_drop_unexpected(p2p, u[i]);
    }

    rk_conf.rndv_unexpected_max = sizeof(*u[0]) + 192; /* one, and not two */
    for (int i = 0; i < 2; i++)
        u[i] = announce(&peer, 0);
    look(ctx);
    assert_int_equal(nunder_way, 1);
    assert_in_range(p2p->ahead.bytes, sizeof(*u[0]), (uint64_t)rk_conf.rndv_unexpected_max);
    look(ctx);
    assert_int_equal(nunder_way, 1);
    rk_req_complete(under_way[0], RANK_ERR_PEER_DEAD);
    assert_int_equal(p2p->ahead.bytes, 0);
    look(ctx);
    assert_int_equal(nunder_way, 2);
    rk_req_complete(under_way[1], RANK_OK);
    assert_int_not_equal(p2p->ahead.bytes, 0);
    for (int i = 0; i < 2; i++)
        rk_recv_drop_unexpected(p2p, u[i]);
    assert_int_equal(p2p->ahead.bytes, 0);
    assert_null(ctx->engine->stuck);
    rk_conf.rndv_unexpected_max = max;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steady), cmocka_unit_test(test_bound)};
    int failed;

    alarm(TIMEOUT_S);
    if (rank_init(NULL) != RANK_OK)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rank_finalize() != RANK_OK || failed;
}
