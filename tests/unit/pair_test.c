/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair_test.c: pair ranks with devices on recorded and random machines.
 *
 * The recorded ones are compared with the choices of LLNL's mpibind (test-suite/expected). The random ones are compared
 * with all possible assignments, and checked for the properties that pair.h promises.
 */
#include "lib/topo/pair_request.h"
#include "tests/unit/machine_xml.h"

#include <time.h>

static void pair_ok(const struct rk_machine *m, const struct rk_pair_request *rq, struct rk_pairing *out)
{
    char err[256] = "";

    if (rk_pair(m, rq, out, err, sizeof(err)))
        fail_msg("%s", err);
}

static void check_gpus(const struct rk_pairing *p, uint32_t rank, const char *wanted)
{
    char text[256] = "";
    size_t len = 0;

    for (uint32_t i = 0; i < p->rank[rank].ngpus; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", i ? " " : "", p->rank[rank].gpu[i].device);
    assert_string_equal(text, wanted);
}

static const char *first_nic(const struct rk_machine *m, const struct rk_pairing *p, uint32_t rank)
{
    return m->nic[p->rank[rank].nic[0].device].name;
}

static uint32_t core_list[4096];
static const uint32_t *cores_from(uint32_t first)
{
    for (uint32_t i = 0; i < 4096; i++)
        core_list[i] = i;
    return core_list + first;
}

/* ------------------------------------------------------------ recorded */

static void lassen(void **state)
{
    struct rk_pair_request rq = {.ranks = 2, .gpus = {.per_rank = 2}};
    struct rk_pair_cores placed[40];
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    recorded_machine(&m, "coral-lassen");
    pair_ok(&m, &rq, &p); /* mpibind: 0-1 | 2-3 */
    check_gpus(&p, 0, "0 1");
    check_gpus(&p, 1, "2 3");
    assert_int_equal(p.rank[0].core[0], 0);
    assert_int_equal(p.rank[0].ncores, 20);
    assert_int_equal(p.rank[1].core[0], 20);
    assert_string_equal(first_nic(&m, &p, 0), "mlx5_0");
    assert_string_equal(first_nic(&m, &p, 1), "mlx5_2");
    assert_int_equal(p.rank[0].nic[0].path, RK_PATH_NODE);
    rk_pair_free(&p);

    for (uint32_t i = 0; i < 2; i++)
        placed[i] = (struct rk_pair_cores){cores_from(20 * (1 - i)), 20};
    rq.placed = placed;
    pair_ok(&m, &rq, &p); /* the other way round by their cores */
    check_gpus(&p, 0, "2 3");
    check_gpus(&p, 1, "0 1");
    rk_pair_free(&p);

    for (uint32_t i = 0; i < 40; i++)
        placed[i] = (struct rk_pair_cores){cores_from(i), 1};
    rq = (struct rk_pair_request){.ranks = 40};
    for (int given = 0; given < 2; given++) {
        pair_ok(&m, &rq, &p); /* mpibind: ten to a GPU */
        for (uint32_t i = 0; i < 40; i++) {
            assert_int_equal(p.rank[i].gpu[0].device, i / 10);
            assert_int_equal(p.rank[i].core[0], i);
            assert_int_equal(p.rank[i].gpu[0].path, RK_PATH_NODE);
            /* Two ports of one card are as near: ranks alternate. */
            assert_int_equal(p.rank[i].nic[0].device, (i < 20 ? 0 : 4) + i % 2);
        }
        rk_pair_free(&p);
        rq.placed = placed;
    }
    rk_machine_free(&m);
}

/* mpibind, a rank a NUMA node: -,0,1,-,-,2,-,3. Here the others share, in their package. */
static void corona(void **state)
{
    static const uint32_t wanted[] = {0, 0, 1, 1, 2, 2, 3, 3};
    struct rk_pair_cores placed[8];
    struct rk_pair_request rq = {.ranks = 8, .placed = placed};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    recorded_machine(&m, "epyc-corona");
    for (uint32_t i = 0; i < 8; i++)
        placed[i] = (struct rk_pair_cores){cores_from(6 * i), 6};
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 8; i++) {
        bool near = i == 1 || i == 2 || i == 5 || i == 7;
        assert_int_equal(p.rank[i].gpu[0].device, wanted[i]);
        assert_int_equal(p.rank[i].gpu[0].path, near ? RK_PATH_NODE : RK_PATH_SYS);
        assert_string_equal(first_nic(&m, &p, i), "mlx5_0");
    }
    rk_pair_free(&p);

    rq = (struct rk_pair_request){.ranks = 4, .nics = {.bind = RK_PAIR_NONE}};
    pair_ok(&m, &rq, &p); /* the cores follow the GPUs */
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(p.rank[i].gpu[0].device, i);
        assert_int_equal(p.rank[i].ncores, 6);
        assert_int_equal(p.rank[i].gpu[0].path, RK_PATH_NODE);
        assert_int_equal(p.rank[i].nnics, 0);
    }
    rk_pair_free(&p);
    rq.ranks = 48; /* more than cores beside the GPUs: those of the package count */
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 48; i++)
        assert_true(p.rank[i].ncores == 1 && p.rank[i].core[0] == i);
    rk_pair_free(&p);
    rk_machine_free(&m);
}

