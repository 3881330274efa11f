/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapper_test.c: place ranks on machines that we do not have.
 *
 * A case is a line: hosts, a request, and what must come out, as
 * "host/cpus" of each rank in order; "-" stands for a rank that is not bound.
 */
#include "launcher/map/mapper.h"
#include "lib/base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/launcher/unit/machines.h"

#define MAX_HOSTS 4

struct hosts {
    struct xr_place_host h[MAX_HOSTS];
    uint32_t n;
};

static void add(struct hosts *hs, const char *machine, uint32_t slots, const char *usable)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct xr_place_host *h = &hs->h[hs->n];

    *h = (struct xr_place_host){.name = names[hs->n], .slots = slots, .topology = machine_load(machine)};
    if (usable)
        machine_restrict(h->topology, usable);
    hs->n++;
}

static void drop(struct hosts *hs)
{
    for (uint32_t i = 0; i < hs->n; i++)
        hwloc_topology_destroy(hs->h[i].topology);
    memset(hs, 0, sizeof(*hs));
}

static void text_of(const struct hosts *hs, const struct xr_placement *p, char *out, size_t len)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t k = 0; k < p->n; k++) {
        char cpus[256] = "-";
        if (p->rank[k].cpus)
            hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), p->rank[k].cpus);
        at += (size_t)snprintf(out + at, len - at, "%s%s/%s", k ? " " : "",
                               hs->h[p->rank[k].host].name, cpus);
        assert_true(at < len);
    }
}

static void want(const struct hosts *hs, struct xr_place_request rq, const char *expected)
{
    struct xr_placement p;
    char err[256], got[8192];

    if (xr_place(&rq, hs->h, hs->n, &p, err, sizeof(err)))
        fail_msg("%s", err);
    text_of(hs, &p, got, sizeof(got));
    assert_string_equal(got, expected);
    xr_placement_clear(&p);
}

static void refused(const struct hosts *hs, struct xr_place_request rq, rank_status_t status,
                    const char *word)
{
    struct xr_placement p;
    char err[256];

    assert_int_equal(xr_place(&rq, hs->h, hs->n, &p, err, sizeof(err)), status);
    assert_non_null(strstr(err, word));
    xr_placement_clear(&p);
}

static struct hosts one(const char *machine)
{
    struct hosts hs = {.n = 0};

    add(&hs, machine, 0, NULL);
    return hs;
}

#define RQ(...) ((struct xr_place_request){__VA_ARGS__})

static void shares_of_a_host(void **state)
{
    struct hosts hs = one("package:2 core:4 pu:1");

    (void)state;
    want(&hs, RQ(.n = 1), "a/0-7");
    want(&hs, RQ(.n = 2), "a/0-3 a/4-7");
    want(&hs, RQ(.n = 3), "a/0-1 a/2-4 a/5-7");
    want(&hs, RQ(.n = 4), "a/0-1 a/2-3 a/4-5 a/6-7");
    want(&hs, RQ(.n = 3, .bind = XR_BIND_CORE), "a/0 a/2 a/5");
    want(&hs, RQ(.n = 2, .bind = XR_BIND_NONE), "a/- a/-");
    want(&hs, RQ(.n = 2, .bind = XR_BIND_PACKAGE), "a/0-3 a/4-7");
    want(&hs, RQ(.n = 2, .cpus = 3), "a/0-2 a/4-6");
    drop(&hs);
}

