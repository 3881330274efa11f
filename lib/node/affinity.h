/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affinity.h: find out whether the ranks of a node have enough cores.
 */
#ifndef RK_NODE_AFFINITY_H
#define RK_NODE_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

struct rk_affinity {
    uint64_t word[16]; /* the first 1024 cores */
};

/* Cores that this thread may use; none if the kernel does not report them. */
void rk_affinity_query(struct rk_affinity *cores);

/*
 * Cores for each of the n ranks that share with rank me; 0: ranks take turns. INT_MAX if the set of me is unknown;
 * other ranks with unknown sets do not count.
 */
int rk_affinity_share(const struct rk_affinity *of, int n, int me);

#endif
