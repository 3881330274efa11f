/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_select_test.c: select algorithms by the table, the rules and RANK_COLL. */
#include "tests/unit/unit.h"

#include "collectives/coll.h"
#include "collectives/select.h"
#include "collectives/shm/arena.h"
#include "collectives/state.h"
#include "lib/boot/boot.h"
#include "lib/base/conf.h"

/* Without RANK_COLL; main fills it. */
static struct rk_forced nothing;

static struct rk_case a_case(int kind, int size, size_t bytes, bool one_node, bool arena)
{
    return (struct rk_case){.kind = (enum rk_coll_kind)kind, .mem = RANK_MEM_HOST,
                            .one_node = one_node, .arena = arena, .cells = one_node, .size = size,
                            .count = (int64_t)bytes, .bytes = bytes};
}

static void table(void **state)
{
    const struct rk_cost_model m = {1, 0.001, 0.0005};

    (void)state;
    for (int k = 0; k < RK_COLL_COUNT; k++)
        assert_true(strlen(rk_coll_name[k]) > 0);
    for (int i = 0; i < rk_nalgos; i++) {
        const struct rk_algo *a = &rk_algos[i];
        assert_ptr_equal(rk_algo_find(a->kind, a->name, strlen(a->name)), a); /* names are unique */
        assert_true(strlen(a->why) > 0);
        assert_int_equal(a->build == NULL, (a->needs & RK_NEEDS_ARENA) != 0);
        for (int p = 2; p <= 64; p++) {
            assert_true(a->cost(&m, p, 8) > 0);
            assert_true(a->cost(&m, p, 1 << 20) >= a->cost(&m, p, 8));
        }
    }
    assert_null(rk_algo_find(RK_COLL_BCAST, "ring", 4));
    assert_null(rk_algo_find(RK_COLL_BCAST, "binomia", 7));
}

/* The formulas prefer each algorithm where it belongs. */
static void costs_order(void **state)
{
    const struct rk_cost_model m = {1, 0.001, 0.0005};
    const struct rk_algo *doubling = rk_algo_find(RK_COLL_ALLREDUCE, "recursive_doubling", 18);
    const struct rk_algo *ring = rk_algo_find(RK_COLL_ALLREDUCE, "ring", 4);
    const struct rk_algo *binomial = rk_algo_find(RK_COLL_BCAST, "binomial", 8);
    const struct rk_algo *scatter = rk_algo_find(RK_COLL_BCAST, "scatter_ring", 12);

    (void)state;
    for (int p = 8; p <= 64; p++) {
        assert_true(doubling->cost(&m, p, 8) < ring->cost(&m, p, 8));
        assert_true(doubling->cost(&m, p, 1 << 24) > ring->cost(&m, p, 1 << 24));
        assert_true(binomial->cost(&m, p, 8) < scatter->cost(&m, p, 8));
        assert_true(binomial->cost(&m, p, 1 << 24) > scatter->cost(&m, p, 1 << 24));
    }
}

static void rules(void **state)
{
    bool catch_all[RK_COLL_COUNT] = {false};

    (void)state;
    for (int i = 0; i < rk_nrules; i++) {
        const struct rk_rule *r = &rk_rules[i];
        const struct rk_algo *a = rk_algo_find(r->kind, r->algo, strlen(r->algo));
        assert_non_null(a);
        assert_true(strlen(r->why) > 0);
        /* Straight code is for one node. */
        assert_true(!(a->needs & RK_NEEDS_ARENA) || r->nodes == RK_NODES_ONE);
        if (r->bytes_max == RK_ANY_BYTES && r->ranks_max == 0 && !a->needs)
            catch_all[r->kind] = true;
        if (r->bytes_max == RK_ANY_BYTES && r->ranks_max == 0)
            catch_all[r->kind] = catch_all[r->kind] || !(a->needs & RK_NEEDS_POW2);
    }
    for (int k = 0; k < RK_COLL_COUNT; k++)
        assert_true(catch_all[k]);
}