static void one_rdma_device(void **state)
{
    struct rk_pair_request rq = {.ranks = 8};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    recorded_machine(&m, "g4dnmetal");
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(p.rank[i].gpu[0].device, i);
        assert_string_equal(first_nic(&m, &p, i), "rdmap197s0");
        assert_int_equal(p.rank[i].nic[0].path, i < 4 ? RK_PATH_SYS : RK_PATH_NODE);
    }
    rk_pair_free(&p);
    rk_machine_free(&m);
}

/* Eight GPUs and eight NICs behind four switches, as a cloud's NCCL topology file has them; Ethernet first in PCI order. */
static void behind_switches(void **state)
{
#define PAIRS SWITCH("(G)(M)(G)(M)")
    static const char *const lines[] = {"[(E)][" PAIRS "][" PAIRS "]", "[" PAIRS "][" PAIRS "]"};
    struct rk_pair_request rq = {.ranks = 8};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    make_machine(&m, 2, 2, 16, lines);
    assert_int_equal(m.ngpus, 8);
    assert_int_equal(m.nnics, 9);
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(p.rank[i].gpu[0].device, i);
        assert_int_equal(p.rank[i].nic[0].device, i + 1);
        assert_int_equal(p.rank[i].nic[0].path, RK_PATH_PIX);
        assert_int_equal(p.rank[i].ncores, 4);
    }
    rk_pair_free(&p);
    rq = (struct rk_pair_request){.ranks = 4, .gpus = {.per_rank = 2}, .nics = {.per_rank = 2}};
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(p.rank[i].gpu[1].device, 2 * i + 1);
        assert_int_equal(p.rank[i].nic[1].device, 2 * i + 2);
    }
    rk_pair_free(&p);
    rk_machine_free(&m);
}

/* ----------------------------------------------------------------- rules */

static void no_devices(void **state)
{
    static const char *const bare[] = {"", ""}, *const gpus[] = {"[(G)(G)]", ""}, *const nics[] = {"[(M)]", "[(E)(M)]"};
    struct rk_pair_request rq = {.ranks = 4};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    make_machine(&m, 2, 2, 2, bare);
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(p.rank[i].ngpus == 0 && p.rank[i].nnics == 0 && p.rank[i].ncores == 1 && p.rank[i].core[0] == i);
    rk_pair_free(&p);
    rk_machine_free(&m);

    make_machine(&m, 2, 2, 2, gpus);
    pair_ok(&m, &rq, &p);
    check_gpus(&p, 1, "0");
    check_gpus(&p, 2, "1");
    assert_int_equal(p.rank[2].gpu[0].reason, RK_PAIR_SHARED);
    assert_int_equal(p.rank[2].nnics, 0);
    rk_pair_free(&p);
    rk_machine_free(&m);

    make_machine(&m, 2, 2, 2, nics);
    pair_ok(&m, &rq, &p); /* by the cores */
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(p.rank[i].nic[0].device, i < 2 ? 0 : 2);
    assert_int_equal(p.rank[0].nic[0].reason, RK_PAIR_NEAREST);
    rk_pair_free(&p);
    rk_machine_free(&m);
}

