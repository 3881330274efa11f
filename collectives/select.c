/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.c: select an algorithm by rules and RANK_COLL.
 *
 * The limits come from measurements on one node (doc/collectives.md) and, for many nodes, from the cost formulas
 * of table.c with a network's parameters.
 */
#include "collectives/select.h"
#include "collectives/pattern.h"
#include "collectives/coll_shm.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/choice_list.h"

#include <string.h>

#define RULE(coll, where, ranks, bytes, name, reason)                                              \
    {                                                                                              \
        .kind = RK_COLL_##coll, .mem = RANK_MEM_HOST, .nodes = RK_NODES_##where,                   \
        .ranks_max = ranks, .bytes_max = bytes, .algo = name, .why = reason                     \
    }

const struct rk_rule rk_rules[] = {
    RULE(BARRIER, ONE, 0, RK_ANY_BYTES, "shm", "flags in shared memory: no messages"),
    RULE(BARRIER, ANY, 0, RK_ANY_BYTES, "dissemination", "least rounds"),

    RULE(BCAST, ONE, 0, 4096, "shm", "one write, all ranks read"),
    RULE(BCAST, ANY, 2, RK_ANY_BYTES, "binomial", "two ranks: one message"),
    RULE(BCAST, ANY, 0, 256 << 10, "binomial", "latency counts: least rounds"),
    RULE(BCAST, ONE, 8, 1 << 20, "binomial", "few rounds with few ranks"),
    RULE(BCAST, MANY, 0, RK_ANY_BYTES, "chain", "segments fill all links at once"),
    RULE(BCAST, ANY, 0, RK_ANY_BYTES, "scatter_ring", "twice the message for any number of ranks"),

    RULE(REDUCE, ONE, 0, 4096, "shm", "all ranks write, the root reads"),
    RULE(REDUCE, ANY, 2, RK_ANY_BYTES, "binomial", "two ranks: one message"),
    RULE(REDUCE, ANY, 0, 128 << 10, "binomial", "latency counts: least rounds"),
    RULE(REDUCE, ANY, 0, RK_ANY_BYTES, "rabenseifner", "all ranks share the reducing"),

    RULE(ALLREDUCE, ONE, 0, 4096, "shm", "one hand-over"),
    RULE(ALLREDUCE, ANY, 0, 64 << 10, "recursive_doubling", "latency counts: least rounds"),
    RULE(ALLREDUCE, ANY, 2, 512 << 10, "recursive_doubling", "two ranks: one exchange"),
    RULE(ALLREDUCE, ANY, 0, 1 << 20, "rabenseifner", "least bytes in few rounds"),
    RULE(ALLREDUCE, ANY, 0, RK_ANY_BYTES, "ring", "least bytes, slices overlap"),

    RULE(GATHER, ONE, 0, 4096, "shm", "all ranks write, the root reads"),
    RULE(GATHER, ANY, 8, RK_ANY_BYTES, "linear", "few ranks: no copies on the way"),
    RULE(GATHER, ANY, 0, 1024, "binomial", "latency counts: least rounds"),
    RULE(GATHER, ANY, 0, RK_ANY_BYTES, "linear", "no copies on the way"),

    RULE(ALLGATHER, ONE, 0, 4096, "shm", "one hand-over"),
    RULE(ALLGATHER, ANY, 0, 128 << 10, "recursive_doubling",
         "a power of two of ranks: least rounds without a copy"),
    RULE(ALLGATHER, ANY, 0, 4 << 10, "bruck", "latency counts: least rounds"),
    RULE(ALLGATHER, ANY, 0, RK_ANY_BYTES, "ring", "least bytes, neighbours only"),

    RULE(ALLGATHERV, ANY, 0, 8 << 10, "linear", "short blocks: all at once"),
    RULE(ALLGATHERV, ANY, 0, RK_ANY_BYTES, "ring", "least bytes, neighbours only"),

    RULE(SCATTER, ONE, 0, 4096, "shm", "one write, all ranks read"),
    RULE(SCATTER, ANY, 8, RK_ANY_BYTES, "linear", "few ranks: no copies on the way"),
    RULE(SCATTER, ANY, 0, 1024, "binomial", "latency counts: least rounds"),
    RULE(SCATTER, ANY, 0, RK_ANY_BYTES, "linear", "no copies on the way"),

    RULE(REDUCE_SCATTER, ONE, 0, 4096, "shm", "one hand-over"),
    RULE(REDUCE_SCATTER, ANY, 0, 512, "recursive_halving", "latency counts: least rounds"),
    RULE(REDUCE_SCATTER, ONE, 0, RK_ANY_BYTES, "pairwise", "least bytes, nothing forwarded"),
    RULE(REDUCE_SCATTER, MANY, 0, 64 << 10, "pairwise", "least bytes, nothing forwarded"),
    RULE(REDUCE_SCATTER, MANY, 0, RK_ANY_BYTES, "ring", "least bytes, neighbours only"),

    RULE(ALLTOALL, ONE, 0, 4096, "shm", "one hand-over"),
    RULE(ALLTOALL, ANY, 8, RK_ANY_BYTES, "pairwise", "few ranks: few messages anyway"),
    RULE(ALLTOALL, ANY, 0, 256, "bruck", "short blocks travel together"),
    RULE(ALLTOALL, ANY, 0, RK_ANY_BYTES, "pairwise", "least bytes"),
};

