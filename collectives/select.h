/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.h: select an algorithm by RANK_COLL, rules and cost formulas.
 *
 * The first of these that gives an algorithm which supports the case decides:
 *
 * 1. RANK_COLL, its words from left to right.
 * 2. The rules, from top to bottom. By the formulas of table.c a rule's algorithm may take at most RK_COST_MAX times
 *    the least time of those that support the case; else the rule is passed over. Straight code in shared memory is
 *    exempt: its limits are measured.
 * 3. The formulas for this block, size and locality: the least time; of equal ones the first in the table.
 */
#ifndef RK_COLL_SELECT_H
#define RK_COLL_SELECT_H

#include "collectives/algo.h"

#include <stdio.h>

enum rk_nodes { RK_NODES_ANY, RK_NODES_ONE, RK_NODES_MANY };

struct rk_rule {
    enum rk_coll_kind kind;
    rank_mem_kind_t mem; /* RANK_MEM_CUDA: only if some rank of the node may have device memory */
    enum rk_nodes nodes;
    bool persistent; /* only for persistent requests */
    int ranks_max;     /* in the team; 0: any number */
    int per_node_min;  /* ranks on the host with the fewest; 0: any number */
    size_t bytes_min, bytes_max; /* of a block; RK_ANY_BYTES: no limit */
    size_t total_max;  /* bytes of a block times ranks; 0: no limit */
    const char *algo;
    const char *why;
};

#define RK_ANY_BYTES SIZE_MAX
#define RK_COST_MAX 2.0

enum { RK_RULES_MAX = 160, RK_PICKS_MAX = 64 };

extern const struct rk_rule rk_rules[];
extern const int rk_nrules;

/* Input of the selection: only facts that are equal on every rank. Different choices would deadlock. */
struct rk_case {
    enum rk_coll_kind kind;
    rank_mem_kind_t mem; /* RANK_MEM_CUDA: one node, and some of its ranks may have device memory */
    bool one_node;
    bool ordered;  /* the operation is not commutative: reduce in the order of ranks */
    bool balanced; /* RANK_COLL_REPRODUCIBLE, of a reduction: by one tree */
    bool arena; /* direct code is possible: the team has an arena, and the call blocks */
    bool cells; /* the team's arena has cells */
    bool persistent;
    int size;
    int nodes, per_node; /* hosts, and ranks on the one with the fewest; 0: not known to all ranks */
    int64_t count;
    size_t bytes;
};

/* A word of RANK_COLL: an algorithm for blocks of from to to bytes. */
struct rk_pick {
    const struct rk_algo *algo;
    size_t from, to;
};

/* What decides: names are resolved once, here. */
struct rk_forced {
    int npicks;
    struct rk_pick pick[RK_PICKS_MAX];
    const struct rk_algo *rule[RK_RULES_MAX]; /* of rk_rules */
};

/*
 * Parse "allreduce:ring@64K-1M,bcast:binomial", and resolve the rules. RANK_ERR_CONFIG, which is logged, if it is
 * invalid.
 */
rank_status_t rk_forced_parse(const char *text, struct rk_forced *out);

/* Never NULL. why, if not NULL, gets the reason. */
const struct rk_algo *rk_select(const struct rk_forced *forced, const struct rk_case *c,
                                const char **why);

/* The same; passed is called for each word and rule above the choice. rule: index in rk_rules, -1: of RANK_COLL. */
typedef void rk_passed_fn(void *arg, int rule, const struct rk_algo *algo, const char *why);
const struct rk_algo *rk_select_explain(const struct rk_forced *forced, const struct rk_case *c, const char **why,
                                        int *rule, rk_passed_fn *passed, void *arg);

/* NULL if the algorithm supports this case; else what it lacks. */
const char *rk_algo_unfit(const struct rk_algo *algo, const struct rk_case *c);

RK_INLINE bool rk_algo_fits(const struct rk_algo *algo, const struct rk_case *c)
{
    return !rk_algo_unfit(algo, c);
}

/*
 * Maximum block up to which all blocking calls of a team with an arena run straight code; -1: none. mem and
 * balanced: as in struct rk_case.
 */
int64_t rk_select_shm_max(const struct rk_forced *forced, enum rk_coll_kind kind, rank_mem_kind_t mem, int size, bool balanced);

/* Has the collective algorithms that sum by one tree, which RANK_COLL_REPRODUCIBLE demands? */
bool rk_coll_balances(enum rk_coll_kind kind);

#endif