static void something_for_everything(void **state)
{
    (void)state;
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        for (int size = 1; size <= 64; size++) {
            for (size_t bytes = 1; bytes < (size_t)1 << 34; bytes = bytes * 3 + 1) {
                for (int flags = 0; flags < 4; flags++) {
                    struct rk_case c = a_case(k, size, bytes, flags & 1, flags == 3);
                    const char *why = NULL;
                    const struct rk_algo *a = rk_select(&nothing, &c, &why);
                    assert_non_null(a);
                    assert_int_equal(a->kind, k);
                    assert_true(rk_algo_fits(a, &c));
                    assert_non_null(why);
                    if (!c.arena)
                        assert_non_null(a->build);
                }
            }
        }
    }
}

static void choices(void **state)
{
    struct rk_case c = a_case(RK_COLL_ALLREDUCE, 8, 8, true, true);

    (void)state;
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "shm");
    c.arena = false;
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "recursive_doubling");
    c.bytes = 64 << 10;
    c.count = 8 << 10;
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "direct");
    c.cells = false;
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "recursive_doubling");
    c.cells = true;
    c.count = 1; /* no cell holds such an element */
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "recursive_doubling");
    c.bytes = 64 << 20;
    c.count = 8 << 20;
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "direct");
    c.cells = false;
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "ring");
    c = a_case(RK_COLL_ALLGATHER, 7, 64, true, false);
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "bruck"); /* not a power of two */
    c.size = 8;
    assert_string_equal(rk_select(&nothing, &c, NULL)->name, "recursive_doubling");
}

/* An operation that is not commutative gets an algorithm that keeps the order. */
static void order_kept(void **state)
{
    struct rk_forced ring;

    (void)state;
    assert_int_equal(rk_forced_parse("allreduce:ring,reduce_scatter:pairwise", &ring), RANK_OK);
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        for (int size = 2; size <= 64; size++) {
            for (size_t bytes = 1; bytes < (size_t)1 << 34; bytes = bytes * 3 + 1) {
                struct rk_case c = a_case(k, size, bytes, size % 2, false);

                c.ordered = true;
                assert_false(rk_select(&nothing, &c, NULL)->needs & RK_NEEDS_COMMUTATIVE);
                assert_false(rk_select(&ring, &c, NULL)->needs & RK_NEEDS_COMMUTATIVE);
            }
        }
    }
}

/* With RANK_COLL_REPRODUCIBLE each sum has an algorithm of the one tree, and no straight code, whatever RANK_COLL is. */
static void balanced(void **state)
{
    struct rk_forced other;
    int kinds = 0;

    (void)state;
    assert_int_equal(rk_forced_parse("reduce:shm,allreduce:shm,allreduce:ring,reduce_scatter:pairwise", &other), RANK_OK);
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        if (!rk_coll_balances((enum rk_coll_kind)k))
            continue;
        kinds++;
        for (int size = 2; size <= 64; size++) {
            assert_int_equal(rk_select_shm_max(&other, (enum rk_coll_kind)k, RANK_MEM_HOST, size, true), -1);
            for (size_t bytes = 1; bytes < (size_t)1 << 34; bytes = bytes * 3 + 1) {
                struct rk_case c = a_case(k, size, bytes, bytes % 2, bytes % 2);

                c.ordered = c.balanced = true;
                assert_true(rk_select(&nothing, &c, NULL)->balanced);
                assert_true(rk_select(&other, &c, NULL)->balanced);
            }
        }
    }
    assert_true(kinds >= 3);
}

