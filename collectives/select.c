/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.c: select an algorithm by rules and RANK_COLL.
 *
 * The limits come from measurements on one node (doc/collectives.md) and, for many nodes, from the cost formulas
 * of table.c with a network's parameters.
 */
#include "collectives/select.h"
#include "collectives/pattern.h"
#include "collectives/shm/arena.h"
#include "collectives/coll_args.h"
#include "collectives/shm/slices.h"
#include "lib/base/conf.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/base/choice_list.h"

#include <string.h>

/* Nonblocking calls use messages up to here, the blocks for which blocking ones use the slots of the arena. */
enum { SLICES_MIN = RK_SLOT_DATA };

/*
 * direct waits for the other ranks once more than slices does, to find out if the memory is mapped. That costs more where many
 * ranks take turns.
 */
enum { FEW_RANKS = 4, SLICES_OF_FEW = 8 << 10, SLICES_OF_MANY = 32 << 10 };

#define RULE(coll, where, ranks, bytes, name, reason)                                              \
    {                                                                                              \
        .kind = RK_COLL_##coll, .mem = RANK_MEM_HOST, .nodes = RK_NODES_##where,                   \
        .ranks_max = ranks, .bytes_max = bytes, .algo = name, .why = reason                     \
    }
/* Persistent requests use the arena for short blocks, too. */
#define PERSISTENT(coll)                                                                           \
    {                                                                                              \
        .kind = RK_COLL_##coll, .mem = RANK_MEM_HOST, .nodes = RK_NODES_ONE, .persistent = true,   \
        .ranks_max = RK_FLAT_MAX, .bytes_max = SLICES_MIN, .algo = "lines",                        \
        .why = "persistent: flag and block in a line, no messages"                                 \
    }

/*
 * If some rank has another kind of buffers, these go through the host, by slices. Shorter blocks do so anyway: a device
 * starts a copy in about the time of a whole collective of the host.
 */
enum { MOVES_MIN = 32 << 10, SUMS_MIN = 64 << 10 };

#define ON_DEVICES(coll, least, reason)                                                            \
    {                                                                                              \
        .kind = RK_COLL_##coll, .mem = RANK_MEM_CUDA, .nodes = RK_NODES_ONE, .bytes_min = least,   \
        .bytes_max = RK_ANY_BYTES, .algo = "device", .why = reason                                 \
    }

#define ON_NODE(coll, slices_reason, direct_reason)                                                \
    RULE(coll, ONE, FEW_RANKS, SLICES_OF_FEW, "slices", slices_reason),                            \
        RULE(coll, ONE, FEW_RANKS, RK_ANY_BYTES, "direct", direct_reason),                         \
        RULE(coll, ONE, 0, SLICES_OF_MANY, "slices", slices_reason),                               \
        RULE(coll, ONE, 0, RK_ANY_BYTES, "direct", direct_reason)