static void threads_of_a_core(void **state)
{
    struct hosts hs = one("core:4 pu:2");

    (void)state;
    want(&hs, RQ(.n = 2), "a/0-3 a/4-7");
    want(&hs, RQ(.n = 4, .bind = XR_BIND_CORE), "a/0-1 a/2-3 a/4-5 a/6-7");
    want(&hs, RQ(.n = 2, .bind = XR_BIND_HWTHREAD), "a/0 a/4");
    want(&hs, RQ(.n = 3, .map = XR_LEVEL_HWTHREAD), "a/0 a/1 a/2");
    want(&hs, RQ(.n = 8, .map = XR_LEVEL_HWTHREAD), "a/0 a/1 a/2 a/3 a/4 a/5 a/6 a/7");
    /* one after the other on threads, but each may use the whole of its core */
    want(&hs, RQ(.n = 3, .map = XR_LEVEL_HWTHREAD, .bind = XR_BIND_CORE), "a/0-1 a/0-1 a/2-3");
    want(&hs, RQ(.n = 2, .cpus = 3, .map = XR_LEVEL_HWTHREAD, .bind = XR_BIND_CORE), "a/0-3 a/2-5");
    want(&hs, RQ(.n = 4, .ppr = 1, .map = XR_LEVEL_HWTHREAD, .bind = XR_BIND_CORE), "a/0-1 a/0-1 a/2-3 a/2-3");
    drop(&hs);
    /* numbered as Linux often does: the second threads after all first ones */
    hs = one("core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
    want(&hs, RQ(.n = 2), "a/0-1,4-5 a/2-3,6-7");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_CORE), "a/0,4 a/1,5");
    drop(&hs);
}

static void objects_in_turn(void **state)
{
    struct hosts hs = one("package:2 numa:2 l3:1 core:2 pu:1");

    (void)state;
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_PACKAGE), "a/0-1 a/4-5 a/2-3 a/6-7");
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_NUMA), "a/0-1 a/2-3 a/4-5 a/6-7");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_NUMA, .bind = XR_BIND_CORE), "a/0 a/2");
    want(&hs, RQ(.n = 5, .map = XR_LEVEL_L3), "a/0 a/2-3 a/4-5 a/6-7 a/1");
    want(&hs, RQ(.n = 3, .map = XR_LEVEL_CORE), "a/0 a/1 a/2");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_CORE, .cpus = 3), "a/0-2 a/3-5");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_PACKAGE, .bind = XR_BIND_NUMA), "a/0-1 a/4-5");
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_PACKAGE, .order = XR_ORDER_FILL),
         "a/0-1 a/2-3 a/4-5 a/6-7");
    drop(&hs);
}

static void a_number_on_each(void **state)
{
    struct hosts hs = one("package:2 numa:2 core:2 pu:2");

    (void)state;
    want(&hs, RQ(.ppr = 1, .map = XR_LEVEL_NUMA), "a/0-3 a/4-7 a/8-11 a/12-15");
    want(&hs, RQ(.ppr = 2, .map = XR_LEVEL_PACKAGE), "a/0-3 a/4-7 a/8-11 a/12-15");
    want(&hs, RQ(.n = 3, .ppr = 2, .map = XR_LEVEL_PACKAGE), "a/0-3 a/4-7 a/8-15");
    want(&hs, RQ(.n = 4, .ppr = 2, .map = XR_LEVEL_CORE, .bind = XR_BIND_HWTHREAD),
         "a/0 a/1 a/2 a/3");
    want(&hs, RQ(.ppr = 3, .map = XR_LEVEL_NODE), "a/0-3 a/4-9 a/10-15");
    refused(&hs, RQ(.n = 5, .ppr = 1, .map = XR_LEVEL_NUMA), RANK_ERR_COUNT, "makes 4 ranks");
    drop(&hs);
}