/* A NIC of twice the bandwidth has twice the ranks. Ethernet is never taken before RDMA. */
static void bandwidth(void **state)
{
    static const char *const lines[] = {"[(E)(M)(M)]"};
    struct rk_pair_request rq = {.ranks = 9};
    uint32_t load[3] = {0};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    make_machine(&m, 1, 1, 16, lines);
    m.nic[1].port_gbs = 12.5;
    m.nic[2].port_gbs = 25;
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 9; i++)
        load[p.rank[i].nic[0].device]++;
    assert_int_equal(load[0], 0);
    assert_int_equal(load[1], 3);
    assert_int_equal(load[2], 6);
    rk_pair_free(&p);
    rk_machine_free(&m);
}

/* One card with a port for each: InfiniBand is as near as RoCE. A RoCE port that is nearer is taken. */
static void two_kinds_of_port(void **state)
{
    static const char *const one_card[] = {"[(E)((G)(RM))]"}, *const nearer[] = {"[((G)(R))(M)(E)]"};
    struct rk_pair_request rq = {.ranks = 3};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    for (int k = 0; k < 2; k++) {
        make_machine(&m, 1, 1, 4, k ? nearer : one_card);
        assert_int_equal(m.nnics, 3);
        pair_ok(&m, &rq, &p);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(m.nic[p.rank[i].nic[0].device].kind, k ? RK_NIC_ROCE : RK_NIC_FABRIC);
        rk_pair_free(&p);
        rk_machine_free(&m);
    }
}

static void check_refused(const struct rk_machine *m, struct rk_pair_request rq, const char *text)
{
    struct rk_pairing p = {.ranks = 77};
    char err[256] = "";

    rq.ranks = rq.ranks ? rq.ranks : 2;
    assert_int_equal(rk_pair(m, &rq, &p, err, sizeof(err)), RANK_ERR_ARG);
    assert_string_equal(err, text);
    assert_int_equal(p.ranks, 77);
}

static void lists(void **state)
{
    static const char *const lines[] = {"[(G)(M)(G)(M)(G)]"};
    static const uint32_t good[] = {2, 0}, twice[] = {1, 0, 1}, unknown[] = {0, 3};
    static const bool hidden[] = {false, true, false};
    struct rk_pair_request rq = {.ranks = 3, .gpus = {.bind = RK_PAIR_MAP, .map = good, .nmap = 2}};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    make_machine(&m, 1, 1, 4, lines);
    pair_ok(&m, &rq, &p);
    check_gpus(&p, 0, "2");
    check_gpus(&p, 1, "0");
    check_gpus(&p, 2, "2");
    assert_int_equal(p.rank[0].gpu[0].reason, RK_PAIR_LISTED);
    rk_pair_free(&p);
    rq = (struct rk_pair_request){.ranks = 2, .gpus = {.hidden = hidden}, .nics = {.bind = RK_PAIR_NONE}};
    pair_ok(&m, &rq, &p);
    check_gpus(&p, 1, "2");
    rk_pair_free(&p);
    check_refused(&m, (struct rk_pair_request){.gpus = {.bind = RK_PAIR_MAP, .map = twice, .nmap = 3}},
                  "GPU 1 is listed twice");
    check_refused(&m, (struct rk_pair_request){.gpus = {.bind = RK_PAIR_MAP, .map = unknown, .nmap = 2}},
                  "GPU 3 is not there: the machine has 3");
    check_refused(&m, (struct rk_pair_request){.nics = {.bind = RK_PAIR_MAP, .map = good, .nmap = 2}},
                  "NIC 2 is not there: the machine has 2");
    check_refused(&m, (struct rk_pair_request){.gpus = {.bind = RK_PAIR_MAP, .map = unknown, .nmap = 1, .per_rank = 2}},
                  "2 GPUs for each rank are too many: there is 1");
    check_refused(&m, (struct rk_pair_request){.gpus = {.bind = RK_PAIR_MAP, .map = twice, .nmap = 2, .hidden = hidden}},
                  "GPU 1 is hidden from this job");
    check_refused(&m, (struct rk_pair_request){.gpus = {.per_rank = 3, .hidden = hidden}},
                  "3 GPUs for each rank are too many: there are 2");
    rk_machine_free(&m);
}

