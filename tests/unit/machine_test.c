/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_test.c: read the devices of machines that we do not have. */
#include "lib/topo/topo.h"

#include "tests/unit/machine_xml.h"

static void check_devices(const struct rk_device *d, uint32_t n, const char *const *names)
{
    for (uint32_t i = 0; i < n; i++)
        assert_string_equal(*d[i].name ? d[i].name : d[i].pci, names[i]);
}
#define NAMES (const char *const[])

static const char *path_of(const struct rk_machine *m, uint32_t gpu, uint32_t nic)
{
    return rk_path_name(rk_path_devices(m, &m->gpu[gpu], &m->nic[nic]));
}

static const char *gpu_path(const struct rk_machine *m, uint32_t a, uint32_t b)
{
    return rk_path_name(rk_path_gpus(m, a, b));
}

static void lassen(void **state)
{
    struct rk_machine m;

    (void)state;
    recorded_machine(&m, "coral-lassen");
    assert_int_equal(m.ncores, 40);
    assert_int_equal(m.nnumas, 2);
    assert_int_equal(m.numa[1].os, 8);
    assert_int_equal(m.ngpus, 4);
    check_devices(m.gpu, 4, NAMES{"cuda0", "cuda1", "cuda2", "cuda3"});
    assert_string_equal(m.gpu[0].uuid, "GPU-04732404-7fc3-5ae6-cddd-c879b3a379bb");
    assert_string_equal(m.gpu[0].model, "Tesla V100-SXM2-16GB");
    /* The interface hsi0 is that of mlx5_0. */
    assert_int_equal(m.nnics, 6);
    check_devices(m.nic, 6, NAMES{"mlx5_0", "mlx5_1", "enP5p1s0f0", "enP5p1s0f1", "mlx5_2", "mlx5_3"});
    assert_string_equal(m.nic[0].netdev, "hsi0");
    assert_int_equal(m.nic[0].kind, RK_NIC_FABRIC);
    assert_int_equal(m.nic[2].kind, RK_NIC_ETHERNET);
    assert_string_equal(gpu_path(&m, 0, 1), "PIX");
    assert_string_equal(gpu_path(&m, 1, 2), "SYS");
    assert_string_equal(path_of(&m, 0, 0), "NODE");
    assert_string_equal(path_of(&m, 0, 4), "SYS");
    assert_int_equal((int)m.nic[0].link_gbs, 15);
    rk_machine_free(&m);
}

/* AMD's cards with a switch inside are of class 0300; so is the baseboard's screen. No driver has named them. */
static void corona(void **state)
{
    static const uint32_t nodes[] = {1, 2, 5, 7};
    struct rk_machine m;

    (void)state;
    recorded_machine(&m, "epyc-corona");
    assert_int_equal(m.ngpus, 4);
    check_devices(m.gpu, 4, NAMES{"0000:13:00.0", "0000:23:00.0", "0000:53:00.0", "0000:73:00.0"});
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(m.core[m.gpu[i].near.first].numa, nodes[i]);
        assert_int_equal(m.gpu[i].near.n, 6);
    }
    assert_int_equal(m.nnics, 3);
    check_devices(m.nic, 3, NAMES{"enp3s0f0", "enp3s0f1", "mlx5_0"});
    /* Four NUMA nodes of one package. */
    assert_string_equal(gpu_path(&m, 0, 1), "SYS");
    assert_true(rk_path_distance(&m, &m.gpu[0], &m.nic[2]) < rk_path_distance(&m, &m.gpu[2], &m.nic[2]));
    rk_machine_free(&m);
}

static void g4dn(void **state)
{
    struct rk_machine m;

    (void)state;
    recorded_machine(&m, "g4dnmetal");
    assert_int_equal(m.ngpus, 8);
    assert_int_equal(m.nnics, 2);
    check_devices(m.nic, 2, NAMES{"rdmap197s0", "eth0"});
    assert_string_equal(gpu_path(&m, 0, 1), "PHB");
    assert_string_equal(gpu_path(&m, 0, 2), "NODE");
    assert_string_equal(gpu_path(&m, 0, 4), "SYS");
    rk_machine_free(&m);
}

static void classes(void **state)
{
    static const char *const lines[] = {"[(G)(A)(a)(I)(i)(V)]", "[(M)(m)(E)(e)(S)]"};
    struct rk_machine m;

    (void)state;
    make_machine(&m, 1, 2, 4, lines);
    assert_int_equal(m.ngpus, 4);
    assert_int_equal(m.nnics, 3);
    check_devices(m.nic, 3, NAMES{"mlx5_0", "net2", "net3"});
    assert_int_equal(m.nic[0].kind, RK_NIC_FABRIC);
    assert_int_equal(m.nic[1].kind, RK_NIC_ETHERNET);
    assert_int_equal(m.nic[2].kind, RK_NIC_FABRIC);
    assert_int_equal(m.gpu[0].near.first, 0);
    assert_int_equal(m.nic[0].near.first, 4);
    rk_machine_free(&m);
}