const struct rk_rule rk_rules[] = {
    RULE(BARRIER, ONE, 0, RK_ANY_BYTES, "shm", "flags in shared memory: no messages"),
    PERSISTENT(BARRIER),
    RULE(BARRIER, ONE, 0, RK_ANY_BYTES, "slices", "counters in shared memory: no messages"),
    RULE(BARRIER, MANY, 0, RK_ANY_BYTES, "two_level", "few messages cross the network"),
    RULE(BARRIER, ANY, 0, RK_ANY_BYTES, "dissemination", "least rounds"),

    ON_DEVICES(BCAST, MOVES_MIN, "one copy of the device, if all have device buffers"),
    RULE(BCAST, ONE, 0, 4096, "shm", "one write, all ranks read"),
    PERSISTENT(BCAST),
    RULE(BCAST, MANY, 0, RK_ANY_BYTES, "two_level", "the message crosses the network once a host"),
    RULE(BCAST, ONE, 0, SLICES_MIN, "binomial", "short nonblocking ones: no cells for them"),
    ON_NODE(BCAST, "the root copies in, all copy out at once", "all copy from the root"),
    RULE(BCAST, ANY, 2, RK_ANY_BYTES, "binomial", "two ranks: one message"),
    RULE(BCAST, ANY, 0, 256 << 10, "binomial", "latency counts: least rounds"),
    RULE(BCAST, ONE, 8, 1 << 20, "binomial", "few rounds with few ranks"),
    RULE(BCAST, MANY, 0, RK_ANY_BYTES, "chain", "segments fill all links at once"),
    RULE(BCAST, ANY, 0, RK_ANY_BYTES, "scatter_ring", "twice the message for any number of ranks"),

    ON_DEVICES(REDUCE, SUMS_MIN, "kernels reduce, if all have device buffers"),
    RULE(REDUCE, ONE, 0, 4096, "shm", "all ranks write, the root reads"),
    PERSISTENT(REDUCE),
    RULE(REDUCE, MANY, 0, RK_ANY_BYTES, "two_level", "one sum a host crosses the network"),
    RULE(REDUCE, ONE, 0, SLICES_MIN, "binomial", "short nonblocking ones: no cells for them"),
    ON_NODE(REDUCE, "the root reduces all inputs at once; many ranks share it", "the root reduces all inputs where they are; many ranks share it"),
    RULE(REDUCE, ANY, 2, RK_ANY_BYTES, "binomial", "two ranks: one message"),
    RULE(REDUCE, ANY, 0, 128 << 10, "binomial", "latency counts: least rounds"),
    RULE(REDUCE, ANY, 0, RK_ANY_BYTES, "rabenseifner", "all ranks share the reducing"),

    ON_DEVICES(ALLREDUCE, SUMS_MIN, "kernels reduce, if all have device buffers"),
    RULE(ALLREDUCE, ONE, 0, 4096, "shm", "one hand-over"),
    PERSISTENT(ALLREDUCE),
    RULE(ALLREDUCE, MANY, 0, RK_ANY_BYTES, "two_level", "sums of a host cross the network"),
    RULE(ALLREDUCE, ONE, 0, SLICES_MIN, "recursive_doubling", "short nonblocking ones: no cells for them"),
    ON_NODE(ALLREDUCE, "each reduces a slice of all inputs at once", "each reduces a share of all inputs where they are"),
    RULE(ALLREDUCE, ANY, 0, 64 << 10, "recursive_doubling", "latency counts: least rounds"),
    RULE(ALLREDUCE, ANY, 2, 512 << 10, "recursive_doubling", "two ranks: one exchange"),
    RULE(ALLREDUCE, ANY, 0, 1 << 20, "rabenseifner", "least bytes in few rounds"),
    RULE(ALLREDUCE, ANY, 0, RK_ANY_BYTES, "ring", "least bytes, slices overlap"),

    ON_DEVICES(GATHER, MOVES_MIN, "one copy of the device, if all have device buffers"),
    RULE(GATHER, ONE, 0, 4096, "shm", "all ranks write, the root reads"),
    PERSISTENT(GATHER),
    RULE(GATHER, ONE, 8, SLICES_MIN, "linear", "short nonblocking ones: no cells for them"),
    RULE(GATHER, ONE, 0, 1024, "binomial", "latency counts: least rounds"),
    ON_NODE(GATHER, "all copy in at once, the root copies out", "the root copies from all"),
    RULE(GATHER, ANY, 8, RK_ANY_BYTES, "linear", "few ranks: no copies on the way"),
    RULE(GATHER, ANY, 0, 1024, "binomial", "latency counts: least rounds"),
    RULE(GATHER, ANY, 0, RK_ANY_BYTES, "linear", "no copies on the way"),

    ON_DEVICES(ALLGATHER, MOVES_MIN, "one copy of the device, if all have device buffers"),
    RULE(ALLGATHER, ONE, 0, 4096, "shm", "one hand-over"),
    PERSISTENT(ALLGATHER),
    RULE(ALLGATHER, MANY, 0, 8 << 10, "two_level", "long messages between hosts"),
    RULE(ALLGATHER, ONE, 0, SLICES_MIN, "recursive_doubling", "short nonblocking ones: no cells for them"),
    RULE(ALLGATHER, ONE, 0, SLICES_MIN, "bruck", "short nonblocking ones: no cells for them"),
    ON_NODE(ALLGATHER, "each copies in once, all copy out", "each copies from all"),
    RULE(ALLGATHER, ANY, 0, 128 << 10, "recursive_doubling",
         "a power of two of ranks: least rounds without a copy"),
    RULE(ALLGATHER, ANY, 0, 4 << 10, "bruck", "latency counts: least rounds"),
    RULE(ALLGATHER, ANY, 0, RK_ANY_BYTES, "ring", "least bytes, neighbours only"),

    ON_DEVICES(ALLGATHERV, MOVES_MIN, "one copy of the device, if all have device buffers"),
    ON_NODE(ALLGATHERV, "each copies in once, all copy out", "each copies from all"),
    RULE(ALLGATHERV, ANY, 0, 8 << 10, "linear", "short blocks: all at once"),
    RULE(ALLGATHERV, ANY, 0, RK_ANY_BYTES, "ring", "least bytes, neighbours only"),

    ON_DEVICES(SCATTER, MOVES_MIN, "one copy of the device, if all have device buffers"),
    RULE(SCATTER, ONE, 0, 4096, "shm", "one write, all ranks read"),
    ON_NODE(SCATTER, "the root copies in, all copy out at once", "all copy from the root"),
    RULE(SCATTER, ANY, 8, RK_ANY_BYTES, "linear", "few ranks: no copies on the way"),
    RULE(SCATTER, ANY, 0, 1024, "binomial", "latency counts: least rounds"),
    RULE(SCATTER, ANY, 0, RK_ANY_BYTES, "linear", "no copies on the way"),

    ON_DEVICES(REDUCE_SCATTER, SUMS_MIN, "kernels reduce, if all have device buffers"),
    RULE(REDUCE_SCATTER, ONE, 0, 4096, "shm", "one hand-over"),
    RULE(REDUCE_SCATTER, MANY, 0, 8 << 10, "two_level", "sums of a host cross the network"),
    ON_NODE(REDUCE_SCATTER, "each reduces its block of all inputs at once", "each reduces its block of all inputs where they are"),
    RULE(REDUCE_SCATTER, ANY, 0, 512, "recursive_halving", "latency counts: least rounds"),
    RULE(REDUCE_SCATTER, ONE, 0, RK_ANY_BYTES, "pairwise", "least bytes, nothing forwarded"),
    RULE(REDUCE_SCATTER, MANY, 0, 64 << 10, "pairwise", "least bytes, nothing forwarded"),
    RULE(REDUCE_SCATTER, MANY, 0, RK_ANY_BYTES, "ring", "least bytes, neighbours only"),

    ON_DEVICES(ALLTOALL, MOVES_MIN, "one copy of the device, if all have device buffers"),
    RULE(ALLTOALL, ONE, 0, 4096, "shm", "one hand-over"),
    RULE(ALLTOALL, MANY, 0, 1024, "two_level", "blocks between two hosts travel together"),
    ON_NODE(ALLTOALL, "all copy in at once, then out of each cell", "each copies from all"),
    RULE(ALLTOALL, ANY, 8, RK_ANY_BYTES, "pairwise", "few ranks: few messages anyway"),
    RULE(ALLTOALL, ANY, 0, 256, "bruck", "short blocks travel together"),
    RULE(ALLTOALL, ANY, 0, RK_ANY_BYTES, "pairwise", "least bytes"),

    ON_DEVICES(GATHERV, 0, "one copy of the device from 32 KiB on, if all have device buffers"),
    RULE(GATHERV, ONE, 0, RK_ANY_BYTES, "by_length", "the ranks agree on the longest block: slices, or direct"),
    RULE(GATHERV, ANY, 0, RK_ANY_BYTES, "linear", "only the root knows all lengths"),
    ON_DEVICES(SCATTERV, 0, "one copy of the device from 32 KiB on, if all have device buffers"),
    RULE(SCATTERV, ONE, 0, RK_ANY_BYTES, "by_length", "the ranks agree on the longest block: slices, or direct"),
    RULE(SCATTERV, ANY, 0, RK_ANY_BYTES, "linear", "only the root knows all lengths"),

    ON_DEVICES(ALLTOALLV, 0, "one copy of the device from 32 KiB on, if all have device buffers"),
    RULE(ALLTOALLV, ONE, 0, RK_ANY_BYTES, "by_length", "the ranks agree on the longest block: slices, or direct"),
    RULE(ALLTOALLV, ANY, 0, RK_ANY_BYTES, "pairwise", "least bytes"),

    ON_DEVICES(REDUCE_SCATTERV, SUMS_MIN, "kernels reduce, if all have device buffers"),
    ON_NODE(REDUCE_SCATTERV, "each reduces its block of all inputs at once", "each reduces its block of all inputs where they are"),
    RULE(REDUCE_SCATTERV, ANY, 0, 512, "recursive_halving", "latency counts: least rounds"),
    RULE(REDUCE_SCATTERV, ANY, 0, RK_ANY_BYTES, "pairwise", "least bytes, nothing forwarded"),

    RULE(SCAN, ONE, 16, 4096, "shm", "one hand-over"),
    RULE(SCAN, ONE, 0, 256, "shm", "one hand-over"),
    PERSISTENT(SCAN),
    RULE(SCAN, ONE, 0, SLICES_MIN, "recursive_doubling", "short nonblocking ones: no cells for them"),
    ON_NODE(SCAN, "each reduces a slice of all prefixes", "each reduces the inputs of the lower ranks"),
    RULE(SCAN, ANY, 2, RK_ANY_BYTES, "recursive_doubling", "two ranks: one message"),
    RULE(SCAN, ANY, 0, 64 << 10, "recursive_doubling", "latency counts: least rounds"),
    RULE(SCAN, ANY, 0, RK_ANY_BYTES, "chain", "segments fill all links at once"),

    RULE(EXSCAN, ONE, 16, 4096, "shm", "one hand-over"),
    RULE(EXSCAN, ONE, 0, 256, "shm", "one hand-over"),
    PERSISTENT(EXSCAN),
    RULE(EXSCAN, ONE, 0, SLICES_MIN, "recursive_doubling", "short nonblocking ones: no cells for them"),
    ON_NODE(EXSCAN, "each reduces a slice of all prefixes", "each reduces the inputs of the lower ranks"),
    RULE(EXSCAN, ANY, 2, RK_ANY_BYTES, "recursive_doubling", "two ranks: one message"),
    RULE(EXSCAN, ANY, 0, 64 << 10, "recursive_doubling", "latency counts: least rounds"),
    RULE(EXSCAN, ANY, 0, RK_ANY_BYTES, "chain", "segments fill all links at once"),
};