static void several_hosts(void **state)
{
    struct hosts hs = {.n = 0};

    (void)state;
    add(&hs, "core:2 pu:1", 0, NULL);
    add(&hs, "core:4 pu:1", 0, NULL);
    want(&hs, RQ(.n = 4), "a/0 a/1 b/0-1 b/2-3");
    want(&hs, RQ(.n = 6), "a/0 a/1 b/0 b/1 b/2 b/3");
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_NODE), "a/0 b/0-1 a/1 b/2-3");
    want(&hs, RQ(.n = 5, .map = XR_LEVEL_NODE), "a/0 b/0 a/1 b/1 b/2-3");
    want(&hs, RQ(.n = 4, .order = XR_ORDER_NODE), "a/0 b/0-1 a/1 b/2-3");
    want(&hs, RQ(.ppr = 1, .map = XR_LEVEL_NODE), "a/0-1 b/0-3");
    drop(&hs);
    /* with slots: a is filled to 3, so that it has more ranks than cores, and b has not */
    add(&hs, "core:2 pu:1", 3, NULL);
    add(&hs, "core:4 pu:1", 1, NULL);
    want(&hs, RQ(.n = 4), "a/- a/- a/- b/0-3");
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_NODE), "a/- b/0-3 a/- a/-");
    want(&hs, RQ(.n = 6), "a/- a/- a/- b/0-3 a/- a/-"); /* a second round */
    want(&hs, RQ(.fill = true), "a/- a/- a/- b/0-3");
    want(&hs, RQ(.fill = true, .map = XR_LEVEL_NODE), "a/- b/0-3 a/- a/-");
    want(&hs, RQ(.n = 1, .fill = true), "a/0-1");
    want(&hs, RQ(.ppr = 1, .fill = true, .map = XR_LEVEL_NODE), "a/0-1 b/0-3");
    drop(&hs);
    /* and with as many as allowed: no second round for ranks that have them, and no more by any other way */
    add(&hs, "core:4 pu:1", 1, NULL);
    add(&hs, "core:4 pu:1", 0, NULL);
    hs.h[0].most = 2;
    want(&hs, RQ(.fill = true), "a/0-3 b/0 b/1 b/2 b/3"); /* without a limit for b */
    want(&hs, RQ(.n = 7), "a/0-1 b/- b/- b/- b/- a/2-3 b/-"); /* b has one more than cores */
    hs.h[1].most = 3;
    want(&hs, RQ(.n = 5), "a/0-1 b/0 b/1 b/2-3 a/2-3");
    want(&hs, RQ(.n = 5, .map = XR_LEVEL_NODE), "a/0-1 b/0 b/1 b/2-3 a/2-3");
    refused(&hs, RQ(.n = 6), RANK_ERR_COUNT, "take 5 ranks at most (max_slots), but -n is 6");
    refused(&hs, RQ(.n = 6, .map = XR_LEVEL_NODE), RANK_ERR_COUNT, "at most");
    want(&hs, RQ(.ppr = 2, .map = XR_LEVEL_NODE), "a/0-1 b/0-1 a/2-3 b/2-3"); /* slots are no limit */
    refused(&hs, RQ(.ppr = 3, .map = XR_LEVEL_NODE), RANK_ERR_COUNT, "--map-by ppr puts 3 ranks on host a, of which max_slots is 2");
    want(&hs, RQ(.n = 2, .ppr = 3, .map = XR_LEVEL_NODE), "a/0-3 b/0-3");
    drop(&hs);
}

static void only_what_may_be_used(void **state)
{
    struct hosts hs = {.n = 0};

    (void)state;
    add(&hs, "package:2 core:4 pu:1", 0, "2-5");
    want(&hs, RQ(.n = 2), "a/2-3 a/4-5");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_PACKAGE), "a/2-3 a/4-5");
    want(&hs, RQ(.n = 5), "a/- a/- a/- a/- a/-");
    drop(&hs);
    /* A package of which one core is left takes one rank, and the other takes the rest. */
    add(&hs, "package:2 core:4 pu:1", 0, "3-7");
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_PACKAGE), "a/3 a/4 a/5 a/6-7");
    drop(&hs);
    /* A package that may not be used at all is no place. */
    add(&hs, "package:2 core:4 pu:1", 0, "4-7");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_PACKAGE), "a/4-5 a/6-7");
    drop(&hs);
    add(&hs, "core:4 pu:2", 0, "1,2,3");
    want(&hs, RQ(.n = 2), "a/1 a/2-3");
    want(&hs, RQ(.n = 3, .bind = XR_BIND_HWTHREAD), "a/1 a/2 a/3");
    drop(&hs);
}

