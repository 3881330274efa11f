/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roster.h: exchange the addresses of two jobs' ranks.
 *
 * The first rank of each side gathers a roster and sends it to the other side. An entry has the process id, name
 * and size of the job, the ucx address blob, and whether the host has fewer cores than ranks. A rank that stores a
 * roster numbers its processes (lib/core/procs.h), and their deaths are reported to it.
 */
#ifndef RK_DPM_ROSTER_H
#define RK_DPM_ROSTER_H

#include "lib/p2p/team.h"

struct rk_roster {
    int n;
    int64_t stride; /* size of an entry, from the longest blob */
    char *entries;
};

void rk_roster_clear(struct rk_roster *r);
/* Allocate n entries. */
rank_status_t rk_roster_make(struct rk_roster *r, int n, int64_t stride);

/* Collective over team: returns the worst status; sets the stride that all blobs need. */
rank_status_t rk_roster_agree(struct rank_team *team, rank_status_t mine, int64_t *stride);
/* Collective over team: fills r at the root, which has allocated it for all. */
rank_status_t rk_roster_gather(struct rank_team *team, int root, int64_t stride,
                               struct rk_roster *r);
/* Store it: number its processes. epoch: of the peers (procs.h). numbers[i]: of entry i. */
rank_status_t rk_roster_take(struct rk_ctx *ctx, const struct rk_roster *r, uint16_t epoch, int *numbers);

#endif
