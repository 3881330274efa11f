/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machines.h: give tests of placement machines that we do not have.
 * Recorded ones of tests/data/topologies ("NAME.xml"), hwloc's synthetic ones ("core:4 pu:2"), and one with cores of two kinds.
 */
#ifndef TESTS_LAUNCHER_MACHINES_H
#define TESTS_LAUNCHER_MACHINES_H

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two fast cores of two threads and four slow ones of one, as a laptop has them. */
#define MACHINE_HYBRID "hybrid"

static inline hwloc_topology_t machine_load(const char *what)
{
#define CORE(i, set)                                                                               \
    "<object type=\"Core\" os_index=\"" #i "\" cpuset=\"" set "\" complete_cpuset=\"" set          \
    "\" nodeset=\"1\" complete_nodeset=\"1\" gp_index=\"1" #i "\">"
#define PU(i, set)                                                                                 \
    "<object type=\"PU\" os_index=\"" #i "\" cpuset=\"" set "\" complete_cpuset=\"" set            \
    "\" nodeset=\"1\" complete_nodeset=\"1\" gp_index=\"2" #i "\"/>"
    static const char hybrid[] =
        "<?xml version=\"1.0\"?><topology version=\"2.0\">"
        "<object type=\"Machine\" os_index=\"0\" cpuset=\"0xff\" complete_cpuset=\"0xff\" "
        "allowed_cpuset=\"0xff\" nodeset=\"1\" complete_nodeset=\"1\" allowed_nodeset=\"1\" "
        "gp_index=\"1\">"
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xff\" complete_cpuset=\"0xff\" "
        "nodeset=\"1\" complete_nodeset=\"1\" gp_index=\"2\" local_memory=\"1048576\"/>"
        "<object type=\"Package\" os_index=\"0\" cpuset=\"0xff\" complete_cpuset=\"0xff\" "
        "nodeset=\"1\" complete_nodeset=\"1\" gp_index=\"3\">"
        CORE(0, "0x3") PU(0, "0x1") PU(1, "0x2") "</object>"
        CORE(1, "0xc") PU(2, "0x4") PU(3, "0x8") "</object>"
        CORE(2, "0x10") PU(4, "0x10") "</object>" CORE(3, "0x20") PU(5, "0x20") "</object>"
        CORE(4, "0x40") PU(6, "0x40") "</object>" CORE(5, "0x80") PU(7, "0x80") "</object>"
        "</object></object></topology>";
#undef CORE
#undef PU
    hwloc_topology_t t;
    char path[512];

    assert_int_equal(hwloc_topology_init(&t), 0);
    if (strcmp(what, MACHINE_HYBRID) == 0) {
        assert_int_equal(hwloc_topology_set_xmlbuffer(t, hybrid, sizeof(hybrid)), 0);
    } else if (strstr(what, ".xml")) {
        snprintf(path, sizeof(path), "%s/tests/data/topologies/%s", getenv("srcdir") ? getenv("srcdir") : ".", what);
        assert_int_equal(hwloc_topology_set_xml(t, path), 0);
    } else {
        assert_int_equal(hwloc_topology_set_synthetic(t, what), 0);
    }
    assert_int_equal(hwloc_topology_load(t), 0);
    return t;
}

/* Restrict it to these: hwloc shows a machine to a restricted process so. */
static inline void machine_restrict(hwloc_topology_t t, const char *cpus)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(hwloc_bitmap_list_sscanf(set, cpus), 0);
    assert_int_equal(hwloc_topology_restrict(t, set, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS), 0);
    hwloc_bitmap_free(set);
}

#endif