const int rk_nrules = RK_ARRAY_LEN(rk_rules);

_Static_assert(RK_ARRAY_LEN(rk_rules) <= RK_RULES_MAX, "room for the resolved rules");

bool rk_coll_balances(enum rk_coll_kind kind)
{
    for (const struct rk_algo *a = rk_algos; a < rk_algos + rk_nalgos; a++) {
        if (a->kind == kind && a->balanced)
            return true;
    }
    return false;
}

/* Movers may cut elements. */
static bool fits_cells(const struct rk_case *c)
{
    if (rk_coll_has_own_counts(c->kind) || c->kind == RK_COLL_BARRIER)
        return rk_slices_fit(c->kind, c->size, 1);
    return c->count > 0 && rk_slices_fit(c->kind, c->size, c->bytes / (size_t)c->count);
}

const char *rk_algo_unfit(const struct rk_algo *algo, const struct rk_case *c)
{
    if ((algo->needs & RK_NEEDS_POW2) && !rk_is_pow2(c->size))
        return "needs a power of two of ranks";
    if ((algo->needs & RK_NEEDS_COMMUTATIVE) && c->ordered)
        return "needs a commutative operation";
    if (c->balanced && !algo->balanced)
        return "RANK_COLL_REPRODUCIBLE: sums by another tree";
    if ((algo->needs & RK_NEEDS_HOSTS) && (c->one_node || c->nodes < 2 || c->size <= c->nodes))
        return "needs several hosts, known to all, and one with several ranks";
    if ((algo->needs & RK_NEEDS_DEVICE) && c->mem == RANK_MEM_HOST)
        return "needs device memory";
    if ((algo->needs & RK_NEEDS_CELLS) && !c->cells)
        return "needs one node, with the cells of an arena";
    if ((algo->needs & RK_NEEDS_CELLS) && !fits_cells(c))
        return "needs elements that fit into a cell";
    if ((algo->needs & RK_NEEDS_ARENA) && !c->arena)
        return "needs a blocking call on one node, with an arena";
    if (!algo->build && c->bytes > rk_arena_block_max(c->kind, c->size))
        return "longer than a slot of the arena";
    if (algo->ranks_max && c->size > algo->ranks_max)
        return "for fewer ranks";
    if (algo->bytes_max && c->bytes > algo->bytes_max)
        return "for shorter blocks";
    return c->count < algo->min_count ? "needs elements" : NULL;
}

