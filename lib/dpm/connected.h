/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connected.h: keep track of jobs connected by rank_spawn, and disconnect them.
 *
 * The launcher reports deaths between connected jobs and ends them together. Jobs must stay connected while ranks
 * of both share a team. All such teams derive from the one that rank_spawn created, so its members together can
 * detect when the last is freed. Each rank keeps a list of them.
 */
#ifndef RK_DPM_CONNECTED_H
#define RK_DPM_CONNECTED_H

#include "lib/p2p/team.h"

struct rk_pending;

/* api_spawn.c: connect the ranks of a spawned job with their parents. Collective over the world, in rank_init. */
rank_status_t rk_connected_join(struct rk_ctx *ctx);

/* Add the team that rank_spawn has created. */
rank_status_t rk_connected_add(const struct rank_team *both);
/* Undo that after a failure. */
void rk_connected_drop(const struct rank_team *both);
/* No-op if the state is NULL. */
void rk_connected_close(struct rk_ctx *ctx);

/*
 * Call before a team of several jobs is freed: waits until all its ranks do so, or finalize, or one is dead.
 * Disconnects the jobs if they share no other team.
 */
void rk_connected_disconnect(struct rank_team *team);
/* Wait for an answer of the launcher, at most limit_ns. 0: for ever. */
void rk_connected_await(struct rk_ctx *ctx, struct rk_pending *answer, int64_t limit_ns);
/* Give back the numbers of jobs that are gone: disconnected or dead, and in no team. Not from within progress. */
void rk_connected_sweep(struct rk_ctx *ctx);
/*
 * For rank_finalize: the same for all such teams at once, as their order differs between ranks; disconnects
 * nothing.
 */
void rk_connected_leave(struct rk_ctx *ctx);

#endif