/* One switch, two switches in a row, one host bridge, one node, one package. */
static void paths(void **state)
{
    static const char *const lines[] = {"[" SWITCH("(G)(M)(((M)))") "(M)][(M)]", "[(M)]", "[(M)]"};
    static const char *const wanted[] = {"PIX", "PXB", "PHB", "NODE", "SYS", "SYS"};
    struct rk_machine m;

    (void)state;
    make_machine(&m, 1, 3, 2, lines);
    assert_int_equal(m.ngpus, 1);
    assert_int_equal(m.nnics, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_string_equal(path_of(&m, 0, i), wanted[i]);
    rk_machine_free(&m);
}

/* What a driver reports of NVLink precedes PCIe. */
static void nvlinks(void **state)
{
    static const char *const lines[] = {"[(G)(G)]"};
    struct rk_machine m;

    (void)state;
    make_machine(&m, 1, 1, 2, lines);
    assert_string_equal(gpu_path(&m, 0, 1), "PHB");
    m.nvlinks = calloc(4, 1);
    assert_non_null(m.nvlinks);
    m.nvlinks[1] = m.nvlinks[2] = 18;
    assert_string_equal(gpu_path(&m, 0, 1), "NVL");
    rk_machine_free(&m);
}

static void check_equal(const struct rk_device *a, const struct rk_device *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_string_equal(a[i].pci, b[i].pci);
        assert_int_equal(a[i].kind, b[i].kind);
        assert_int_equal(a[i].near.first, b[i].near.first);
        assert_int_equal(a[i].near.n, b[i].near.n);
    }
}

/* The same machine in the XML of hwloc 1.x. */
static void first_format(void **state)
{
    static const char *const names[] = {"coral-lassen", "epyc-corona", "g4dnmetal", "cts1-pascal"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        char path[] = "/tmp/rk_machine.XXXXXX", from[512], err[256] = "";
        const char *top = getenv("top_srcdir");
        struct rk_machine two, one;
        hwloc_topology_t t;
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        close(fd);
        snprintf(from, sizeof(from), "%s/tests/data/topologies/%s.xml", top ? top : ".", names[i]);
        assert_int_equal(hwloc_topology_init(&t), 0);
        hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
        assert_int_equal(hwloc_topology_set_xml(t, from), 0);
        assert_int_equal(hwloc_topology_load(t), 0);
        assert_int_equal(hwloc_topology_export_xml(t, path, HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V1), 0);
        hwloc_topology_destroy(t);
        recorded_machine(&two, names[i]);
        if (rk_machine_load(path, &one, err, sizeof(err)))
            fail_msg("%s", err);
        unlink(path);
        assert_int_equal(one.ncores, two.ncores);
        assert_int_equal(one.nnumas, two.nnumas);
        assert_int_equal(one.ngpus, two.ngpus);
        assert_int_equal(one.nnics, two.nnics);
        check_equal(one.gpu, two.gpu, one.ngpus);
        check_equal(one.nic, two.nic, one.nnics);
        for (uint32_t g = 0; g < one.ngpus; g++) {
            for (uint32_t n = 0; n < one.nnics; n++)
                assert_string_equal(path_of(&one, g, n), path_of(&two, g, n));
        }
        rk_machine_free(&one);
        rk_machine_free(&two);
    }
}

static void check_refused(const char *path, const char *text)
{
    struct rk_machine m;
    char err[256] = "";

    assert_int_equal(rk_machine_load(path, &m, err, sizeof(err)), RANK_ERR_ARG);
    assert_contains(err, path);
    assert_contains(err, text);
    assert_null(strchr(err, '\n'));
    assert_int_equal(m.ncores, 0);
}

static void foreign_xml(void **state)
{
    char path[] = "/tmp/rk_machine.XXXXXX";
    FILE *f;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    check_refused("/nowhere/machine.xml", "No such file");
    check_refused("/tmp", "Is a directory");
    check_refused(path, "empty");
    f = fdopen(fd, "w");
    assert_non_null(f);
    fprintf(f, "<?xml version=\"1.0\"?><system version=\"1\"><cpu numaid=\"0\"/></system>\n");
    assert_int_equal(fclose(f), 0);
    check_refused(path, "not of hwloc");
    unlink(path);
}

/* NUMA nodes inside a package keep their own cores. */
static void nodes_of_package(void **state)
{
    hwloc_topology_t t;
    hwloc_obj_t o = NULL;
    int nodes = 0;

    (void)state;
    if (rk_topo_units() < 2)
        skip();
    setenv("HWLOC_SYNTHETIC", "package:1 group:64 [numa] core:1 pu:1", 1);
    assert_int_equal(rk_topo_load(true, &t), RANK_OK);
    unsetenv("HWLOC_SYNTHETIC");
    while ((o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o))) {
        assert_int_equal(hwloc_bitmap_weight(o->cpuset), 1);
        nodes++;
    }
    assert_true(nodes >= 2);
    hwloc_topology_destroy(t);
}

/* Only that it is complete: this machine may have any devices. */
static void this_machine(void **state)
{
    struct rk_machine m;
    char err[256] = "";
    uint32_t allowed = 0;

    (void)state;
    setenv("HWLOC_COMPONENTS", "-pci", 1); /* libpciaccess, which it loads and unloads, keeps some memory */
    if (rk_machine_load(NULL, &m, err, sizeof(err)))
        fail_msg("%s", err);
    unsetenv("HWLOC_COMPONENTS");
    for (uint32_t i = 0; i < m.ncores; i++)
        allowed += m.core[i].allowed;
    for (uint32_t i = 0; i < m.ncores; i++)
        assert_true(m.core[i].cpuset || !m.core[i].allowed);
    assert_true(allowed > 0 && allowed <= rk_topo_units());
    for (uint32_t i = 0; i < m.nnics; i++)
        assert_true(*m.nic[i].name && rk_nic_rate(&m.nic[i]) > 0);
    rk_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lassen),       cmocka_unit_test(corona),      cmocka_unit_test(g4dn),
        cmocka_unit_test(classes),      cmocka_unit_test(paths),       cmocka_unit_test(nvlinks),
        cmocka_unit_test(first_format), cmocka_unit_test(foreign_xml), cmocka_unit_test(this_machine),
        cmocka_unit_test(nodes_of_package),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