static void more_ranks_than_cores(void **state)
{
    struct hosts hs = one("core:2 pu:2");
    struct xr_place_request rq = {.n = 3, .bind = XR_BIND_CORE};
    struct xr_placement p;
    char err[256];

    (void)state;
    assert_int_equal(xr_place(&rq, hs.h, hs.n, &p, err, sizeof(err)), RANK_OK);
    assert_true(p.host[0].oversubscribed);
    assert_int_equal(p.host[0].units, 2);
    assert_int_equal(p.host[0].ranks, 3);
    assert_null(p.rank[2].cpus);
    xr_placement_clear(&p);
    /* As many as there are, but fewer cores for each than it shall have: equal parts of them. */
    want(&hs, RQ(.n = 2, .cpus = 2), "a/0-1 a/2-3");
    want(&hs, RQ(.n = 1, .cpus = 3, .bind = XR_BIND_CORE), "a/0-3");
    want(&hs, RQ(.n = 2, .cpus = 2, .map = XR_LEVEL_CORE), "a/0-1 a/2-3");
    rq = (struct xr_place_request){.n = 1, .cpus = 3};
    assert_int_equal(xr_place(&rq, hs.h, hs.n, &p, err, sizeof(err)), RANK_OK);
    assert_false(p.host[0].oversubscribed);
    assert_true(p.host[0].fewer);
    xr_placement_clear(&p);
    rq = (struct xr_place_request){.n = 1, .cpus = 2};
    assert_int_equal(xr_place(&rq, hs.h, hs.n, &p, err, sizeof(err)), RANK_OK);
    assert_false(p.host[0].fewer);
    xr_placement_clear(&p);
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_HWTHREAD), "a/0 a/1 a/2 a/3");
    drop(&hs);
}

static void a_host_that_is_not_known(void **state)
{
    struct hosts hs = {.h = {{.name = "a", .units = 2}, {.name = "b", .units = 2}}, .n = 2};
    struct xr_place_request rq = {.n = 5};
    struct xr_placement p;
    char err[256];

    (void)state;
    want(&hs, rq, "a/- a/- b/- b/- a/-");
    assert_int_equal(xr_place(&rq, hs.h, hs.n, &p, err, sizeof(err)), RANK_OK);
    assert_true(p.host[0].oversubscribed);
    assert_false(p.host[1].oversubscribed);
    xr_placement_clear(&p);
}

static void a_machine_without(void **state)
{
    struct hosts hs = one("core:4 pu:1");

    (void)state;
    refused(&hs, RQ(.n = 2, .map = XR_LEVEL_PACKAGE), RANK_ERR_ARG, "no package");
    refused(&hs, RQ(.n = 2, .bind = XR_BIND_L3), RANK_ERR_ARG, "no l3");
    drop(&hs);
    hs = one("pu:4"); /* shows no cores */
    want(&hs, RQ(.n = 2), "a/0-1 a/2-3");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_HWTHREAD, .bind = XR_BIND_CORE), "a/0 a/1");
    drop(&hs);
}

static void pinned(void **state)
{
    struct hosts hs = {.n = 0};
    hwloc_bitmap_t c01 = hwloc_bitmap_alloc(), c3 = hwloc_bitmap_alloc(), c9 = hwloc_bitmap_alloc();
    struct xr_place_pin pin[4] = {
        {.host = 1, .package = -1, .cores = c01},
        {.host = 0, .package = 1, .cores = c01},
        {.host = 0, .package = -1, .cores = c3},
        {.host = 1, .package = -1},
    };

    (void)state;
    hwloc_bitmap_set_range(c01, 0, 1);
    hwloc_bitmap_set(c3, 3);
    hwloc_bitmap_set(c9, 9);
    add(&hs, "package:2 core:4 pu:2", 0, NULL);
    add(&hs, "core:4 pu:1", 0, NULL);
    want(&hs, RQ(.pin = pin, .npins = 4), "b/0-1 a/8-11 a/6-7 b/-");
    want(&hs, RQ(.n = 2, .pin = pin, .npins = 4), "b/0-1 a/8-11");
    refused(&hs, RQ(.n = 5, .pin = pin, .npins = 4), RANK_ERR_COUNT, "places 4 ranks");
    want(&hs, RQ(.pin = &pin[1], .npins = 2, .bind = XR_BIND_HWTHREAD), "a/8-9 a/3");
    pin[2].cores = c9;
    refused(&hs, RQ(.pin = pin, .npins = 4), RANK_ERR_ARG, "rank 2");
    drop(&hs);
    hwloc_bitmap_free(c01);
    hwloc_bitmap_free(c3);
    hwloc_bitmap_free(c9);
}