/* What CUDA does with the value: it stops at the first word that is no GPU. shown: a character for each GPU. */
static void check_shown(const char *visible, const char *shown)
{
    static const char *const lines[] = {"[(G)(G)(G)]"};
    const struct rk_pair_words words = {.gpus = "", .nics = "", .visible = visible};
    struct rk_pair_prepared prepared;
    struct rk_machine m;
    char err[256] = "", got[4] = "";

    make_machine(&m, 1, 1, 4, lines);
    for (uint32_t i = 0; i < m.ngpus; i++)
        snprintf(m.gpu[i].uuid, sizeof(m.gpu[i].uuid), "GPU-%u7", i);
    assert_int_equal(rk_pair_request_make(&words, "this host", &m, &prepared, err, sizeof(err)), RANK_OK);
    for (uint32_t i = 0; i < 3; i++)
        got[i] = prepared.rq.gpus.hidden && prepared.rq.gpus.hidden[i] ? '-' : 'x';
    assert_string_equal(got, shown);
    assert_string_equal(err, "");
    rk_pair_request_clear(&prepared);
    rk_machine_free(&m);
}

static void visible_words(void **state)
{
    (void)state;
    check_shown(NULL, "xxx");
    check_shown("2,0", "x-x");
    check_shown("GPU-17", "-x-");
    for (const char *const *none = (const char *const[]){"", "-1", "NoDevFiles", ",1", "3,1", "GPU-", NULL}; *none; none++)
        check_shown(*none, "---");
    check_shown("0,-1,2", "x--");
    check_shown("1,1,2", "-x-");
    check_shown("2,GPU-3,0", "--x");
}

static void check_reasons(const struct rk_machine *m, struct rk_pair_request rq, const char *wanted)
{
    static const char letters[] = {[RK_PAIR_IN_ORDER] = 'i', [RK_PAIR_SHARED] = 's', [RK_PAIR_NEAREST] = 'n',
                                   [RK_PAIR_EQUAL_LOADS] = 'e', [RK_PAIR_LISTED] = 'l', [RK_PAIR_ONLY] = 'o'};
    struct rk_pairing p;
    char got[16] = "";
    size_t len = 0;

    rq.nics.bind = RK_PAIR_NONE;
    pair_ok(m, &rq, &p);
    for (uint32_t r = 0; r < p.ranks; r++) {
        for (uint32_t i = 0; i < p.rank[r].ngpus; i++)
            got[len++] = letters[p.rank[r].gpu[i].reason];
    }
    assert_string_equal(got, wanted);
    rk_pair_free(&p);
}

static void reasons(void **state)
{
    static const char *const lines[] = {"[(G)]", "[(G)]"};
    static const bool hidden[] = {true, false};
    static const uint32_t list[] = {1};
    struct rk_pair_cores placed[3];
    struct rk_machine m;

    (void)state;
    make_machine(&m, 2, 2, 4, lines);
    check_reasons(&m, (struct rk_pair_request){.ranks = 2}, "ii");
    check_reasons(&m, (struct rk_pair_request){.ranks = 3}, "sss");
    check_reasons(&m, (struct rk_pair_request){.ranks = 2, .gpus = {.hidden = hidden}}, "oo");
    check_reasons(&m, (struct rk_pair_request){.ranks = 2, .gpus = {.bind = RK_PAIR_MAP, .map = list, .nmap = 1}}, "ll");
    for (uint32_t i = 0; i < 3; i++)
        placed[i] = (struct rk_pair_cores){cores_from(0), 4};
    check_reasons(&m, (struct rk_pair_request){.ranks = 2, .placed = placed}, "ne");
    check_reasons(&m, (struct rk_pair_request){.ranks = 1, .placed = placed, .gpus = {.per_rank = 2}}, "nn");
    check_reasons(&m, (struct rk_pair_request){.ranks = 2, .placed = placed, .gpus = {.hidden = hidden}}, "oo");
    rk_machine_free(&m);
}