/* NULL if the rule covers the case. */
static const char *rule_unmet(const struct rk_rule *r, const struct rk_case *c)
{
    if (r->mem != RANK_MEM_HOST && r->mem != c->mem)
        return "for another kind of memory";
    if (r->nodes != RK_NODES_ANY && (r->nodes == RK_NODES_ONE) != c->one_node)
        return r->nodes == RK_NODES_ONE ? "for one node" : "for several nodes";
    if (r->persistent && !c->persistent)
        return "for persistent requests";
    if (r->ranks_max && c->size > r->ranks_max)
        return "for fewer ranks";
    if (c->per_node < r->per_node_min)
        return "for more ranks a host";
    if (c->bytes < r->bytes_min)
        return "for longer blocks";
    if (c->bytes > r->bytes_max || (r->total_max && c->bytes > r->total_max / (size_t)c->size))
        return "for shorter blocks";
    return NULL;
}

static double algo_cost(const struct rk_algo *a, const struct rk_case *c)
{
    if (a->needs & RK_NEEDS_HOSTS)
        return a->cost_hosts(c->nodes, (c->size + c->nodes - 1) / c->nodes, (double)c->bytes);
    return a->cost(&rk_cost_models[c->one_node], c->size, (double)c->bytes);
}

static const struct rk_algo *least_cost(const struct rk_case *c)
{
    const struct rk_algo *best = NULL;
    double least = 0;

    for (const struct rk_algo *a = rk_algos; a < rk_algos + rk_nalgos; a++) {
        if (a->kind == c->kind && rk_algo_fits(a, c)) {
            double cost = algo_cost(a, c);

            if (!best || cost < least) {
                best = a;
                least = cost;
            }
        }
    }
    return best;
}

