/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affinity.c: see affinity.h.
 *
 * All ranks can run at once if and only if each can be given a core of its own, and that is so if and only if no group of ranks
 * has fewer cores, taken together, than members (Hall). There are 2^n groups, but few have to be looked at: of the sets that
 * launchers make, a core, a part of the machine, all of it, any two are disjoint, or one lies within the other. Then the
 * cores of a group fall into the largest sets of its members, which are disjoint, and each member lies within one of them:
 * if the group is short of cores, so is the group of all ranks within one of these sets. So it is enough to look at the
 * sets that occur. Sets that overlap in other ways (taskset, cpusets) are looked at together, too, with all that
 * they hang together with: that finds less than all, but never takes for short what is not.
 *
 * A rank shares its cores if its set lies within one that is short. One that may run anywhere beside ranks that are bound
 * is short of cores only if they leave none; then those share theirs with it, too. Who has a core alone inside a set that is short for
 * what happens in another part of it, is taken to share: a yield in vain costs less than a time slice.
 *
 * Each rank judges for itself, and nothing that two ranks do depends on both having judged the same.
 */
#include "lib/node/affinity.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

enum { WORDS = sizeof(((struct rk_cores *)0)->word) / sizeof(uint64_t) };

void rk_cores_ask(struct rk_cores *cores)
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

static int affinity_count(const struct rk_cores *c)
{
    int n = 0;

    for (int i = 0; i < WORDS; i++)
        n += __builtin_popcountll(c->word[i]);
    return n;
}

static bool within(const struct rk_cores *inner, const struct rk_cores *outer)
{
    for (int i = 0; i < WORDS; i++) {
        if (inner->word[i] & ~outer->word[i])
            return false;
    }
    return true;
}

static bool touch(const struct rk_cores *a, const struct rk_cores *b)
{
    for (int i = 0; i < WORDS; i++) {
        if (a->word[i] & b->word[i])
            return true;
    }
    return false;
}

/* Some rank before has the same set. */
static bool seen(const struct rk_cores *of, int i)
{
    for (int k = 0; k < i; k++) {
        if (memcmp(&of[k], &of[i], sizeof(of[i])) == 0)
            return true;
    }
    return false;
}

/* Of cores that hold at least one rank's. */
static int share_of(const struct rk_cores *of, int n, const struct rk_cores *cores)
{
    int ranks = 0;

    for (int i = 0; i < n; i++) /* an empty set touches nothing */
        ranks += touch(&of[i], cores) && within(&of[i], cores);
    return affinity_count(cores) / ranks;
}

/* All that have a core in common with cores are added to it; false if that adds nothing. */
static bool affinity_grow(const struct rk_cores *of, int n, struct rk_cores *cores)
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

int rk_cores_share(const struct rk_cores *of, int n, int me)
{
    struct rk_cores all = of[me];
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