static void check_device_numbers(const char *text, uint32_t n, const uint32_t *wanted)
{
    uint32_t *list = NULL, count = 0;

    assert_int_equal(rk_device_list(text, &list, &count), n > 0);
    assert_int_equal(count, n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(list[i], wanted[i]);
    free(list);
}

static void list_text(void **state)
{
    (void)state;
    check_device_numbers("0", 1, (const uint32_t[]){0});
    check_device_numbers("7,0-2,1023", 5, (const uint32_t[]){7, 0, 1, 2, 1023});
    for (const char *const *bad = (const char *const[]){"", ",", "1,", ",1", "a", "1a", "2-1", "1-", "-1", "1024", "0x1",
                                                        "99999999999999999999", "0-1023,5", " 1", NULL}; *bad; bad++)
        check_device_numbers(*bad, 0, NULL);
}

/* Cores that the process may not use are not chosen; nor does an empty node keep a GPU from having a rank. */
static void restricted(void **state)
{
    struct rk_pair_request rq = {.ranks = 8};
    struct rk_pairing p;
    struct rk_machine m;

    (void)state;
    recorded_machine(&m, "g4dnmetal");
    for (uint32_t i = 0; i < m.ncores; i++)
        m.core[i].allowed = i >= 20 && i < 32; /* four of package 0, eight of package 1 */
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(p.rank[i].gpu[0].device, i);
        assert_int_equal(p.rank[i].ncores, i < 4 ? 1 : 2);
        assert_int_equal(p.rank[i].core[0], i < 4 ? 20 + i : 24 + 2 * (i - 4));
    }
    rk_pair_free(&p);
    for (uint32_t i = 0; i < 24; i++)
        m.core[i].allowed = false;
    pair_ok(&m, &rq, &p);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(p.rank[i].core[0], 24 + i);
        assert_int_equal(p.rank[i].gpu[0].path, i < 4 ? RK_PATH_SYS : RK_PATH_NODE);
    }
    rk_pair_free(&p);
    rk_machine_free(&m);
}

/* ----------------------------------------------------------------- random */

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % n);
}

enum { CORES = 32, DEVICES = 6, MAX_RANKS = 24, BRIDGES = 12 };

struct random_case {
    struct rk_machine m;
    struct rk_core core[CORES];
    struct rk_numa numa[8];
    struct rk_core_range package[4];
    struct rk_bridge bridge[BRIDGES];
    struct rk_device gpu[DEVICES], nic[DEVICES];
    struct rk_pair_cores placed[MAX_RANKS];
    uint32_t list[MAX_RANKS][CORES];
    struct rk_pair_request rq;
};

/* A device is beside a node, or sometimes beside a package or the machine. */
static void random_device(struct random_case *c, struct rk_device *d, uint32_t i)
{
    uint32_t near = random_below(8), node = random_below(c->m.nnumas);

    *d = (struct rk_device){.address = i, .bridge = random_below(4) ? random_below(BRIDGES) : RK_TOPO_NONE,
                            .link_gbs = random_below(3) ? 16 : 32,
                            .kind = (enum rk_nic_kind)random_below(3)};
    d->near = near == 0 ? (struct rk_core_range){0, c->m.ncores}
              : near == 1 ? c->package[c->core[c->numa[node].near.first].package]
                          : c->numa[node].near;
    snprintf(d->name, sizeof(d->name), "d%u", i);
}

