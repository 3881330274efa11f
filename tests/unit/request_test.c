/* SPDX-License-Identifier: BSD-3-Clause */
/* request_test.c: take requests from the pool, give them handles, complete them. */
#include "tests/unit/unit.h"

#include "lib/core/engine.h"
#include "lib/core/request.h"

static int setup(void **state)
{
    struct rk_ctx *ctx = calloc(1, sizeof(*ctx));

    *state = ctx;
    ctx->engine = calloc(1, sizeof(*ctx->engine));
    return rk_requests_open(ctx) ? -1 : 0;
}

static int teardown(void **state)
{
    struct rk_ctx *ctx = *state;

    rk_requests_close(ctx);
    rk_requests_close(ctx); /* twice is fine */
    free(ctx->engine);
    free(ctx);
    return 0;
}

static void pool(void **state)
{
    struct rk_ctx *ctx = *state;
    struct rank_request *r[500];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 500; i++) {
            r[i] = rk_req_alloc(ctx);
            assert_non_null(r[i]);
            assert_int_equal(r[i]->magic, RK_REQ_MAGIC);
            assert_true(r[i]->flags & RK_REQ_POOLED);
            assert_false(r[i]->done);
            for (int k = 0; k < i; k += 50)
                assert_ptr_not_equal(r[k], r[i]);
        }
        for (int i = 0; i < 500; i++) {
            rk_req_free(r[i]);
            assert_int_not_equal(r[i]->magic, RK_REQ_MAGIC); /* a copy of the handle is refused */
        }
    }
}

static void names(void **state)
{
    struct rk_ctx *ctx = *state;
    struct rank_request *r[300];
    struct rk_id id[300];

    for (int i = 0; i < 300; i++) {
        r[i] = rk_req_alloc(ctx);
        assert_int_equal(rk_req_name(r[i]), RANK_OK);
        assert_true(r[i]->flags & RK_REQ_NAMED);
        id[i] = r[i]->id;
    }
    for (int i = 0; i < 300; i++)
        assert_ptr_equal(rk_req_find(ctx, id[i]), r[i]);
    for (int i = 0; i < 300; i += 2)
        rk_req_unname(r[i]);
    for (int i = 0; i < 300; i++)
        assert_ptr_equal(rk_req_find(ctx, id[i]), i % 2 ? r[i] : NULL);
    /* The index comes again, with another generation: the old name stays stale. */
    for (int i = 0; i < 300; i += 2)
        assert_int_equal(rk_req_name(r[i]), RANK_OK);
    for (int i = 0; i < 300; i += 2) {
        assert_null(rk_req_find(ctx, id[i]));
        assert_ptr_equal(rk_req_find(ctx, r[i]->id), r[i]);
    }
    rk_req_unname(r[0]);
    rk_req_unname(r[0]); /* twice is harmless */
    assert_int_equal(rk_req_name(r[0]), RANK_OK);
    assert_ptr_equal(rk_req_find(ctx, r[0]->id), r[0]);
    for (int i = 0; i < 300; i++) {
        rk_req_unname(r[i]);
        rk_req_free(r[i]);
    }
}

/* What could come from a broken peer. */
static void bogus_names(void **state)
{
    struct rk_ctx *ctx = *state;
    struct rank_request *r = rk_req_alloc(ctx);
    struct rk_id bad[] = {{0, 0}, {0, 1}, {5, 5}, {UINT32_MAX, 0}, {UINT32_MAX, UINT32_MAX}, {64, 1}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(rk_req_find(ctx, bad[i])); /* no name was ever given */
    rk_req_unname(r); /* had none */
    assert_int_equal(rk_req_name(r), RANK_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (bad[i].index != r->id.index || bad[i].gen != r->id.gen)
            assert_null(rk_req_find(ctx, bad[i]));
    }
    rk_req_unname(r);
    rk_req_free(r);
}

static void on_done(struct rank_request *req, void *arg)
{
    assert_true(req->done);
    ++*(int *)arg;
}

static void completion(void **state)
{
    struct rk_ctx *ctx = *state;
    struct rank_request *r = rk_req_alloc(ctx);
    struct rk_id id;
    rank_envelope_t env;
    int calls = 0;

    r->type = RK_REQ_RECV;
    r->on_done = on_done;
    r->arg = &calls;
    r->elem = 4;
    r->got = 10;
    r->sent = 10;
    r->env_src = 3;
    r->env_tag = 77;
    assert_int_equal(rk_req_name(r), RANK_OK);
    id = r->id;
    rk_req_complete(r, RANK_OK);
    assert_int_equal(calls, 1);
    assert_true(r->done);
    assert_int_equal(r->status, RANK_OK);
    assert_null(rk_req_find(ctx, id)); /* completion takes the name away */
    memset(&env, 0xff, sizeof(env));
    rk_req_envelope(r, &env);
    assert_int_equal(env.source, 3);
    assert_int_equal(env.tag, 77);
    assert_int_equal(env.bytes, 10);
    assert_int_equal(env.count, 2);
    assert_int_equal(env.sent_bytes, 10);

    /* Longer than the room: truncated, with both sizes; an error stays what it is. */
    r->done = false;
    r->sent = 100;
    rk_req_complete(r, RANK_OK);
    assert_int_equal(r->status, RANK_ERR_TRUNCATED);
    rk_req_envelope(r, &env);
    assert_int_equal(env.bytes, 10);
    assert_int_equal(env.sent_bytes, 100);
    r->done = false;
    rk_req_complete(r, RANK_ERR_PEER_DEAD);
    assert_int_equal(r->status, RANK_ERR_PEER_DEAD);
    /* A send may have anything there. */
    r->done = false;
    r->type = RK_REQ_SEND;
    rk_req_complete(r, RANK_OK);
    assert_int_equal(r->status, RANK_OK);
    assert_int_equal(calls, 4);
    rk_req_free(r);
}

static void end_it(struct rank_request *req, void *arg)
{
    rk_req_fail_if_of(req, arg);
}

/* A death completes what has a name and depends on that peer, and nothing else, though completing
 * changes the table. */
static void deaths(void **state)
{
    struct rk_ctx *ctx = *state;
    struct rank_request *r[100];
    struct rk_peer peer[2] = {{.closed = 0}};

    for (int i = 0; i < 100; i++) {
        r[i] = rk_req_alloc(ctx);
        r[i]->type = RK_REQ_SEND;
        r[i]->peer = &peer[i % 2];
        rk_list_init(&r[i]->link);
        assert_int_equal(rk_req_name(r[i]), RANK_OK);
    }
    rk_req_each_named(ctx, end_it, &peer[1]);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(r[i]->done, i % 2);
        if (i % 2)
            assert_int_equal(r[i]->status, RANK_ERR_PEER_DEAD);
    }
    for (int i = 0; i < 100; i++) {
        rk_req_unname(r[i]);
        rk_req_free(r[i]);
    }
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(pool), WITH(names), WITH(bogus_names), WITH(completion), WITH(deaths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
