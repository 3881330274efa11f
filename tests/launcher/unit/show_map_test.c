/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show_map_test.c: compare the text of --show-map, to the letter.
 *
 * On machines that we do not have: the table and the drawing.
 * A case is a machine, a request, and the whole text.
 */
#include "launcher/map/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/launcher/unit/machines.h"

#define MAX_HOSTS 3

struct hosts {
    struct xr_hostspec spec[MAX_HOSTS];
    struct xr_plan_host known[MAX_HOSTS];
    uint32_t n;
};

/* machine NULL: only the number of its cores is known, two. */
static void add(struct hosts *hs, const char *name, const char *machine, const char *usable)
{
    struct xr_plan_host *k = &hs->known[hs->n];

    hs->spec[hs->n].name = (char *)(uintptr_t)name;
    *k = (struct xr_plan_host){.units = machine ? 0 : 2, .topology = machine ? machine_load(machine) : NULL};
    if (usable)
        machine_restrict(k->topology, usable);
    hs->n++;
}

static void drop(struct hosts *hs)
{
    for (uint32_t i = 0; i < hs->n; i++) {
        if (hs->known[i].topology)
            hwloc_topology_destroy(hs->known[i].topology);
    }
    memset(hs, 0, sizeof(*hs));
}

static void shows(struct hosts *hs, struct xr_place_request rq, const char *wanted)
{
    struct xr_plan plan = {.hosts = {.host = hs->spec, .n = hs->n}, .known = hs->known};
    struct xr_place_host hosts[MAX_HOSTS];
    char err[256], *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    for (uint32_t i = 0; i < hs->n; i++)
        hosts[i] = (struct xr_place_host){.name = hs->spec[i].name, .units = hs->known[i].units,
                                          .topology = hs->known[i].topology};
    if (xr_place(&rq, hosts, hs->n, &plan.placement, err, sizeof(err)))
        fail_msg("%s", err);
    xr_plan_show(&plan, to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wanted);
    free(text);
    xr_placement_clear(&plan.placement);
}

static void shows_one(const char *machine, struct xr_place_request rq, const char *wanted)
{
    struct hosts hs = {.n = 0};

    add(&hs, "a", machine, NULL);
    shows(&hs, rq, wanted);
    drop(&hs);
}

#define RQ(...) ((struct xr_place_request){__VA_ARGS__})

static void threads_of_a_core(void **state)
{
    (void)state;
    shows_one("package:1 core:4 pu:2", RQ(.n = 3),
              "  rank  host  local  cpus\n"
              "     0  a         0  0-1\n"
              "     1  a         1  2-3\n"
              "     2  a         2  4-7\n"
              "\n"
              "a: 3 ranks on 4 cores\n"
              "  package 0 | 0 1 2 2 |\n");
    /* apart on one core, and a core to spare */
    shows_one("package:1 core:4 pu:2", RQ(.n = 3, .map = XR_LEVEL_HWTHREAD),
              "  rank  host  local  cpus\n"
              "     0  a         0  0\n"
              "     1  a         1  1\n"
              "     2  a         2  2\n"
              "\n"
              "a: 3 ranks on 8 hardware threads\n"
              "  package 0 | 0+1 2 . . |\n");
    shows_one("package:1 core:2 pu:2", RQ(.n = 5),
              "  rank  host  local  cpus\n"
              "     0  a         0  not bound\n"
              "     1  a         1  not bound\n"
              "     2  a         2  not bound\n"
              "     3  a         3  not bound\n"
              "     4  a         4  not bound\n"
              "\n"
              "a: 5 ranks on 2 cores, not bound because they are more\n"
              "  package 0 | . . |\n");
}

static void packages_and_numa(void **state)
{
    (void)state;
    shows_one("package:2 numa:2 core:2 pu:1", RQ(.n = 4),
              "  rank  host  local  cpus\n"
              "     0  a         0  0-1\n"
              "     1  a         1  2-3\n"
              "     2  a         2  4-5\n"
              "     3  a         3  6-7\n"
              "\n"
              "a: 4 ranks on 8 cores\n"
              "  package 0 | 0 0 | 1 1 |\n"
              "  package 1 | 2 2 | 3 3 |\n");
    shows_one("package:2 numa:2 core:2 pu:1", RQ(.n = 2, .map = XR_LEVEL_PACKAGE, .bind = XR_BIND_CORE),
              "  rank  host  local  cpus\n"
              "     0  a         0  0\n"
              "     1  a         1  4\n"
              "\n"
              "a: 2 ranks on 8 cores\n"
              "  package 0 | 0 . | . . |\n"
              "  package 1 | 1 . | . . |\n");
    /* caches divide where they are smaller */
    shows_one("package:2 l3:2 core:2 pu:1", RQ(.n = 4, .bind = XR_BIND_CORE, .map = XR_LEVEL_L3),
              "  rank  host  local  cpus\n"
              "     0  a         0  0\n"
              "     1  a         1  2\n"
              "     2  a         2  4\n"
              "     3  a         3  6\n"
              "\n"
              "a: 4 ranks on 8 cores\n"
              "  package 0 | 0 . | 1 . |\n"
              "  package 1 | 2 . | 3 . |\n");
}