/* Where no rule applies, the cheapest algorithm that fits is selected. */
static void least_time(void **state)
{
    static const struct rk_algo unfit = {.name = "unfit", .min_count = INT64_MAX};
    struct rk_forced no_rules = {.npicks = 0};
    struct rk_case c;
    const char *why;

    (void)state;
    for (int i = 0; i < rk_nrules; i++)
        no_rules.rule[i] = &unfit;
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        for (int size = 2; size <= 64; size++) {
            for (size_t bytes = 1; bytes < (size_t)1 << 30; bytes = bytes * 5 + 1) {
                for (int flags = 0; flags < 4; flags++) {
                    const struct rk_cost_model *m = &rk_cost_models[flags & 1];
                    const struct rk_algo *a;

                    c = a_case(k, size, bytes, flags & 1, flags == 3);
                    c.mem = flags & 1 ? RANK_MEM_CUDA : RANK_MEM_HOST;
                    a = rk_select(&no_rules, &c, &why);
                    assert_true(rk_algo_fits(a, &c));
                    assert_string_equal(why, "no rule: least estimated time");
                    for (int i = 0; i < rk_nalgos; i++)
                        assert_true((int)rk_algos[i].kind != k || !rk_algo_fits(&rk_algos[i], &c) ||
                                    rk_algos[i].cost(m, size, (double)bytes) >= a->cost(m, size, (double)bytes));
                }
            }
        }
    }
    c = a_case(RK_COLL_ALLREDUCE, 16, 8, false, false);
    assert_string_equal(rk_select(&no_rules, &c, NULL)->name, "recursive_doubling");
    c.bytes = 64 << 20;
    assert_string_equal(rk_select(&no_rules, &c, NULL)->name, "rabenseifner");
    c.size = 15; /* folding moves the message twice more */
    assert_string_equal(rk_select(&no_rules, &c, NULL)->name, "ring");
}

/* Ranks that may have device memory run long blocks on devices, and others if RANK_COLL is set so. */
static void devices(void **state)
{
    static const struct {
        enum rk_coll_kind kind;
        int size;
        size_t bytes;
        bool on_device;
    } at[] = {
        {RK_COLL_ALLREDUCE, 8, 65535, false},        {RK_COLL_ALLREDUCE, 8, 65536, true}, {RK_COLL_ALLREDUCE, 9, 1 << 20, false},
        {RK_COLL_REDUCE_SCATTERV, 2, 1 << 20, true}, {RK_COLL_BCAST, 2, 32767, false},    {RK_COLL_BCAST, 64, 32768, true},
        {RK_COLL_ALLTOALL, 16, 1 << 30, true},       {RK_COLL_ALLTOALLV, 4, 0, true},    {RK_COLL_SCAN, 4, 1 << 20, false},
    };
    struct rk_forced forced, alone;

    (void)state;
    assert_int_equal(rk_forced_parse("allreduce:device,alltoallv:device,allreduce:ring", &forced), RANK_OK);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        for (int balanced = 0; balanced < 2; balanced++) {
            struct rk_case c = a_case(at[i].kind, at[i].size, at[i].bytes, true, true);

            assert_string_not_equal(rk_select(&nothing, &c, NULL)->name, "device");
            c.mem = RANK_MEM_CUDA;
            c.ordered = c.balanced = balanced && rk_coll_balances(at[i].kind);
            assert_int_equal(strcmp(rk_select(&nothing, &c, NULL)->name, "device") == 0, at[i].on_device && !c.balanced);
        }
    }
    for (int on = 0; on < 2; on++) {
        struct rk_case c = a_case(RK_COLL_ALLREDUCE, 4, 8, true, true);

        c.mem = on ? RANK_MEM_CUDA : RANK_MEM_HOST;
        assert_string_equal(rk_select(&forced, &c, NULL)->name, on ? "device" : "ring");
        assert_int_equal(rk_select_shm_max(&forced, c.kind, c.mem, c.size, false), -1);
        assert_int_equal(rk_forced_parse("allreduce:device", &alone), RANK_OK); /* ranks without a kind choose as others do */
        assert_int_equal(rk_select_shm_max(&alone, c.kind, c.mem, c.size, false), on ? -1 : 4096);
        c = a_case(RK_COLL_ALLTOALLV, 4, 0, true, false);
        c.mem = on ? RANK_MEM_CUDA : RANK_MEM_HOST;
        assert_string_equal(rk_select(&forced, &c, NULL)->name, on ? "device" : "by_length");
    }
}

