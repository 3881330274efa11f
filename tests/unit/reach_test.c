/*
 * reach_test.c: memory of a rank that is gone is not touched by the kernel's copies, though a process of that
 * number lives: it may be another's by now.
 */
#include "lib/channel/engine.h"
#include "lib/mem/node.h"
#include "lib/p2p/team.h"
#include "lib/rma/far.h"

#include "tests/unit/unit.h"

static void test_gone(void **state)
{
    static const uint32_t states[] = {RK_SLOT_EMPTY, RK_SLOT_DONE, RK_SLOT_DEAD};
    static struct rk_node_slot slots[2];
    char there[64] = "before", here[64] = "after";
    struct rk_node node = {.slots = slots, .nlocal = 2};
    struct rk_engine engine = {.threads = NULL};
    struct rk_ctx ctx = {.node = &node, .engine = &engine};
    struct rk_peer peer = {.local = 1, .state = RK_PEER_UP, .ctx = &ctx}, *peers[1] = {&peer};
    struct rank_team team = {.ctx = &ctx, .size = 1, .peers = peers};
    struct rk_way way = {.how = RK_WAY_CMA, .pid = getpid(), .base = (uint64_t)(uintptr_t)there};
    struct rank_mem mem = {.ctx = &ctx, .team = &team, .ways = &way, .bytes = sizeof(there)};

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(states); i++) {
        atomic_store(&slots[1].state, states[i]);
        assert_int_equal(rk_far_put(here, sizeof(here), 0, &mem, 0), RANK_ERR_PEER_DEAD);
        assert_string_equal(there, "before");
        assert_int_equal(rk_far_get(here, sizeof(here), 0, &mem, 0), RANK_ERR_PEER_DEAD);
        assert_string_equal(here, "after");
    }
    /* The same, of a rank that is there: so it was the state that refused. */
    atomic_store(&slots[1].state, RK_SLOT_UP);
    if (rk_far_put(here, sizeof(here), 0, &mem, 0) != RANK_OK)
        skip(); /* the kernel refuses CMA here */
    assert_string_equal(there, "after");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