static void random_machine(struct random_case *c)
{
    uint32_t packages = 1 + random_below(4), each = 1 + random_below(2), cores = 1 + random_below(4);

    memset(c, 0, sizeof(*c));
    c->m = (struct rk_machine){.core = c->core, .numa = c->numa, .package = c->package, .bridge = c->bridge,
                               .gpu = c->gpu, .nic = c->nic, .npackages = packages, .nnumas = packages * each,
                               .ncores = packages * each * cores, .nbridges = BRIDGES};
    for (uint32_t i = 0; i < c->m.nnumas; i++)
        c->numa[i] = (struct rk_numa){i, {i * cores, cores}};
    for (uint32_t i = 0; i < packages; i++)
        c->package[i] = (struct rk_core_range){i * each * cores, each * cores};
    for (uint32_t i = 0; i < c->m.ncores; i++)
        c->core[i] = (struct rk_core){i, i / cores, i / cores / each, true, random_below(4) > 0};
    c->core[random_below(c->m.ncores)].allowed = true;
    for (uint32_t i = 0; i < BRIDGES; i++) /* three host bridges, and trees below */
        c->bridge[i] = (struct rk_bridge){i < 3 ? RK_TOPO_NONE : random_below(i), i < 3, random_below(5) == 0};
    c->m.ngpus = random_below(DEVICES + 1);
    c->m.nnics = random_below(DEVICES + 1);
    for (uint32_t i = 0; i < c->m.ngpus; i++)
        random_device(c, &c->gpu[i], i);
    for (uint32_t i = 0; i < c->m.nnics; i++)
        random_device(c, &c->nic[i], i);
}

static void random_request(struct random_case *c, uint32_t ranks)
{
    bool placed = random_below(2);

    c->rq = (struct rk_pair_request){.ranks = 1 + random_below(ranks)};
    if (random_below(2) && c->m.ngpus)
        c->rq.gpus.per_rank = 1 + random_below(c->m.ngpus);
    if (random_below(2) && c->m.nnics)
        c->rq.nics.per_rank = 1 + random_below(c->m.nnics);
    for (uint32_t r = 0; placed && r < c->rq.ranks; r++) {
        uint32_t n = random_below(6) ? 1 + random_below(c->m.ncores) : 0, first = random_below(c->m.ncores);
        n = random_below(2) && n ? 1 + random_below(2) : n;
        for (uint32_t i = 0; i < n; i++)
            c->list[r][i] = (first + i) % c->m.ncores;
        c->placed[r] = (struct rk_pair_cores){c->list[r], n < c->m.ncores ? n : c->m.ncores};
    }
    c->rq.placed = placed ? c->placed : NULL;
}

static int64_t far_from(const struct random_case *c, uint32_t rank, uint32_t gpu)
{
    return rk_pair_core_distance(&c->m, &c->placed[rank], &c->gpu[gpu]);
}

/* Loads are equal within one; the GPUs of a rank differ. */
static void check_loads(const struct random_case *c, const struct rk_pairing *p)
{
    uint32_t load[DEVICES] = {0}, least = UINT32_MAX, most = 0;

    for (uint32_t r = 0; r < p->ranks; r++) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < p->rank[r].ngpus; i++) {
            assert_false(seen & 1u << p->rank[r].gpu[i].device);
            seen |= 1u << p->rank[r].gpu[i].device;
            load[p->rank[r].gpu[i].device]++;
        }
    }
    for (uint32_t g = 0; g < c->m.ngpus; g++) {
        least = load[g] < least ? load[g] : least;
        most = load[g] > most ? load[g] : most;
    }
    assert_true(c->m.ngpus == 0 || most <= least + 1);
}

/* No exchange of a GPU between two ranks brings one nearer and none farther. */
static void check_exchanges(const struct random_case *c, const struct rk_pairing *p)
{
    uint32_t n = p->rank[0].ngpus;

    for (uint32_t i = 0; i < p->ranks * n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            uint32_t a = i / n, b = j / n, x = p->gpus[i].device, y = p->gpus[j].device;
            int64_t ax = far_from(c, a, x), ay = far_from(c, a, y), by = far_from(c, b, y), bx = far_from(c, b, x);
            bool has = false;
            for (uint32_t k = 0; k < n; k++)
                has = has || p->rank[a].gpu[k].device == y || p->rank[b].gpu[k].device == x;
            assert_true(has || ay > ax || bx > by || (ay == ax && bx == by));
        }
    }
}

