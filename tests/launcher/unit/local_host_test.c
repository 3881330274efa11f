/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local_host_test.c: find the local host among names, whatever its own name is.
 */
#include "launcher/map/rankfile.h"
#include "launcher/alloc/local_alias.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void domains_differ(void **state)
{
    static const struct {
        const char *a, *b;
        bool differ;
    } rows[] = {
        {"node1.a", "node1.b", true},   {"node1.a", "node1.a", false},   {"node1.a.x", "node1.a", true},
        {"node1", "node1.b", false},    {"node1.a", "node1", false},     {"localhost", "node1.a", false},
        {"10.0.0.1", "node1.a", false}, {"node1.a", "10.0.0.1", false},  {"10.0.0.1", "10.0.0.2", false},
        {"::1", "node1.a", false},      {"::ffff:1.2.3.4", "n.a", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (xr_local_host_differ(rows[i].a, rows[i].b) != rows[i].differ)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

/* Names of which two have one short name, but not one network, are two hosts. */
static void merged(void **state)
{
    static const struct {
        const char *list;
        uint32_t n, slots; /* of the first */
    } rows[] = {
        {"node1.a:1,node1.b:1", 2, 1},           {"node1:1,node1.b:2,node1.a:4", 2, 3},
        {"node2:1,node1.a:1,node1.b:1", 3, 1},   {"node1.a:1,localhost:1,127.0.0.1:1,node1:1", 1, 4},
        {"localhost:1,node1.a:1,node1.b:1", 2, 2}, {"node1:1,node1.b:1", 1, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct xr_local_host here = {.name = "node1"};
        struct xr_hostlist hosts = {.n = 0};
        char err[256];
        assert_int_equal(xr_hostlist_parse(&hosts, rows[i].list, err, sizeof(err)), RANK_OK);
        assert_int_equal(xr_local_alias_merge(&hosts, &here), RANK_OK);
        if (hosts.n != rows[i].n || hosts.host[0].slots != rows[i].slots)
            fail_msg("%s: %u hosts, the first has %u slots", rows[i].list, hosts.n, hosts.host[0].slots);
        xr_hostlist_clear(&hosts);
        xr_local_host_clear(&here);
    }
}

static bool only_b(struct xr_local_host *here, const char *name)
{
    (void)here;
    return strcmp(name, "node1.b") == 0;
}

/* The resolver has node1.b as another host. */
static void resolved(void **state)
{
    struct xr_local_host here = {.name = "node1", .elsewhere = only_b}, full = {.name = "node1.b", .elsewhere = only_b};

    (void)state;
    assert_true(xr_local_host_is(&here, "node1"));
    assert_true(xr_local_host_is(&here, "node1.a"));
    assert_false(xr_local_host_is(&here, "node1.b"));
    assert_true(xr_local_host_is(&full, "node1.b")); /* its own name needs no resolver */
    assert_true(xr_local_host_is(&full, "node1"));
    assert_false(xr_local_host_is(&full, "node1.a"));
}

static void in_a_rankfile(void **state)
{
    static const char text[] = "rank 0=node1.a\nrank 1=node1.b\nrank 2=node1\nrank 3=localhost\n";
    static const uint32_t expected[] = {0, 1, 0, 0};
    struct xr_local_host here = {.name = "node1"};
    struct xr_hostlist hosts = {.n = 0};
    struct xr_rankfile file;
    char path[] = "ranks.XXXXXX", err[256] = "";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    if (xr_rankfile_read(path, &hosts, &here, &file, err, sizeof(err)))
        print_error("%s\n", err);
    unlink(path);
    assert_int_equal(hosts.n, 2);
    assert_int_equal(file.n, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(file.pin[i].host, expected[i]);
    xr_rankfile_clear(&file);
    xr_hostlist_clear(&hosts);
    xr_local_host_clear(&here);
}

/* Resolve a given name among the hosts of a file or a resource manager. */
static void meant(void **state)
{
    static const char list[] = "node1.a,node2.a,node3.a,node3.b,10.0.0.2,node4";
    static const struct {
        const char *name;
        uint32_t host;
    } rows[] = {
        {"node1.a", 0},  {"node1", 0}, {"localhost", 0}, {"127.0.0.1", 0},        {"node2", 1},         {"node2.a", 1},
        {"node2.b", ~0u}, {"node", ~0u}, {"node3.b", 3},   {"node3", ~0u /* or b */}, {"node4.far.away", 5}, {"10.0.0.2", 4},
        {"10", ~0u},      {"10.0.0", ~0u}, {"10.0.0.3", ~0u},
    };
    struct xr_local_host here = {.name = "node1"};
    struct xr_hostlist hosts = {.source = "the list"};
    char err[256];

    (void)state;
    assert_int_equal(xr_hostlist_parse(&hosts, list, err, sizeof(err)), RANK_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (xr_hostlist_mean(&hosts, &here, rows[i].name) != rows[i].host)
            fail_msg("%s is %u", rows[i].name, xr_hostlist_mean(&hosts, &here, rows[i].name));
    }
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "localhost"), UINT32_MAX);
    xr_hostlist_clear(&hosts);
    xr_local_host_clear(&here);
}

/* The same among many, when the list grows and when it is cut. */
static void meant_of_many(void **state)
{
    struct xr_hostlist hosts = {.source = "the list"};
    char err[256];

    (void)state;
    assert_int_equal(xr_hostlist_parse(&hosts, "n0007.b,n[0001-2000].a,m[0001-2000]", err, sizeof(err)), RANK_OK);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n0001"), 1);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n2000"), 2000);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n2000.b"), UINT32_MAX);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n0007"), UINT32_MAX);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n0007.b"), 0);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "m2000.far"), 4000);
    xr_hostlist_cut(&hosts, 1000);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n0999"), 999);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n1000"), UINT32_MAX);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "m0001.far"), UINT32_MAX);
    xr_hostlist_cut(&hosts, 1);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n0007"), 0);
    xr_hostlist_clear(&hosts);
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n0007"), UINT32_MAX);
    hosts.source = "an empty one";
    assert_int_equal(xr_hostlist_mean(&hosts, NULL, "n0007"), UINT32_MAX);
}

