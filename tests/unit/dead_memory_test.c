/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dead_memory_test.c: keep copies off memory of the dead, and of other teams.
 * A process of the same number may live and be another's by now. And a suspect peer delays none that waits for the news.
 */
#include "lib/base/clock.h"
#include "lib/boot/boot.h"
#include "lib/core/engine.h"
#include "lib/node/node.h"
#include "lib/p2p/p2p_internal.h"
#include "lib/p2p/team.h"
#include "lib/rma/rma_internal.h"

#include "tests/unit/unit.h"

static void test_gone(void **state)
{
    static const uint32_t states[] = {RK_SLOT_EMPTY, RK_SLOT_DONE, RK_SLOT_DEAD};
    static struct rk_node_slot slots[2];
    char there[64] = "before", here[64] = "after";
    struct rk_node node = {.slots = slots, .nlocal = 2};
    struct rk_engine engine = {.threads = NULL};
    struct rk_ctx ctx = {.node = &node, .engine = &engine};
    struct rk_peer peer = {.local = 1, .node = &node, .slot = 1, .state = RK_PEER_UP, .ctx = &ctx}, *peers[1] = {&peer};
    struct rank_team team = {.ctx = &ctx, .size = 1, .peers = peers};
    struct rk_path path = {.kind = RK_PATH_CMA, .pid = getpid(), .base = (uint64_t)(uintptr_t)there};
    struct rank_mem mem = {.ctx = &ctx, .team = &team, .paths = &path, .bytes = sizeof(there)};

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(states); i++) {
        atomic_store(&slots[1].state, states[i]);
        assert_int_equal(rk_move_remote(true, here, sizeof(here), 0, &mem, 0, NULL), RANK_ERR_PEER_DEAD);
        assert_string_equal(there, "before");
        assert_int_equal(rk_move_remote(false, here, sizeof(here), 0, &mem, 0, NULL), RANK_ERR_PEER_DEAD);
        assert_string_equal(here, "after");
    }
    /* The same, of a rank that is there: so it was the state that refused. */
    atomic_store(&slots[1].state, RK_SLOT_UP);
    if (rk_move_remote(true, here, sizeof(here), 0, &mem, 0, NULL) != RANK_OK)
        skip(); /* the kernel refuses CMA here */
    assert_string_equal(there, "after");
}

/* A send to an unreachable peer waits where sends wait for room, until the reason is known. */
static void test_suspect(void **state)
{
    struct rk_boot boot = {.rank = 0, .size = 3};
    struct rk_node node = {.slots = NULL};
    _Atomic uint64_t dead[1] = {0};
    struct rk_peer *peers[3] = {NULL};
    struct rk_engine engine = {.npeers = 3, .peers = peers, .boot_dead = dead, .deaths_lock = PTHREAD_MUTEX_INITIALIZER};
    struct rk_ctx ctx = {.boot = &boot, .node = &node, .engine = &engine};
    struct rk_peer peer[3] = {{.ctx = &ctx}, {.ctx = &ctx, .number = 1, .local = -1}, {.ctx = &ctx, .number = 2, .local = -1}};
    struct rank_team team = {.ctx = &ctx, .size = 3, .peers = peers};
    struct rank_request to_dead, to_none;
    uint64_t word = 5;

    (void)state;
    rk_sendq_open(&engine);
    rk_list_init(&engine.calls);
    rk_list_init(&engine.leavings);
    for (int i = 0; i < 3; i++) {
        rk_sendq_init(&peer[i].sendq);
        peers[i] = &peer[i];
    }
    assert_int_equal(rk_room_open(&ctx, &rk_room_p2p), RANK_OK);
    rk_req_init(&to_dead, NULL, NULL);
    rk_req_init(&to_none, NULL, NULL);
    rk_p2p_isend(&team, &word, 8, 1, 0, 0, &to_dead);
    rk_p2p_isend(&team, &word, 8, 2, 0, 0, &to_none);
    rk_sendq_progress(&ctx);
    assert_false(to_dead.done); /* and we are here again, to see to others */
    assert_false(to_none.done);
    rk_engine_report_death(&ctx, 1);
    rk_sendq_progress(&ctx);
    assert_true(to_dead.done);
    assert_int_equal(to_dead.status, RANK_ERR_PEER_DEAD);
    for (uint64_t until = rk_clock_ns() + 5000000000ull; !to_none.done && rk_clock_ns() < until; usleep(10000))
        rk_sendq_progress(&ctx);
    assert_true(to_none.done);
    assert_int_equal(to_none.status, RANK_ERR_UNREACHABLE);
    rk_room_p2p.close(&ctx);
}

static int npolls;

static int poll_others(struct rk_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    npolls++;
    return 0;
}

/* A reply waits as a send does, and its peer is given up at last. A call that has to connect waits, and makes the progress by which
 * all that goes on. */
