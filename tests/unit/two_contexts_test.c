/* SPDX-License-Identifier: BSD-3-Clause */
/* two_contexts_test.c: open contexts in one process, at once and in threads. */
#include "tests/unit/unit.h"

#include "lib/base/conf.h"
#include "lib/p2p/p2p_internal.h"
#include "lib/world/world.h"

#include <pthread.h>

static struct rk_ctx *context(int level)
{
    struct rk_ctx *ctx;

    assert_int_equal(rk_world_open(level, false, true, &ctx), RANK_OK);
    return ctx;
}

/* Messages, a collective and memory within a team; returns false on an error. */
static bool works(rank_team_t team, int64_t value)
{
    int64_t got = -1, sum = -1;
    rank_request_t req;
    rank_team_t other;
    rank_mem_t mem;
    void *at;
    bool ok;

    ok = rank_isend(&value, 1, RANK_INT64, 0, 5, team, &req) == RANK_OK &&
         rank_recv(&got, 1, RANK_INT64, 0, 5, team, NULL) == RANK_OK && rank_wait(&req, NULL) == RANK_OK && got == value;
    ok = ok && rank_allreduce(&value, &sum, 1, RANK_INT64, RANK_SUM, team) == RANK_OK && sum == value;
    ok = ok && rank_team_dup(team, &other) == RANK_OK && rank_barrier(other) == RANK_OK && rank_team_free(&other) == RANK_OK;
    ok = ok && rank_alloc(team, RANK_MEM_HOST, 64, &at, &mem) == RANK_OK;
    ok = ok && rank_put(&value, 8, 0, mem, 8) == RANK_OK && rank_flush(mem, 0) == RANK_OK && ((int64_t *)at)[1] == value;
    return ok && rank_free(&mem) == RANK_OK;
}

static void apart(void **state)
{
    struct rk_ctx *a = context(RANK_THREAD_SERIALIZED), *b = context(*(int *)*state);
    rank_team_t of_a = a->world, of_b = b->world, mine, same;
    rank_request_t req;
    int64_t value = 7;
    int found = 1;

    assert_ptr_not_equal(of_a, of_b);
    assert_true(works(of_a, 1) && works(of_b, 2));
    assert_int_equal(rank_team_dup(of_a, &mine), RANK_OK);
    assert_int_equal(rank_team_dup(of_b, &same), RANK_OK); /* the same id in another context */

    assert_int_equal(rank_isend(&value, 1, RANK_INT64, 0, 9, mine, &req), RANK_OK);
    assert_int_equal(rank_iprobe(0, 9, same, &found, NULL), RANK_OK);
    assert_int_equal(found, 0);
    assert_int_equal(rank_iprobe(0, 9, mine, &found, NULL), RANK_OK);
    assert_int_equal(found, 1);
    assert_int_equal(rank_recv(&value, 1, RANK_INT64, 0, 9, mine, NULL), RANK_OK);
    assert_int_equal(rank_wait(&req, NULL), RANK_OK);

    rk_world_close(a);
    assert_int_not_equal(rank_barrier(of_a), RANK_OK);
    assert_int_not_equal(rank_barrier(mine), RANK_OK);
    assert_true(works(of_b, 3) && works(same, 4));
    a = context(RANK_THREAD_SERIALIZED);
    assert_int_not_equal(rank_barrier(of_a), RANK_OK);
    rk_world_close(b);
    assert_true(works(a->world, 5));
    rk_world_close(a);
}

static void *thread_main(void *arg)
{
    const int64_t *me = arg;

    for (int i = 0; i < 20; i++) {
        struct rk_ctx *ctx;
        bool ok = rk_world_open(RANK_THREAD_SERIALIZED, false, true, &ctx) == RANK_OK;
        for (int k = 0; k < 20 && ok; k++)
            ok = works(ctx->world, *me * 1000 + k);
        if (!ok)
            return arg;
        rk_world_close(ctx);
    }
    return NULL;
}

static void in_threads(void **state)
{
    int64_t number[2] = {1, 2};
    pthread_t thread[2];
    void *failed;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &number[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
}

/* A peer of two connections sends by one of them on the team of the other, as no call does. */
static void on_another_team(void **state)
{
    rank_ctx_opts_t ctx_opts = RANK_CTX_OPTS_INIT;
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    rank_team_t there[2], here[2];
    rank_listener_t listener;
    rank_ctx_t a, b;
    char address[80];
    size_t len = sizeof(address);
    struct rk_peer *peer;
    int found, value = 7;

    opts.flags = *(unsigned *)*state;
    ctx_opts.progress_thread = 1;
    assert_int_equal(rank_ctx_open(&ctx_opts, &a), RANK_OK);
    assert_int_equal(rank_ctx_open(NULL, &b), RANK_OK);
    assert_int_equal(rank_listen(a, "127.0.0.1:0", &opts, &listener), RANK_OK);
    assert_int_equal(rank_listener_address(listener, address, &len), RANK_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rank_connect(b, address, &opts, &here[i]), RANK_OK);
        assert_int_equal(rank_accept(listener, -1, &there[i]), RANK_OK);
    }
    peer = rk_team_peer(here[0], 1);
    assert_string_equal(peer->channel->name, opts.flags ? "tcp" : "shm");
    for (int64_t team = 0; team < 2; team++) { /* first on its own */
        struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = peer->epoch, .len = sizeof(value), .team = here[team]->id, .tag = 3};

        assert_int_equal(peer->channel->send(peer, &hdr, &value), RANK_OK);
        if (peer->channel->send_small)
            assert_int_equal(peer->channel->send_small(peer, hdr.team, 0, 4, &value, sizeof(value)), RANK_OK);
    }
    assert_int_equal(rank_send(&value, 1, RANK_INT32, 1, 5, here[0]), RANK_OK);
    assert_int_equal(rank_ctx_progress(b), RANK_OK); /* frames that wait to share a packet */
    for (int64_t tag = 3; tag <= 5; tag++)
        if (tag != 4 || peer->channel->send_small)
            assert_int_equal(rank_recv(&value, 1, RANK_INT32, 0, tag, there[0], NULL), RANK_OK);
    assert_int_equal(rank_iprobe(RANK_ANY_SOURCE, RANK_ANY_TAG, there[1], &found, NULL), RANK_OK);
    assert_int_equal(found, 0);
    assert_int_equal(there[0]->ctx->p2p->bad_frames, peer->channel->send_small ? 2 : 1);
    assert_int_equal(rank_ctx_close(&b, -1), RANK_OK);
    assert_int_equal(rank_ctx_close(&a, -1), RANK_OK);
}

static int load(void **state)
{
    (void)state;
    setenv("RANK_ERRORS", "quiet", 1);
    return rk_conf_load() != RANK_OK;
}

int main(void)
{
    int serialized = RANK_THREAD_SERIALIZED, multiple = RANK_THREAD_MULTIPLE;
    unsigned shared = 0, by_socket = RANK_CONN_NO_SHM;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(apart, &serialized),
        cmocka_unit_test_prestate(apart, &multiple),
        cmocka_unit_test(in_threads),
        cmocka_unit_test_prestate(on_another_team, &shared),
        cmocka_unit_test_prestate(on_another_team, &by_socket),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