/* A blocking call uses what the rules choose. */
static void shm_limit_agrees(void **state)
{
    (void)state;
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        for (int size = 2; size <= 64; size++) {
            int64_t limit = rk_select_shm_max(&nothing, (enum rk_coll_kind)k, RANK_MEM_HOST, size, false);
            for (size_t bytes = 1; bytes <= 8192; bytes += 13) {
                struct rk_case c = a_case(k, size, bytes, true, true);
                bool shm = rk_select(&nothing, &c, NULL)->needs & RK_NEEDS_ARENA;
                if (k != RK_COLL_BARRIER)
                    assert_int_equal(shm, (int64_t)bytes <= limit);
            }
        }
    }
    assert_int_equal(rk_select_shm_max(&nothing, RK_COLL_ALLGATHERV, RANK_MEM_HOST, 4, false), -1);
}

static void forced(void **state)
{
    struct rk_forced f;
    struct rk_case c = a_case(RK_COLL_ALLREDUCE, 6, 8, true, true);
    const char *why;

    (void)state;
    assert_int_equal(rk_forced_parse("", &f), RANK_OK);
    assert_int_equal(f.npicks, 0);
    assert_int_equal(rk_forced_parse(" allreduce:ring , bcast:binomial,", &f), RANK_OK);
    assert_string_equal(f.pick[0].algo->name, "ring");
    assert_string_equal(f.pick[1].algo->name, "binomial");
    assert_string_equal(rk_select(&f, &c, &why)->name, "ring");
    assert_contains(why, "RANK_COLL");
    assert_int_equal(rk_select_shm_max(&f, RK_COLL_ALLREDUCE, RANK_MEM_HOST, 6, false), -1);
    assert_int_equal(rk_select_shm_max(&f, RK_COLL_REDUCE, RANK_MEM_HOST, 6, false), 4096);

    /* One that cannot leaves it to the table. */
    assert_int_equal(rk_forced_parse("allgather:recursive_doubling,allreduce:shm", &f), RANK_OK);
    c = a_case(RK_COLL_ALLGATHER, 6, 8, true, false);
    assert_string_equal(rk_select(&f, &c, NULL)->name, "bruck");
    c.size = 4;
    assert_string_equal(rk_select(&f, &c, NULL)->name, "recursive_doubling");
    c = a_case(RK_COLL_ALLREDUCE, 6, 1 << 20, true, true);
    assert_non_null(rk_select(&f, &c, NULL)->build);
}

/* Words with ranges: the first that covers the block and fits decides; outside of all the rules do. */
static void ranges(void **state)
{
    static const struct {
        size_t bytes;
        const char *algo;
        bool forced;
    } want[] = {{1, "shm", false},     {256, "shm", false}, {257, "rabenseifner", true}, {1024, "rabenseifner", true},
                {1025, "shm", false},  {4096, "shm", false}, {65535, "direct", false}, {65536, "ring", true},
                {1 << 20, "ring", true}, {(1 << 20) + 1, "recursive_doubling", true}, {1 << 30, "recursive_doubling", true}};
    struct rk_forced f;
    const char *why;

    (void)state;
    assert_int_equal(rk_forced_parse("allreduce:ring@64K-1M,allreduce:rabenseifner@257-1K , allreduce:shm@-128,"
                                     "allreduce:recursive_doubling@256k-",
                                     &f),
                     RANK_OK);
    for (size_t i = 0; i < RK_ARRAY_LEN(want); i++) {
        struct rk_case c = a_case(RK_COLL_ALLREDUCE, 8, want[i].bytes, true, true);

        assert_string_equal(rk_select(&f, &c, &why)->name, want[i].algo);
        assert_int_equal(strcmp(why, "set by RANK_COLL") == 0, want[i].forced || want[i].bytes <= 128);
    }
    /* Straight code without a choice, up to the first block that is for another algorithm. */
    assert_int_equal(rk_select_shm_max(&f, RK_COLL_ALLREDUCE, RANK_MEM_HOST, 6, false), 256);
    assert_int_equal(rk_forced_parse("allreduce:ring@-64,barrier:dissemination,reduce:binomial@1G-", &f), RANK_OK);
    assert_int_equal(rk_select_shm_max(&f, RK_COLL_ALLREDUCE, RANK_MEM_HOST, 6, false), -1);
    assert_int_equal(rk_select_shm_max(&f, RK_COLL_BARRIER, RANK_MEM_HOST, 6, false), -1);
    assert_int_equal(rk_select_shm_max(&f, RK_COLL_REDUCE, RANK_MEM_HOST, 6, false), 4096);
}

