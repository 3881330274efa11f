/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affinity.h: the cores that the ranks of a node may use, and whether there are enough for those that have the same ones.
 */
#ifndef RK_NODE_AFFINITY_H
#define RK_NODE_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

struct rk_cores {
    uint64_t word[16]; /* the first 1024 */
};

/* Those that this thread may use; none if the kernel does not say. */
void rk_cores_ask(struct rk_cores *cores);

/* How many cores there are for each of the n ranks that rank me has to share its own with: 0: ranks take turns on them.
 * INT_MAX if nobody knows what me may use; others of whom that is not known do not count. */
int rk_cores_share(const struct rk_cores *of, int n, int me);

#endif