/* Replay the ranks: each NIC is of the best kind, nearest, least loaded for its bandwidth, first. */
static void check_nics(const struct random_case *c, const struct rk_pairing *p)
{
    uint64_t load[DEVICES] = {0};

    for (uint32_t r = 0; r < p->ranks; r++) {
        const struct rk_pair_rank *rank = &p->rank[r];
        const struct rk_pair_cores cores = {rank->core, rank->ncores};
        uint32_t mine = 0;
        for (uint32_t i = 0; i < rank->nnics; i++) {
            uint32_t has = rank->nic[i].device;
            for (uint32_t n = 0; n < c->m.nnics; n++) {
                int64_t far[2];
                uint64_t x = (load[has] + 1) * rk_nic_rate(&c->nic[n]), y = (load[n] + 1) * rk_nic_rate(&c->nic[has]);
                for (int k = 0; k < 2; k++) {
                    const struct rk_device *nic = &c->nic[k ? n : has];
                    far[k] = rank->ngpus ? rk_path_distance(&c->m, &c->gpu[rank->gpu[i % rank->ngpus].device], nic)
                                         : rk_pair_core_distance(&c->m, &cores, nic);
                    far[k] = 2 * far[k] + (nic->kind == RK_NIC_ETHERNET ? 8 * RK_PAIR_FAR : nic->kind == RK_NIC_ROCE);
                }
                if (n == has || mine & 1u << n)
                    continue;
                assert_true(far[0] < far[1] || (far[0] == far[1] && (x < y || (x == y && has < n))));
            }
            mine |= 1u << has;
            load[has]++;
        }
    }
}

/* Chosen cores are allowed ones, each rank has some, and while there are enough none has those of another one. */
static void check_cores(const struct random_case *c, const struct rk_pairing *p)
{
    uint32_t ranks_on[CORES] = {0};
    bool nodes = true;

    for (uint32_t g = 0; g < c->m.ngpus; g++)
        nodes = nodes && c->gpu[g].near.n == c->numa[0].near.n;
    for (uint32_t r = 0; r < p->ranks; r++) {
        assert_true(p->rank[r].ncores > 0);
        for (uint32_t i = 0; i < p->rank[r].ncores; i++) {
            assert_true(c->core[p->rank[r].core[i]].allowed);
            ranks_on[p->rank[r].core[i]]++;
        }
    }
    for (uint32_t i = 0, allowed = 0; i < c->m.ncores; i++) {
        for (uint32_t k = allowed = 0; k < c->m.ncores; k++)
            allowed += c->core[k].allowed;
        assert_true(!nodes || p->ranks > allowed || ranks_on[i] <= 1);
    }
}

static void properties(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 5000; n++) {
        struct random_case c;
        struct rk_pairing p, again;

        seed = n;
        random_machine(&c);
        random_request(&c, MAX_RANKS);
        pair_ok(&c.m, &c.rq, &p);
        check_loads(&c, &p);
        if (c.rq.placed && c.m.ngpus)
            check_exchanges(&c, &p);
        check_nics(&c, &p);
        if (!c.rq.placed)
            check_cores(&c, &p);
        pair_ok(&c.m, &c.rq, &again);
        for (uint32_t r = 0; r < p.ranks; r++) {
            assert_memory_equal(p.rank[r].gpu, again.rank[r].gpu, p.rank[r].ngpus * sizeof(*p.gpus));
            assert_memory_equal(p.rank[r].nic, again.rank[r].nic, p.rank[r].nnics * sizeof(*p.nics));
        }
        rk_pair_free(&p);
        rk_pair_free(&again);
    }
}