/* Does each rank have a core for itself, on a host of 4? cores: of each rank; "": it is not bound. */
static void crowd(const char *const cores[5], bool oversubscribe)
{
    struct hosts hs = one("core:4 pu:1");
    struct xr_place_pin pin[5];
    hwloc_bitmap_t set[5];
    struct xr_place_request rq = {.pin = pin};
    struct xr_placement p;
    char err[256];

    for (; rq.npins < 5 && cores[rq.npins]; rq.npins++) {
        set[rq.npins] = hwloc_bitmap_alloc();
        assert_int_equal(hwloc_bitmap_list_sscanf(set[rq.npins], cores[rq.npins]), 0);
        pin[rq.npins] = (struct xr_place_pin){.package = -1, .cores = *cores[rq.npins] ? set[rq.npins] : NULL};
    }
    assert_int_equal(xr_place(&rq, hs.h, hs.n, &p, err, sizeof(err)), RANK_OK);
    assert_true(p.host[0].pinned);
    assert_int_equal(p.host[0].oversubscribed, oversubscribe);
    for (uint32_t k = 0; k < rq.npins; k++) {
        assert_int_equal(p.rank[k].cpus != NULL, *cores[k] != '\0'); /* however many they are */
        hwloc_bitmap_free(set[k]);
    }
    xr_placement_clear(&p);
    drop(&hs);
}

static void pinned_in_a_crowd(void **state)
{
    (void)state;
    crowd((const char *const[5]){"0", "1", "2", "3"}, false);
    crowd((const char *const[5]){"0", "0"}, true);
    crowd((const char *const[5]){"0-3", "0-3", "0-3", "0-3"}, false);
    crowd((const char *const[5]){"0-3", "0-2", "0-1", "0"}, false); /* each gives way to the next */
    crowd((const char *const[5]){"0-2", "0-1", "0-1", "0"}, true);
    crowd((const char *const[5]){"", "0", "1"}, false);
    crowd((const char *const[5]){"", "", "0", "0-1", "1"}, true);
    crowd((const char *const[5]){"0,1", "1,2", "2,0", "0-2"}, true);
    crowd((const char *const[5]){"0,1", "1,2", "2,3", "3,0"}, false);
}

static void hybrid_cores(void **state)
{
    struct hosts hs = {.h = {{.name = "a"}}, .n = 1};

    (void)state;
    hs.h[0].topology = machine_load(MACHINE_HYBRID);
    want(&hs, RQ(.n = 2), "a/0-4 a/5-7");
    want(&hs, RQ(.n = 3, .map = XR_LEVEL_CORE), "a/0-1 a/2-3 a/4");
    want(&hs, RQ(.n = 6, .bind = XR_BIND_CORE), "a/0-1 a/2-3 a/4 a/5 a/6 a/7");
    want(&hs, RQ(.n = 7), "a/- a/- a/- a/- a/- a/- a/-");
    want(&hs, RQ(.n = 8, .map = XR_LEVEL_HWTHREAD), "a/0 a/1 a/2 a/3 a/4 a/5 a/6 a/7");
    drop(&hs);
}