/* The first word of RANK_COLL that decides, or NULL. */
static const struct rk_algo *forced_algo(const struct rk_forced *forced, const struct rk_case *c, rk_passed_fn *passed,
                                         void *arg)
{
    for (const struct rk_pick *p = forced->pick; p < forced->pick + forced->npicks; p++) {
        bool covers = c->bytes >= p->from && c->bytes <= p->to;
        const char *lacks;

        if (p->algo->kind != c->kind)
            continue;
        lacks = covers ? rk_algo_unfit(p->algo, c) : "for other blocks";
        if (!lacks)
            return p->algo;
        if (passed)
            passed(arg, -1, p->algo, lacks);
        else if (covers)
            rk_debug("RANK_COLL: %s cannot do a %s of %zu bytes with %d ranks: %s; the next choice decides",
                     p->algo->name, rk_coll_name[c->kind], c->bytes, c->size, lacks);
    }
    return NULL;
}

const struct rk_algo *rk_select_explain(const struct rk_forced *forced, const struct rk_case *c, const char **why,
                                        int *rule, rk_passed_fn *passed, void *arg)
{
    const struct rk_algo *algo = forced_algo(forced, c, passed, arg), *least = NULL;

    *rule = -1;
    *why = "set by RANK_COLL";
    for (int i = 0; i < rk_nrules && !algo; i++) {
        const struct rk_algo *a = forced->rule[i];
        const char *lacks;

        if (rk_rules[i].kind != c->kind)
            continue;
        lacks = rule_unmet(&rk_rules[i], c);
        if (!lacks)
            lacks = rk_algo_unfit(a, c);
        if (!lacks && a->build && !(a->needs & RK_NEEDS_DEVICE)) {
            if (!least)
                least = least_cost(c);
            if (algo_cost(a, c) > RK_COST_MAX * algo_cost(least, c))
                lacks = "more than twice the least estimated time";
        }
        if (!lacks) {
            *rule = i;
            *why = rk_rules[i].why;
            return a;
        }
        if (passed)
            passed(arg, i, a, lacks);
    }
    if (algo)
        return algo;
    *why = "no rule: least estimated time";
    return least ? least : least_cost(c);
}