/* Try every set of GPUs for each rank from this one on; returns the least total distance with equal loads. */
static int64_t best_total(const struct random_case *c, uint32_t rank, uint32_t each, uint32_t *load)
{
    uint32_t all = c->rq.ranks * each, most = (all + c->m.ngpus - 1) / c->m.ngpus, at_most = 0;
    int64_t best = INT64_MAX;

    for (uint32_t g = 0; g < c->m.ngpus; g++)
        at_most += load[g] == most;
    if (all % c->m.ngpus && at_most > all % c->m.ngpus)
        return INT64_MAX;
    if (rank == c->rq.ranks)
        return 0;
    for (uint32_t set = 1; set < 1u << c->m.ngpus; set++) {
        int64_t sum = 0, rest;
        bool fits = (uint32_t)__builtin_popcount(set) == each;
        for (uint32_t g = 0; g < c->m.ngpus; g++)
            fits = fits && (!(set & 1u << g) || load[g] < most);
        if (!fits)
            continue;
        for (uint32_t g = 0; g < c->m.ngpus; g++) {
            if (set & 1u << g) {
                load[g]++;
                sum += far_from(c, rank, g);
            }
        }
        rest = best_total(c, rank + 1, each, load);
        for (uint32_t g = 0; g < c->m.ngpus; g++)
            load[g] -= set >> g & 1;
        if (rest < INT64_MAX && sum + rest < best)
            best = sum + rest;
    }
    return best;
}

static void least_total(void **state)
{
    (void)state;
    for (uint64_t n = 1, done = 0; done < 1500; n++) {
        struct random_case c;
        struct rk_pairing p;
        uint32_t load[DEVICES] = {0};
        int64_t total = 0;

        seed = n;
        random_machine(&c);
        random_request(&c, 6);
        if (!c.rq.placed || c.m.ngpus < 2 || c.m.ngpus > 3)
            continue;
        pair_ok(&c.m, &c.rq, &p);
        for (uint32_t i = 0; i < p.ranks * p.rank[0].ngpus; i++)
            total += far_from(&c, i / p.rank[0].ngpus, p.gpus[i].device);
        assert_int_equal(total, best_total(&c, 0, p.rank[0].ngpus, load));
        rk_pair_free(&p);
        done++;
    }
}

/* ------------------------------------------------------------------- time */

enum { MANY = 1024, MOST_MS = 50 };

/* The worst case: each rank at distances of its own. */
static void many_ranks(void **state)
{
    static const char *const lines[] = {"[(G)(M)(G)(M)(G)(M)(G)(M)]", "[(G)(M)(G)(M)(G)(M)(G)(M)]",
                                        "[(G)(M)(G)(M)(G)(M)(G)(M)]", "[(G)(M)(G)(M)(G)(M)(G)(M)]"};
    static struct rk_pair_cores placed[MANY];
    static uint32_t cores[MANY][128];
    struct rk_pair_request rq = {.ranks = MANY};
    struct rk_machine m;

    (void)state;
    make_machine(&m, 2, 4, 32, lines);
    seed = 1;
    for (uint32_t r = 0; r < MANY; r++) {
        placed[r] = (struct rk_pair_cores){cores[r], 1 + random_below(128)};
        for (uint32_t i = 0, first = random_below(128); i < placed[r].n; i++)
            cores[r][i] = (first + i * 7) % 128;
    }
    for (int given = 0; given < 2; given++) {
        struct timespec from, to;
        struct rk_pairing p;
        int64_t us, least = INT64_MAX;
        for (int i = 0; i < 3; i++) {
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
            pair_ok(&m, &rq, &p);
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
            us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
            least = us < least ? us : least;
            assert_int_equal(p.ranks, MANY);
            rk_pair_free(&p);
        }
        printf("# %d ranks, 16 GPUs and NICs, cores %s: %lld us\n", MANY, given ? "given" : "chosen", (long long)least);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        assert_true(least < MOST_MS * 1000);
#endif
        rq.placed = placed;
    }
    rk_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lassen),     cmocka_unit_test(corona),     cmocka_unit_test(one_rdma_device),
        cmocka_unit_test(behind_switches), cmocka_unit_test(no_devices), cmocka_unit_test(bandwidth),
        cmocka_unit_test(two_kinds_of_port),
        cmocka_unit_test(lists),      cmocka_unit_test(list_text), cmocka_unit_test(restricted), cmocka_unit_test(properties),
        cmocka_unit_test(visible_words), cmocka_unit_test(reasons),
        cmocka_unit_test(least_total), cmocka_unit_test(many_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
