/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_trim_test.c: start no agent on hosts that get no rank.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "launcher/map/plan.h"

#include <string.h>

#define HOSTS 4

static struct xr_hostspec spec[HOSTS] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}};
static hwloc_topology_t machine;

static uint32_t needed(const struct xr_policy *where, uint32_t n)
{
    struct xr_plan p = {.where = where, .hosts = {.host = spec, .n = HOSTS}};

    return xr_plan_needed(&p, n);
}

/* Whatever their agents would find: some hosts are what the count of ranks and bits makes of them. */
static void compare(const struct xr_policy *where, uint32_t n, unsigned bits)
{
    uint32_t first = needed(where, n);
    struct xr_place_host h[HOSTS];
    struct xr_place_request rq = where->request;
    struct xr_placement p;
    char err[256];

    for (int i = 0; i < HOSTS; i++)
        h[i] = (struct xr_place_host){.name = spec[i].name,
                                      .slots = spec[i].slots,
                                      .units = 1 + (bits >> i & 1) * 3,
                                      .topology = bits >> i & 1 ? machine : NULL};
    rq.n = n;
    if (xr_place(&rq, h, HOSTS, &p, err, sizeof(err)) == RANK_OK) {
        assert_true(first >= 1 && first <= HOSTS);
        for (uint32_t i = first; i < HOSTS; i++)
            assert_int_equal(p.host[i].ranks, 0);
    }
    xr_placement_clear(&p);
}

static void no_rank_is_missed(void **state)
{
    (void)state;
    for (unsigned slots = 0; slots < 81; slots++) {
        for (unsigned i = 0, s = slots; i < HOSTS; i++, s /= 3)
            spec[i].slots = s % 3;
        for (int map = XR_LEVEL_SLOT; map <= XR_LEVEL_CORE; map++) {
            for (uint32_t ppr = 0; ppr <= 2; ppr++) {
                struct xr_policy w = {.request = {.map = (enum xr_level)map, .ppr = ppr}};
                if ((map == XR_LEVEL_SLOT && ppr) || map == XR_LEVEL_L3)
                    continue;
                for (uint32_t n = 0; n <= 9; n++)
                    compare(&w, n, slots % 16);
            }
        }
    }
}

static void as_few_as_can_be(void **state)
{
    struct xr_policy w = {.request = {.map = XR_LEVEL_SLOT}};
    struct xr_plan p;

    (void)state;
    for (int i = 0; i < HOSTS; i++)
        spec[i].slots = 2;
    assert_int_equal(needed(&w, 0), 1);
    assert_int_equal(needed(&w, 2), 1);
    assert_int_equal(needed(&w, 3), 2);
    assert_int_equal(needed(&w, 100), HOSTS);
    spec[0].slots = 0; /* it may take more, but not fewer than one */
    assert_int_equal(needed(&w, 3), 2);
    assert_int_equal(needed(&w, 4), 3);
    p = (struct xr_plan){.where = &w, .hosts = {.host = spec, .n = HOSTS}, .fill = true};
    assert_int_equal(xr_plan_needed(&p, 0), HOSTS); /* all slots are wanted */
    assert_int_equal(xr_plan_needed(&p, 1), 1);
    w.request.map = XR_LEVEL_NODE;
    assert_int_equal(needed(&w, 3), 3);
    w.request.ppr = 4;
    assert_int_equal(needed(&w, 0), HOSTS);
    assert_int_equal(needed(&w, 3), 3);
    w.request.map = XR_LEVEL_PACKAGE;
    assert_int_equal(needed(&w, 5), 2);
}

static void as_a_rankfile_says(void **state)
{
    struct xr_place_pin pins[] = {{.host = 2}, {.host = 0}, {.host = 3}};
    struct xr_policy w = {.rankfile = "ranks"};
    struct xr_plan p = {.where = &w, .hosts = {.host = spec, .n = HOSTS}, .file = {.pin = pins, .n = 3}};

    (void)state;
    assert_int_equal(xr_plan_needed(&p, 0), 4);
    assert_int_equal(xr_plan_needed(&p, 1), 3);
    assert_int_equal(xr_plan_needed(&p, 2), 3);
}

static void names_are_forgotten(void **state)
{
    struct xr_hostlist list = {.n = 0};
    char err[256];

    (void)state;
    assert_int_equal(xr_hostlist_parse(&list, "n[00-99]:2", err, sizeof(err)), RANK_OK);
    xr_hostlist_cut(&list, 200);
    assert_int_equal(list.n, 100);
    xr_hostlist_cut(&list, 60);
    assert_int_equal(list.n, 60);
    assert_int_equal(xr_hostlist_find(&list, "n59"), 59);
    assert_int_equal(xr_hostlist_find(&list, "n60"), UINT32_MAX);
    assert_int_equal(xr_hostlist_add(&list, "n60", 3, 1), RANK_OK);
    assert_int_equal(xr_hostlist_find(&list, "n60"), 60);
    xr_hostlist_clear(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rank_is_missed),
        cmocka_unit_test(as_few_as_can_be),
        cmocka_unit_test(as_a_rankfile_says),
        cmocka_unit_test(names_are_forgotten),
    };
    int failed;

    hwloc_topology_init(&machine);
    hwloc_topology_set_synthetic(machine, "package:2 core:2 pu:1");
    hwloc_topology_load(machine);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    hwloc_topology_destroy(machine);
    return failed;
}