static void chosen(void **state)
{
    static const struct {
        const char *only, *first; /* NULL: it is refused */
        uint32_t n, slots;
    } rows[] = {
        {"node2", "node2.a", 1, 3},          {"localhost,node2:1", "node1.a", 2, 4}, {"node2:1,localhost", "node2.a", 2, 1},
        {"localhost,node1", "node1.a", 1, 2}, {"node3", NULL, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct xr_local_host here = {.name = "node1"};
        struct xr_hostlist hosts = {.source = "the list"}, only = {.source = "--host"};
        char err[256] = "";
        rank_status_t st;
        assert_int_equal(xr_hostlist_parse(&hosts, "node1.a:4,node2.a:3", err, sizeof(err)), RANK_OK);
        assert_int_equal(xr_hostlist_parse(&only, rows[i].only, err, sizeof(err)), RANK_OK);
        st = xr_hostlist_restrict(&hosts, &only, &here, err, sizeof(err));
        assert_int_equal(st, rows[i].first ? RANK_OK : RANK_ERR_ARG);
        if (!st && (hosts.n != rows[i].n || strcmp(hosts.host[0].name, rows[i].first) != 0 || hosts.host[0].slots != rows[i].slots))
            fail_msg("%s: %u hosts, the first is %s:%u", rows[i].only, hosts.n, hosts.host[0].name, hosts.host[0].slots);
        xr_hostlist_clear(&hosts);
        xr_hostlist_clear(&only);
        xr_local_host_clear(&here);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_differ),
        cmocka_unit_test(merged), cmocka_unit_test(resolved),
        cmocka_unit_test(in_a_rankfile),
        cmocka_unit_test(meant),
        cmocka_unit_test(meant_of_many),
        cmocka_unit_test(chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