static double cost_of(const struct rk_algo *a, const struct rk_case *c)
{
    if (a->needs & RK_NEEDS_HOSTS)
        return a->cost_hosts(c->nodes, (c->size + c->nodes - 1) / c->nodes, (double)c->bytes);
    return a->cost(&rk_cost_models[c->one_node], c->size, (double)c->bytes);
}

/* A rule never costs more than twice the cheapest algorithm that fits, by the formulas. */
static void costs_bounded(void **state)
{
    enum { NMAX = 256 };
    int p[NMAX], np = 0;

    (void)state;
    for (int i = 2; i <= 64; i++)
        p[np++] = i;
    for (int k = 64; k <= 65536; k *= 2) {
        p[np++] = k - 1;
        p[np++] = k;
        p[np++] = k + 1;
        p[np++] = k + k / 2;
    }
    assert_true(np < NMAX);
    for (int i = 0; i < np; i++) {
        for (int k = 0; k < RK_COLL_COUNT; k++) {
            for (size_t bytes = 8; bytes <= 1 << 30; bytes *= 2) {
                for (int flags = 0; flags < 6; flags++) {
                    struct rk_case c = a_case(k, p[i], k == RK_COLL_BARRIER ? 0 : bytes, flags & 1, false);
                    const struct rk_algo *a;
                    double cost;

                    c.ordered = flags & 2;
                    if (flags >= 4) { /* hosts of 3 to 9 ranks */
                        c.one_node = false;
                        c.nodes = p[i] / (flags * 6 - 21) + 1;
                        c.per_node = p[i] / c.nodes;
                    }
                    a = rk_select(&nothing, &c, NULL);
                    cost = cost_of(a, &c);
                    for (const struct rk_algo *b = rk_algos; b < rk_algos + rk_nalgos; b++) {
                        if ((int)b->kind == k && rk_algo_fits(b, &c) && cost > 2 * cost_of(b, &c))
                            fail_msg("%s of %zu bytes, %d ranks: %s costs %.0f us, %s %.0f us", rk_coll_name[k], c.bytes,
                                     p[i], a->name, cost, b->name, cost_of(b, &c));
                    }
                }
            }
        }
    }
}

static char *choice_text(const char *coll, const char *collective, int ranks, int nodes)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    rk_conf.coll = coll;
    rk_conf.coll_shm = true;
    assert_int_equal(rk_coll_print_choice(f, collective, ranks, nodes, RANK_MEM_HOST), RANK_OK);
    fclose(f);
    return text;
}

/* rankinfo --coll NAME: every block in one range, and each range's choice is what is selected. */
static void choices_printed(void **state)
{
    char *text;

    (void)state;
    text = choice_text("allreduce:ring@64K-64K", "allreduce", 64, 4);
    assert_contains(text, "\n64K-64K                  ring                set by RANK_COLL\n");
    assert_contains(text, "passed over: RANK_COLL, ring: for other blocks\n");
    assert_contains(text, "passed over: the rule for shm: for one node\n");
    assert_contains(text, "two_level           rule: sums of a host cross the network\n");
    free(text);
    text = choice_text("", "allreduce", 4, 1);
    assert_contains(text, "allreduce, persistent, 4 ranks");
    assert_contains(strstr(text, "persistent, 4"), "\n1-4K                     lines ");
    free(text);
    text = choice_text("", "bcast", 4096, 64); /* a chain of 4096 is no way for 512 KiB */
    assert_contains(text, "chain: more than twice the least estimated time\n");
    free(text);
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        for (int ranks = 1; ranks <= 4096; ranks = ranks * 3 + 1) {
            text = choice_text("", rk_coll_name[k], ranks, 1);
            assert_true(strlen(text) > 100);
            free(text);
        }
    }
}

