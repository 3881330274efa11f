/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.h: select an algorithm by RANK_COLL, rules and cost formulas.
 *
 * The first of these that gives an algorithm which supports the case decides:
 *
 * 1. RANK_COLL.
 * 2. The rules, from top to bottom.
 * 3. The formulas of table.c for this block, size and locality: the least time; of equal ones the first in the table.
 *
 * Host memory has a rule for every case. The formulas serve memory kinds and collectives without rules.
 */
#ifndef RK_COLL_SELECT_H
#define RK_COLL_SELECT_H

#include "collectives/algo.h"

#include <stdio.h>

enum rk_nodes { RK_NODES_ANY, RK_NODES_ONE, RK_NODES_MANY };

struct rk_rule {
    enum rk_coll_kind kind;
    rank_mem_kind_t mem;
    enum rk_nodes nodes;
    int ranks_max;     /* in the team; 0: any number */
    size_t bytes_max;  /* of a block; RK_ANY_BYTES: no limit */
    const char *algo;
    const char *why;
};

#define RK_ANY_BYTES SIZE_MAX

extern const struct rk_rule rk_rules[];
extern const int rk_nrules;

/* Input of the selection: only facts that are equal on every rank. Different choices would deadlock. */
struct rk_case {
    enum rk_coll_kind kind;
    rank_mem_kind_t mem;
    bool one_node;
    bool ordered; /* the operation is not commutative: reduce in the order of ranks */
    bool arena; /* direct code is possible: the team has an arena, and the call blocks */
    int size;
    int64_t count;
    size_t bytes;
};

/* Choices of RANK_COLL; NULL: none. */
struct rk_forced {
    const struct rk_algo *algo[RK_COLL_COUNT];
};

/* Parse "allreduce:ring,bcast:binomial". RANK_ERR_CONFIG, which is logged, if it is invalid. */
rank_status_t rk_forced_parse(const char *text, struct rk_forced *out);

/* Never NULL. why, if not NULL, gets the reason. */
const struct rk_algo *rk_select(const struct rk_forced *forced, const struct rk_case *c,
                                const char **why);

/* Does the algorithm support this case? */
bool rk_algo_fits(const struct rk_algo *algo, const struct rk_case *c);

/* Maximum block for which blocking calls of a team with an arena use shared memory; -1: none. */
int64_t rk_select_shm_max(const struct rk_forced *forced, enum rk_coll_kind kind, int size);

#endif