static void cores_of_two_kinds(void **state)
{
    (void)state;
    shows_one(MACHINE_HYBRID, RQ(.n = 3),
              "  rank  host  local  cpus\n"
              "     0  a         0  0-3\n"
              "     1  a         1  4-5\n"
              "     2  a         2  6-7\n"
              "\n"
              "a: 3 ranks on 6 cores\n"
              "  package 0 | 0 0 1 1 2 2 |\n");
    shows_one(MACHINE_HYBRID, RQ(.n = 4, .bind = XR_BIND_CORE),
              "  rank  host  local  cpus\n"
              "     0  a         0  0-1\n"
              "     1  a         1  2-3\n"
              "     2  a         2  5\n"
              "     3  a         3  6\n"
              "\n"
              "a: 4 ranks on 6 cores\n"
              "  package 0 | 0 1 . 2 3 . |\n");
}

static void not_all_of_it(void **state)
{
    struct hosts hs = {.n = 0};

    (void)state;
    add(&hs, "a", "package:2 core:4 pu:1", "1-2,4");
    shows(&hs, RQ(.n = 2),
              "  rank  host  local  cpus\n"
              "     0  a         0  1\n"
              "     1  a         1  2,4\n"
              "\n"
              "a: 2 ranks on 3 cores\n"
              "  package 0 | 0 1 |\n"
              "  package 1 | 1 |\n");
    shows(&hs, RQ(.n = 2, .cpus = 2),
              "  rank  host  local  cpus\n"
              "     0  a         0  1\n"
              "     1  a         1  2,4\n"
              "\n"
              "a: 2 ranks on 3 cores, fewer for each than --cpus-per-rank\n"
              "  package 0 | 0 1 |\n"
              "  package 1 | 1 |\n");
    drop(&hs);
}

static void several_hosts(void **state)
{
    struct hosts hs = {.n = 0};

    (void)state;
    add(&hs, "short", "core:2 pu:1", NULL);
    add(&hs, "a-longer-name", "pu:2", NULL); /* shows no cores */
    add(&hs, "dark", NULL, NULL);
    shows(&hs, RQ(.n = 6, .map = XR_LEVEL_NODE),
              "  rank  host           local  cpus\n"
              "     0  short              0  0\n"
              "     1  a-longer-name      0  0\n"
              "     2  dark               0  not bound\n"
              "     3  short              1  1\n"
              "     4  a-longer-name      1  1\n"
              "     5  dark               1  not bound\n"
              "\n"
              "short: 2 ranks on 2 cores\n"
              "  package 0 | 0 3 |\n"
              "\n"
              "a-longer-name: 2 ranks on 2 cores\n"
              "  package 0 | 1 4 |\n"
              "\n"
              "dark: 2 ranks on 2 cores\n");
    hs.known[0].real_name = (char *)(uintptr_t) "its-own";
    shows(&hs, RQ(.n = 1),
              "  rank  host           local  cpus\n"
              "     0  its-own            0  0-1\n"
              "\n"
              "its-own: 1 rank on 2 cores\n"
              "  package 0 | 0 0 |\n"
              "\n"
              "a-longer-name: 0 ranks on 2 cores\n"
              "  package 0 | . . |\n"
              "\n"
              "dark: 0 ranks on 2 cores\n");
    drop(&hs);
}

static void recorded_machines(void **state)
{
    (void)state;
    shows_one("epyc-corona.xml", RQ(.ppr = 1, .map = XR_LEVEL_NUMA, .bind = XR_BIND_CORE),
              "  rank  host  local  cpus\n"
              "     0  a         0  0,48\n"
              "     1  a         1  6,54\n"
              "     2  a         2  12,60\n"
              "     3  a         3  18,66\n"
              "     4  a         4  24,72\n"
              "     5  a         5  30,78\n"
              "     6  a         6  36,84\n"
              "     7  a         7  42,90\n"
              "\n"
              "a: 8 ranks on 48 cores\n"
              "  package 0 | 0 . . | . . . | 1 . . | . . . | 2 . . | . . . | 3 . . | . . . |\n"
              "  package 1 | 4 . . | . . . | 5 . . | . . . | 6 . . | . . . | 7 . . | . . . |\n");
    shows_one("coral-lassen.xml", RQ(.n = 4),
              "  rank  host  local  cpus\n"
              "     0  a         0  8-47\n"
              "     1  a         1  48-87\n"
              "     2  a         2  96-135\n"
              "     3  a         3  136-175\n"
              "\n"
              "a: 4 ranks on 40 cores\n"
              "  package 0 | 0 0 | 0 0 | 0 0 | 0 0 | 0 0 | 1 1 | 1 1 | 1 1 | 1 1 | 1 1 |\n"
              "  package 1 | 2 2 | 2 2 | 2 2 | 2 2 | 2 2 | 3 3 | 3 3 | 3 3 | 3 3 | 3 3 |\n");
    shows_one("cts1-pascal.xml", RQ(.n = 2, .map = XR_LEVEL_CORE),
              "  rank  host  local  cpus\n"
              "     0  a         0  0,36\n"
              "     1  a         1  1,37\n"
              "\n"
              "a: 2 ranks on 36 cores\n"
              "  package 0 | 0 1 . . . . . . . . . . . . . . . . |\n"
              "  package 1 | . . . . . . . . . . . . . . . . . . |\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_a_core), cmocka_unit_test(packages_and_numa), cmocka_unit_test(cores_of_two_kinds),
        cmocka_unit_test(not_all_of_it),     cmocka_unit_test(several_hosts),     cmocka_unit_test(recorded_machines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