static void refused(const char *text, const char *name, const char *allowed)
{
    struct rk_forced f;
    struct unit_stderr e;
    rank_status_t st;
    const char *said;

    unit_stderr_begin(&e);
    st = rk_forced_parse(text, &f);
    said = unit_stderr_end(&e);
    assert_int_equal(st, RANK_ERR_CONFIG);
    assert_contains(said, "RANK_COLL");
    assert_contains(said, name);
    assert_contains(said, allowed);
}

static void bad_forced(void **state)
{
    (void)state;
    refused("allreduce:fast", "'fast'", "shm, recursive_doubling, rabenseifner, ring");
    refused("allreduce:rin", "'rin'", "ring");
    refused("allreduce:", "''", "ring");
    refused("allreduce", "allreduce", "ring");
    refused("bcast:binomial,gothere:ring", "'gothere'", "reduce_scatter");
    refused(":ring", "''", "allreduce");
    refused("allreduce:ring@", "'@'", "64K-1M");
    refused("allreduce:ring@-", "'@-'", "64K-1M");
    refused("allreduce:ring@2K-1K", "'@2K-1K'", "64K-1M");
    refused("allreduce:ring@1X", "'@1X'", "64K-1M");
    refused("allreduce:ring@99999999999999999999", "'@999", "64K-1M");
    refused("allreduce:rin@1K", "'rin'", "ring");
    refused("allreduce@1K", "'allreduce@1K'", "bcast");
    refused("allreduce ring", "'allreduce ring'", "bcast");
}

/* What RANK_COLL allows, written in a lower room, is what there is. */
static void allowed(void **state)
{
    const struct rk_conf_row *row = rk_conf_rows;
    char text[1024] = "";
    size_t at = 0;

    (void)state;
    while (strcmp(row->name, "RANK_COLL") != 0)
        row++;
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        const char *between = ":";

        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", k ? "," : "", rk_coll_name[k]);
        for (int i = 0; i < rk_nalgos; i++) {
            if ((int)rk_algos[i].kind != k)
                continue;
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", between, rk_algos[i].name);
            between = "|";
        }
    }
    assert_string_equal(row->allowed, text);
}

static void printed(void **state)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    assert_non_null(f);
    rk_coll_print_table(f);
    fclose(f);
    for (int i = 0; i < rk_nalgos; i++) {
        assert_contains(text, rk_algos[i].name);
        assert_contains(text, rk_algos[i].why);
    }
    for (int i = 0; i < rk_nrules; i++)
        assert_contains(text, rk_rules[i].why);
    free(text);
}

/* A team opens without a peer, whatever its size: peers are made on first contact. */
static void opens_without_peers(void **state)
{
    enum { SIZE = 4096, LOCAL = 2 };
    int local[LOCAL] = {0, 1};
    struct rk_boot boot = {.size = SIZE, .nlocal = LOCAL, .local = local};
    struct rk_node_slot slots[LOCAL];
    struct rk_node node = {.slots = slots, .nlocal = LOCAL};
    struct rk_engine engine = {.npeers = SIZE, .peers = calloc(SIZE, sizeof(*engine.peers))};
    struct rk_ctx ctx = {.boot = &boot, .node = &node, .engine = &engine};
    struct rank_team team = {.size = SIZE, .ctx = &ctx, .peers = calloc(SIZE, sizeof(*team.peers))};

    (void)state;
    memset(slots, 0, sizeof(slots));
    for (int i = 0; i < LOCAL; i++)
        atomic_store(&slots[i].state, RK_SLOT_UP);
    ctx.world = &team;
    rk_conf.coll = "";
    assert_int_equal(rk_room_coll.open(&ctx), RANK_OK);
    assert_int_equal(rk_room_coll.team_open(&team), RANK_OK);
    assert_false(team.coll->one_node);
    for (int r = 0; r < SIZE; r++)
        assert_true(!team.peers[r] && !engine.peers[r]);
    rk_room_coll.team_close(&team);
    rk_room_coll.release(&ctx);
    free(engine.peers);
    free(team.peers);
}

