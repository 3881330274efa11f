/* topo_test.c: shares of cores, on machines that we do not have. */
#include "lib/base/compiler.h"
#include "lib/topo/topo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hwloc_topology_t machine(const char *synthetic)
{
    hwloc_topology_t t, from_xml;
    char *xml;
    int len;

    assert_int_equal(hwloc_topology_init(&t), 0);
    assert_int_equal(hwloc_topology_set_synthetic(t, synthetic), 0);
    assert_int_equal(hwloc_topology_load(t), 0);
    /* Through XML and back, as a recorded machine would come. */
    assert_int_equal(hwloc_topology_export_xmlbuffer(t, &xml, &len, 0), 0);
    assert_int_equal(hwloc_topology_init(&from_xml), 0);
    assert_int_equal(hwloc_topology_set_xmlbuffer(from_xml, xml, len), 0);
    assert_int_equal(hwloc_topology_load(from_xml), 0);
    hwloc_free_xmlbuffer(t, xml);
    hwloc_topology_destroy(t);
    return from_xml;
}

static hwloc_cpuset_t set_of(const char *list)
{
    hwloc_cpuset_t set = hwloc_bitmap_alloc();

    assert_int_equal(hwloc_bitmap_list_sscanf(set, list), 0);
    return set;
}

/* want: the lists of the ranks, in order. */
static void check(const char *synthetic, const char *usable, int n, enum rk_topo_share how,
                  const char *const *want)
{
    hwloc_topology_t t = machine(synthetic);
    hwloc_cpuset_t part = usable ? set_of(usable) : NULL;
    hwloc_cpuset_t *sets = calloc((size_t)n, sizeof(*sets));

    for (int i = 0; i < n; i++)
        sets[i] = hwloc_bitmap_alloc();
    assert_int_equal(rk_topo_share(t, part, n, how, sets), RANK_OK);
    for (int i = 0; i < n; i++) {
        char got[128];
        hwloc_bitmap_list_snprintf(got, sizeof(got), sets[i]);
        assert_string_equal(got, want[i]);
        hwloc_bitmap_free(sets[i]);
    }
    free(sets);
    hwloc_bitmap_free(part);
    hwloc_topology_destroy(t);
}

static void even_shares(void **state)
{
    (void)state;
    check("package:2 core:4 pu:1", NULL, 1, RK_TOPO_SHARE, (const char *const[]){"0-7"});
    check("package:2 core:4 pu:1", NULL, 2, RK_TOPO_SHARE, (const char *const[]){"0-3", "4-7"});
    check("package:2 core:4 pu:1", NULL, 4, RK_TOPO_SHARE,
          (const char *const[]){"0-1", "2-3", "4-5", "6-7"});
}

static void uneven_shares(void **state)
{
    (void)state;
    check("core:8 pu:1", NULL, 3, RK_TOPO_SHARE, (const char *const[]){"0-1", "2-4", "5-7"});
    check("core:7 pu:1", NULL, 2, RK_TOPO_SHARE, (const char *const[]){"0-2", "3-6"});
}

static void threads_of_a_core_stay_together(void **state)
{
    (void)state;
    check("core:4 pu:2", NULL, 2, RK_TOPO_SHARE, (const char *const[]){"0-3", "4-7"});
    check("core:4 pu:2", NULL, 4, RK_TOPO_CORE,
          (const char *const[]){"0-1", "2-3", "4-5", "6-7"});
    /* numbered as Linux often does: the second threads after all first ones */
    check("core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", NULL, 2, RK_TOPO_SHARE,
          (const char *const[]){"0-1,4-5", "2-3,6-7"});
}

static void one_core_each_is_spread(void **state)
{
    (void)state;
    check("package:2 core:4 pu:1", NULL, 2, RK_TOPO_CORE, (const char *const[]){"0", "4"});
    check("package:2 core:4 pu:1", NULL, 3, RK_TOPO_CORE, (const char *const[]){"0", "2", "5"});
}

static void only_what_may_be_used(void **state)
{
    (void)state;
    check("package:2 core:4 pu:1", "2-5", 2, RK_TOPO_SHARE, (const char *const[]){"2-3", "4-5"});
    check("package:2 core:4 pu:1", "1,3,6", 3, RK_TOPO_SHARE, (const char *const[]){"1", "3", "6"});
    check("core:4 pu:2", "1,2,3", 2, RK_TOPO_SHARE, (const char *const[]){"1", "2-3"});
}

/* Every core goes to one rank and shares differ by one core at most. */
static void any_number(void **state)
{
    hwloc_topology_t t = machine("package:2 core:32 pu:1");

    (void)state;
    assert_int_equal(rk_topo_cores(t, NULL), 64);
    for (int n = 1; n <= 64; n++) {
        hwloc_cpuset_t sets[64], all = hwloc_bitmap_alloc();
        int total = 0;
        for (int i = 0; i < n; i++)
            sets[i] = hwloc_bitmap_alloc();
        assert_int_equal(rk_topo_share(t, NULL, n, RK_TOPO_SHARE, sets), RANK_OK);
        for (int i = 0; i < n; i++) {
            int weight = hwloc_bitmap_weight(sets[i]);
            assert_in_range(weight, 64 / n, (64 + n - 1) / n);
            total += weight;
            hwloc_bitmap_or(all, all, sets[i]);
            hwloc_bitmap_free(sets[i]);
        }
        assert_int_equal(total, 64);
        assert_int_equal(hwloc_bitmap_weight(all), 64);
        hwloc_bitmap_free(all);
    }
    hwloc_topology_destroy(t);
}

static void too_many_ranks(void **state)
{
    hwloc_topology_t t = machine("core:2 pu:2");
    hwloc_cpuset_t usable = set_of("0");

    (void)state;
    assert_int_equal(rk_topo_share(t, NULL, 3, RK_TOPO_SHARE, NULL), RANK_ERR_COUNT);
    assert_int_equal(rk_topo_share(t, NULL, 0, RK_TOPO_SHARE, NULL), RANK_ERR_COUNT);
    assert_int_equal(rk_topo_share(t, usable, 2, RK_TOPO_SHARE, NULL), RANK_ERR_COUNT);
    hwloc_bitmap_free(usable);
    hwloc_topology_destroy(t);
}

static void this_machine(void **state)
{
    hwloc_topology_t t;

    (void)state;
    assert_int_equal(rk_topo_load(&t), RANK_OK);
    assert_in_range(rk_topo_cores(t, NULL), 1, 1 << 20);
    hwloc_topology_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_shares),
        cmocka_unit_test(uneven_shares),
        cmocka_unit_test(threads_of_a_core_stay_together),
        cmocka_unit_test(one_core_each_is_spread),
        cmocka_unit_test(only_what_may_be_used),
        cmocka_unit_test(any_number),
        cmocka_unit_test(too_many_ranks),
        cmocka_unit_test(this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