const struct rk_algo *rk_select(const struct rk_forced *forced, const struct rk_case *c,
                                const char **why)
{
    const char *reason;
    int rule;

    return rk_select_explain(forced, c, why ? why : &reason, &rule, NULL, NULL);
}

/* Does a blocking call of a team with an arena run straight code? */
static bool is_straight(const struct rk_forced *forced, struct rk_case c, size_t bytes)
{
    c.bytes = bytes;
    c.count = bytes ? (int64_t)(bytes & INT64_MAX) : 1; /* an empty call but a barrier is trivial */
    return !rk_select(forced, &c, NULL)->build;
}

int64_t rk_select_shm_max(const struct rk_forced *forced, enum rk_coll_kind kind, rank_mem_kind_t mem, int size, bool balanced)
{
    const struct rk_case c = {.kind = kind, .mem = mem, .one_node = true, .arena = true, .cells = true, .balanced = balanced,
                              .size = size, .nodes = 1, .per_node = size};
    size_t limit = rk_arena_block_max(kind, size);

    /* Lower the limit to the last block before a range or a rule that ends the straight code. */
    for (const struct rk_pick *p = forced->pick; p < forced->pick + forced->npicks; p++) {
        if (p->algo->kind != kind)
            continue;
        if (p->from <= limit && !is_straight(forced, c, p->from)) {
            if (p->from == 0)
                return -1;
            limit = p->from - 1;
        }
        if (p->to < limit && !is_straight(forced, c, p->to + 1))
            limit = p->to;
    }
    for (int i = 0; i < rk_nrules; i++) {
        if (rk_rules[i].kind == kind && rk_rules[i].bytes_max < limit && !is_straight(forced, c, rk_rules[i].bytes_max + 1))
            limit = rk_rules[i].bytes_max;
    }
    return is_straight(forced, c, 0) ? (int64_t)limit : -1;
}

/* --------------------------------------------------------------------- RANK_COLL */

static int kind_by_name(const char *name, size_t len)
{
    for (int k = 0; k < RK_COLL_COUNT; k++) {
        if (strlen(rk_coll_name[k]) == len && memcmp(rk_coll_name[k], name, len) == 0)
            return k;
    }
    return -1;
}

/* The valid words are in the configuration table, so that xrun can check them before it starts anything. */
static const char *what_there_is(void)
{
    const struct rk_conf_row *row = rk_conf_rows;

    while (strcmp(row->name, "RANK_COLL") != 0)
        row++;
    return row->allowed;
}

/* Add "allreduce:ring@64K-1M", which was checked. */
static rank_status_t add_pick(const char *item, size_t len, struct rk_forced *out)
{
    const char *at = memchr(item, '@', len);
    size_t key = strcspn(item, ":"), end = at ? (size_t)(at - item) : len;
    struct rk_pick pick = {.to = RK_ANY_BYTES};

    if (out->npicks == RK_PICKS_MAX)
        return rk_fail(RANK_ERR_CONFIG, "RANK_COLL: more than %d choices", RK_PICKS_MAX);
    pick.algo = rk_algo_find((enum rk_coll_kind)kind_by_name(item, key), item + key + 1, end - key - 1);
    if (at)
        rk_choice_list_range(at + 1, len - end - 1, &pick.from, &pick.to);
    out->pick[out->npicks++] = pick;
    return RANK_OK;
}

rank_status_t rk_forced_parse(const char *text, struct rk_forced *out)
{
    char err[512];

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < rk_nrules; i++)
        out->rule[i] = rk_algo_find(rk_rules[i].kind, rk_rules[i].algo, strlen(rk_rules[i].algo));
    if (rk_choice_list_check("RANK_COLL", text, what_there_is(), err, sizeof(err)))
        return rk_fail(RANK_ERR_CONFIG, "%s", err);
    for (const char *p = text; *p; p += *p == ',') {
        size_t len;

        p += strspn(p, " \t");
        len = strcspn(p, ", \t");
        if (len > 0 && add_pick(p, len, out))
            return RANK_ERR_CONFIG;
        p += strcspn(p, ",");
    }
    return RANK_OK;
}
