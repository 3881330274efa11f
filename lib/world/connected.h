/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connected.h: jobs that belong together because one has spawned the other, and how they part.
 *
 * To the launcher such jobs are connected: it tells each of deaths in the other, and ends one with
 * the other. That has to be so as long as a rank of one may have a team with a rank of the other.
 * All such teams come from the one that rank_spawn gave, so its members, all together, can see when
 * the last is freed. Each keeps a list of them.
 */
#ifndef RK_WORLD_CONNECTED_H
#define RK_WORLD_CONNECTED_H

#include "lib/p2p/team.h"

/* The team is one that rank_spawn has made. */
rank_status_t rk_family_add(const struct rank_team *both);
/* It has not come to that. */
void rk_family_drop(const struct rank_team *both);
/* NULL state is fine. */
void rk_families_close(struct rk_ctx *ctx);

/* Before a team of several jobs is freed: waits until all its ranks do, or finalize, or one is dead. If no team is
 * left that jobs of this one have in common, they part. */
void rk_family_part(struct rank_team *team);
/* In rank_finalize: as much for all such teams, at once, for nobody knows in which order others do it; and nobody
 * parts. */
void rk_family_leave(struct rk_ctx *ctx);

#endif
