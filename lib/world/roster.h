/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roster.h: ranks of one job, told to those of another.
 *
 * A roster is what the first rank of each side gathers and hands to the other side: for each rank its
 * process id, the name and size of its job, its ucx card, and whether cores are scarce on its host. Who
 * takes one knows its ranks by number from then on (lib/core/procs.h), and hears of their deaths.
 */
#ifndef RK_WORLD_ROSTER_H
#define RK_WORLD_ROSTER_H

#include "lib/p2p/team.h"

struct rk_roster {
    int n;
    int64_t stride; /* bytes of an entry: the longest card decides */
    char *entries;
};

void rk_roster_clear(struct rk_roster *r);
/* Room for n entries. */
rank_status_t rk_roster_make(struct rk_roster *r, int n, int64_t stride);

/* Collective over team: the worst status of all, and the stride that all their cards need. */
rank_status_t rk_roster_agree(struct rank_team *team, rank_status_t mine, int64_t *stride);
/* Collective over team: r, made by the root for all of them, is filled there. */
rank_status_t rk_roster_gather(struct rank_team *team, int root, int64_t stride,
                               struct rk_roster *r);
/* Get to know them. numbers[i]: of entry i. */
rank_status_t rk_roster_take(struct rk_ctx *ctx, const struct rk_roster *r, int *numbers);

/* The same status on all, the worst of any. Collective over team. */
rank_status_t rk_worst_of_all(struct rank_team *team, rank_status_t mine);

#endif