static void test_suspect_elsewhere(void **state)
{
    struct rk_boot boot = {.rank = 0, .size = 3};
    struct rk_node node = {.head = calloc(1, sizeof(*node.head))};
    _Atomic uint64_t dead[1] = {0};
    struct rk_peer *peers[3] = {NULL};
    struct rk_engine engine = {.npeers = 3, .peers = peers, .boot_dead = dead, .deaths_lock = PTHREAD_MUTEX_INITIALIZER,
                               .polled = {{poll_others, NULL}}, .npolled = 1, .next_check_ns = UINT64_MAX,
                               .spin_ns = UINT64_MAX};
    struct rk_ctx ctx = {.boot = &boot, .node = &node, .engine = &engine};
    struct rk_peer peer[3] = {{.ctx = &ctx}, {.ctx = &ctx, .number = 1, .local = -1}, {.ctx = &ctx, .number = 2, .local = -1}};

    (void)state;
    assert_non_null(node.head);
    rk_sendq_open(&engine);
    rk_list_init(&engine.calls);
    rk_list_init(&engine.leavings);
    for (int i = 0; i < 3; i++) {
        rk_sendq_init(&peer[i].sendq);
        peers[i] = &peer[i];
    }
    assert_int_equal(rk_requests_open(&ctx), RANK_OK);
    assert_int_equal(rk_room_open(&ctx, &rk_room_p2p), RANK_OK);
    rk_send_control(&peer[1], RK_KIND_MATCHED, 0, &(struct rk_id){1, 1}, sizeof(struct rk_id));
    rk_send_credit(&peer[1]);
    assert_true(rk_sendq_has(&peer[1].sendq, RK_SEND_CONTROL)); /* and we are here again */
    assert_int_equal(atomic_load(&engine.boot_deaths), 0);
    assert_int_equal(npolls, 0);
    assert_int_equal(rk_peer_connect(&peer[2]), RANK_ERR_UNREACHABLE);
    assert_true(npolls > 0);
    for (uint64_t until = rk_clock_ns() + 5000000000ull; peer[1].state != RK_PEER_DEAD && rk_clock_ns() < until; usleep(1000))
        rk_progress(&ctx);
    assert_int_equal(peer[1].state, RK_PEER_DEAD);
    assert_true(rk_sendq_is_idle(&engine));
    assert_int_equal(peer[2].state, RK_PEER_NEW);
    rk_room_p2p.close(&ctx);
    rk_slab_close(&engine.controls);
    rk_requests_close(&ctx);
    free(node.head);
}

static rank_status_t write_there(struct rk_peer *peer, const struct rank_mem *mem)
{
    void *at;

    return rk_target_memory_at(peer->ctx, peer, mem->id, 0, 8, true, &at);
}

/*
 * The peer of a connection may name registered memory, whose key it has, and the memory of the connection's team; no
 * other, even if it has the id.
 */
static void test_foreign_memory(void **state)
{
    enum { TEAM_OF_TWO, TEAM_OF_THREE, REGISTERED, MEMS };
    struct rk_boot boot = {.rank = 0, .size = 1};
    struct rk_peer *peers[4] = {NULL};
    struct rk_engine engine = {.npeers = 4, .peers = peers};
    struct rk_ctx ctx = {.boot = &boot, .engine = &engine};
    struct rk_peer rank = {.ctx = &ctx, .number = 1};
    struct rk_peer ours = {.ctx = &ctx, .number = 2, .by_conn = 1}, other = {.ctx = &ctx, .number = 3, .by_conn = 1};
    int numbers[3] = {0, 2, 1};
    struct rank_team teams[MEMS] = {{.ctx = &ctx, .size = 2}, {.ctx = &ctx, .size = 3}, {.ctx = &ctx, .size = 1}};
    struct rank_mem mem[MEMS];
    char bytes[8];

    (void)state;
    rk_sendq_open(&engine);
    assert_int_equal(rk_room_open(&ctx, &rk_room_rma), RANK_OK);
    for (int i = 0; i < MEMS; i++) {
        teams[i].world_ranks = numbers;
        mem[i] = (struct rank_mem){.ctx = &ctx, .team = &teams[i], .bytes = sizeof(bytes), .mine = bytes,
                                   .sort = i == REGISTERED ? RK_MEM_REGISTERED : RK_MEM_SYMMETRIC};
        assert_int_equal(rk_mem_enter(&mem[i]), RANK_OK);
        assert_int_equal(write_there(&rank, &mem[i]), RANK_OK);
    }
    assert_int_equal(write_there(&ours, &mem[TEAM_OF_TWO]), RANK_OK);
    assert_int_equal(write_there(&other, &mem[TEAM_OF_TWO]), RANK_ERR_HANDLE);
    assert_int_equal(write_there(&ours, &mem[TEAM_OF_THREE]), RANK_ERR_HANDLE);
    assert_int_equal(write_there(&ours, &mem[REGISTERED]), RANK_OK);
    assert_int_equal(write_there(&other, &mem[REGISTERED]), RANK_OK);
    assert_int_equal(rk_rma_peer_of(&ctx, &other)->unknown, 1); /* a guess */
    rk_room_rma.close(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_foreign_memory), cmocka_unit_test(test_gone), cmocka_unit_test(test_suspect),
                                       cmocka_unit_test(test_suspect_elsewhere)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