const int rk_nrules = RK_ARRAY_LEN(rk_rules);

bool rk_algo_fits(const struct rk_algo *algo, const struct rk_case *c)
{
    if ((algo->needs & RK_NEEDS_POW2) && !rk_is_pow2(c->size))
        return false;
    if ((algo->needs & RK_NEEDS_COMMUTATIVE) && c->ordered)
        return false;
    if (algo->needs & RK_NEEDS_ARENA)
        return c->arena && c->bytes <= rk_arena_block_max(c->kind, c->size);
    return c->count >= algo->min_count;
}

static bool select_matches(const struct rk_rule *r, const struct rk_case *c)
{
    return r->kind == c->kind && r->mem == c->mem && c->bytes <= r->bytes_max &&
           (!r->ranks_max || c->size <= r->ranks_max) &&
           (r->nodes == RK_NODES_ANY || (r->nodes == RK_NODES_ONE) == c->one_node);
}

static const struct rk_algo *least_cost(const struct rk_case *c)
{
    const struct rk_algo *best = NULL;
    double least = 0;

    for (const struct rk_algo *a = rk_algos; a < rk_algos + rk_nalgos; a++) {
        if (a->kind == c->kind && rk_algo_fits(a, c)) {
            double cost = a->cost(&rk_cost_models[c->one_node], c->size, (double)c->bytes);

            if (!best || cost < least) {
                best = a;
                least = cost;
            }
        }
    }
    return best;
}

const struct rk_algo *rk_select(const struct rk_forced *forced, const struct rk_case *c,
                                const char **why)
{
    const struct rk_algo *algo = forced->algo[c->kind];
    const char *reason = "set by RANK_COLL";

    if (algo && !rk_algo_fits(algo, c)) {
        rk_debug("RANK_COLL: %s cannot do a %s of %zu bytes with %d ranks; the table decides",
                 algo->name, rk_coll_name[c->kind], c->bytes, c->size);
        algo = NULL;
    }
    for (int i = 0; i < rk_nrules && !algo; i++) {
        if (!select_matches(&rk_rules[i], c))
            continue;
        algo = rk_algo_find(c->kind, rk_rules[i].algo, strlen(rk_rules[i].algo));
        reason = rk_rules[i].why;
        if (!rk_algo_fits(algo, c))
            algo = NULL;
    }
    if (!algo) {
        algo = least_cost(c);
        reason = "no rule: least estimated time";
    }
    if (why)
        *why = reason;
    return algo;
}

int64_t rk_select_shm_max(const struct rk_forced *forced, enum rk_coll_kind kind, int size)
{
    int64_t room = (int64_t)rk_arena_block_max(kind, size);
    const struct rk_algo *algo = forced->algo[kind];

    if (algo)
        return algo->needs & RK_NEEDS_ARENA ? room : -1;
    for (int i = 0; i < rk_nrules; i++) {
        if (rk_rules[i].kind != kind || strcmp(rk_rules[i].algo, "shm") != 0 ||
            (rk_rules[i].ranks_max && size > rk_rules[i].ranks_max))
            continue;
        return rk_rules[i].bytes_max < (size_t)room ? (int64_t)rk_rules[i].bytes_max : room;
    }
    return -1;
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

static void take_one(const char *item, size_t len, struct rk_forced *out)
{
    size_t key = strcspn(item, ":");
    int kind = kind_by_name(item, key);

    if (kind >= 0)
        out->algo[kind] = rk_algo_find((enum rk_coll_kind)kind, item + key + 1, len - key - 1);
}

rank_status_t rk_forced_parse(const char *text, struct rk_forced *out)
{
    char err[512];

    memset(out, 0, sizeof(*out));
    if (rk_picks_check("RANK_COLL", text, what_there_is(), err, sizeof(err))) {
        rk_error("%s", err);
        return RANK_ERR_CONFIG;
    }
    for (const char *p = text; *p; p += *p == ',') {
        size_t len;

        p += strspn(p, " \t");
        len = strcspn(p, ", \t");
        if (len > 0)
            take_one(p, len, out);
        p += strcspn(p, ",");
    }
    return RANK_OK;
}