static void recorded_machines(void **state)
{
    struct hosts hs = one("epyc-corona.xml");

    (void)state;
    want(&hs, RQ(.ppr = 1, .map = XR_LEVEL_NUMA, .bind = XR_BIND_CORE),
         "a/0,48 a/6,54 a/12,60 a/18,66 a/24,72 a/30,78 a/36,84 a/42,90");
    want(&hs, RQ(.n = 4, .map = XR_LEVEL_PACKAGE, .bind = XR_BIND_L3),
         "a/0-2,48-50 a/24-26,72-74 a/12-14,60-62 a/36-38,84-86");
    drop(&hs);
    hs = one("cts1-pascal.xml");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_L3), "a/0-17,36-53 a/18-35,54-71");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_CORE), "a/0,36 a/1,37");
    drop(&hs);
    hs = one("coral-lassen.xml"); /* the first two cores of each package are kept from users */
    want(&hs, RQ(.n = 4, .bind = XR_BIND_CORE), "a/8-11 a/48-51 a/96-99 a/136-139");
    want(&hs, RQ(.n = 2, .map = XR_LEVEL_PACKAGE, .cpus = 2), "a/8-15 a/96-103");
    drop(&hs);
    hs = one("g4dnmetal.xml");
    want(&hs, RQ(.n = 8, .map = XR_LEVEL_PACKAGE, .bind = XR_BIND_HWTHREAD),
         "a/0 a/24 a/6 a/30 a/12 a/36 a/18 a/42");
    drop(&hs);
}

/* Whatever the number: all cores are used once, shares of an object differ by one at most, and local ranks count up. */
static void any_number(void **state)
{
    struct hosts hs = {.n = 0};

    (void)state;
    add(&hs, "package:2 core:8 pu:2", 0, NULL);
    add(&hs, "package:1 core:16 pu:1", 0, NULL);
    for (int map = XR_LEVEL_SLOT; map <= XR_LEVEL_PACKAGE; map++) {
        for (int order = XR_ORDER_SLOT; order <= XR_ORDER_FILL; order++) {
            for (uint32_t n = 1; n <= 32; n++) {
                struct xr_place_request rq = {.n = n, .map = (enum xr_level)map, .order = (enum xr_order)order};
                struct xr_placement p;
                uint32_t next[2] = {0, 0};
                char err[256];
                hwloc_bitmap_t seen[2] = {hwloc_bitmap_alloc(), hwloc_bitmap_alloc()};
                assert_int_equal(xr_place(&rq, hs.h, hs.n, &p, err, sizeof(err)), RANK_OK);
                assert_int_equal(p.n, n);
                assert_int_equal(p.host[0].ranks + p.host[1].ranks, n);
                for (uint32_t k = 0; k < n; k++) {
                    uint32_t h = p.rank[k].host;
                    assert_int_equal(p.rank[k].local, next[h]++);
                    assert_false(hwloc_bitmap_iszero(p.rank[k].cpus));
                    assert_false(hwloc_bitmap_intersects(seen[h], p.rank[k].cpus));
                    hwloc_bitmap_or(seen[h], seen[h], p.rank[k].cpus);
                }
                xr_placement_clear(&p);
                hwloc_bitmap_free(seen[0]);
                hwloc_bitmap_free(seen[1]);
            }
        }
    }
    drop(&hs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_a_host),
        cmocka_unit_test(threads_of_a_core),
        cmocka_unit_test(objects_in_turn),
        cmocka_unit_test(a_number_on_each),
        cmocka_unit_test(several_hosts),
        cmocka_unit_test(only_what_may_be_used),
        cmocka_unit_test(more_ranks_than_cores),
        cmocka_unit_test(a_host_that_is_not_known),
        cmocka_unit_test(a_machine_without),
        cmocka_unit_test(pinned),
        cmocka_unit_test(pinned_in_a_crowd),
        cmocka_unit_test(hybrid_cores),
        cmocka_unit_test(recorded_machines),
        cmocka_unit_test(any_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