/* Names and block limits of the arenas. */
static void arenas(void **state)
{
    (void)state;
    assert_int_equal(rk_arena_region_bytes(1), 0);
    assert_true(rk_arena_region_bytes(2) > 0);
    for (int n = 2; n <= 128; n++) {
        assert_true(rk_arena_region_bytes(n) > rk_arena_region_bytes(n - 1));
        assert_true(rk_arena_cells_bytes(n) >= (size_t)n * RK_CELLS_BYTES);
        assert_true((size_t)n * rk_arena_block_max(RK_COLL_ALLTOALL, n) <= RK_SLOT_DATA);
        assert_true(rk_arena_block_max(RK_COLL_ALLREDUCE, n) == RK_SLOT_DATA);
    }
}

/* 1,000 pairs at once, and other teams, have an arena each; all come back, also where a member could not open its own. */
static void many_arenas(void **state)
{
    enum { RANKS = 20, PAIRS = 1000, OTHERS = 40 };
    size_t bytes[RK_REGION_COUNT] = {0}, end, cells;
    int index[PAIRS + OTHERS], n[PAIRS + OTHERS];
    struct rk_memfd_card card;
    struct rk_node *node;

    (void)state;
    bytes[RK_REGION_ARENAS] = rk_arena_region_bytes(RANKS);
    bytes[RK_REGION_CELLS] = rk_arena_cells_bytes(RANKS);
    assert_int_equal(rk_node_create(RANKS, bytes, &node, &card), RANK_OK);
    for (int again = 0; again < 2; again++) {
        end = rk_arena_place(RANKS, RK_ARENA_OF_WORLD).data;
        cells = (size_t)RANKS * RK_CELLS_BYTES;
        for (int i = 0; i < PAIRS + OTHERS; i++) {
            struct rk_arena_place p;

            n[i] = i < PAIRS ? 2 : 17 + i % 4;
            index[i] = rk_arena_take(node, n[i]);
            assert_true(index[i] > RK_ARENA_OF_WORLD);
            p = rk_arena_place(RANKS, index[i]);
            assert_true(p.most >= n[i] && p.at >= end);
            end = p.at + p.data + (size_t)n[i] * RK_SLOT_DATA;
            assert_true(p.data >= rk_arena_front_bytes(n[i]) && end <= bytes[RK_REGION_ARENAS]);
            if (p.cells == SIZE_MAX)
                continue;
            assert_true(p.cells >= cells);
            cells = p.cells + (size_t)n[i] * RK_CELLS_BYTES;
            assert_true(cells <= bytes[RK_REGION_CELLS]);
        }
        for (int i = 0; i < PAIRS + OTHERS; i++) {
            for (int r = 0; r < n[i]; r++)
                rk_arena_leave(node, index[i], n[i]);
        }
        for (int i = 0; i < RK_ARENA_WORDS; i++)
            assert_true(atomic_load(&node->head->arenas_taken[i]) == 0);
    }
    rk_node_close(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),   cmocka_unit_test(costs_order), cmocka_unit_test(rules),
        cmocka_unit_test(something_for_everything), cmocka_unit_test(least_time), cmocka_unit_test(devices), cmocka_unit_test(order_kept), cmocka_unit_test(balanced), cmocka_unit_test(choices),
        cmocka_unit_test(shm_limit_agrees), cmocka_unit_test(forced),
        cmocka_unit_test(ranges), cmocka_unit_test(costs_bounded), cmocka_unit_test(choices_printed),
        cmocka_unit_test(bad_forced), cmocka_unit_test(allowed), cmocka_unit_test(printed), cmocka_unit_test(arenas), cmocka_unit_test(many_arenas),
        cmocka_unit_test(opens_without_peers),
    };

    if (rk_forced_parse("", &nothing))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
