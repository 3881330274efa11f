/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affinity.c: find out whether the ranks of a node have enough cores.
 *
 * All ranks can run at once if and only if no group of ranks has fewer cores, taken together, than members (Hall).
 * Of the 2^n groups few matter. Launchers make sets of which any two are disjoint or nested: a core, a part of the
 * machine, all of it. The cores of a group then fall into the largest sets of its members, which are disjoint, and
 * each member lies within one of them: if the group is short of cores, so is the group of all ranks within one of
 * these sets. So it is enough to check the sets that occur. Sets that overlap otherwise (taskset, cpusets) are
 * also checked together with all that they are connected to: this may miss a shortage, but never reports a false
 * one.
 *
 * A rank shares its cores if its set lies within a short one. An unbound rank beside bound ranks is short of cores
 * only if they leave none; then they share theirs with it, too. A rank that has a core alone inside a set that is
 * short elsewhere counts as sharing: a useless yield costs less than a time slice.
 *
 * Each rank decides for itself; no protocol depends on equal decisions.
 */
#include "lib/node/affinity.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

enum { WORDS = sizeof(((struct rk_affinity *)0)->word) / sizeof(uint64_t) };

void rk_affinity_query(struct rk_affinity *cores)
{
    cpu_set_t set;

    memset(cores, 0, sizeof(*cores));
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return;
    for (int c = 0; c < WORDS * 64 && c < CPU_SETSIZE; c++) {
        if (CPU_ISSET(c, &set))
            cores->word[c / 64] |= 1ull << (c % 64);
    }
}

static int affinity_count(const struct rk_affinity *c)
{
    int n = 0;

    for (int i = 0; i < WORDS; i++)
        n += __builtin_popcountll(c->word[i]);
    return n;
}

static bool within(const struct rk_affinity *inner, const struct rk_affinity *outer)
{
    for (int i = 0; i < WORDS; i++) {
        if (inner->word[i] & ~outer->word[i])
            return false;
    }
    return true;
}

static bool touch(const struct rk_affinity *a, const struct rk_affinity *b)
{
    for (int i = 0; i < WORDS; i++) {
        if (a->word[i] & b->word[i])
            return true;
    }
    return false;
}

/* Has an earlier rank the same set? */
static bool seen(const struct rk_affinity *of, int i)
{
    for (int k = 0; k < i; k++) {
        if (memcmp(&of[k], &of[i], sizeof(of[i])) == 0)
            return true;
    }
    return false;
}

/* Cores in the set per rank within it. */
static int share_of(const struct rk_affinity *of, int n, const struct rk_affinity *cores)
{
    int ranks = 0;

    for (int i = 0; i < n; i++) /* an empty set touches nothing */
        ranks += touch(&of[i], cores) && within(&of[i], cores);
    return affinity_count(cores) / ranks;
}

/* Add all sets that overlap cores; returns false if that adds nothing. */
static bool affinity_grow(const struct rk_affinity *of, int n, struct rk_affinity *cores)
{
    bool grew = false;

    for (int i = 0; i < n; i++) {
        if (!touch(&of[i], cores) || within(&of[i], cores))
            continue;
        for (int w = 0; w < WORDS; w++)
            cores->word[w] |= of[i].word[w];
        grew = true;
    }
    return grew;
}

int rk_affinity_share(const struct rk_affinity *of, int n, int me)
{
    struct rk_affinity all = of[me];
    int least, share;

    if (affinity_count(&all) == 0)
        return INT_MAX;
    while (affinity_grow(of, n, &all))
        ;
    least = share_of(of, n, &all);
    for (int i = 0; i < n; i++) {
        if (!within(&of[me], &of[i]) || seen(of, i))
            continue;
        share = share_of(of, n, &of[i]);
        least = share < least ? share : least;
    }
    return least;
}
