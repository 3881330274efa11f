/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h: join and leave the world; create teams and symmetric memory.
 *
 * Room: the top room: rank_init, rank_finalize, teams, spawn, symmetric allocation.
 * Callers: the program.
 * Never: is included by another room; runs on the path of a message.
 * Tests: tests/mp/init_finalize.c, tests/mp/team_create.c, tests/mp/rank_spawn.c, tests/mp/startup.c.
 */
#ifndef RK_WORLD_WORLD_H
#define RK_WORLD_WORLD_H

#include "lib/base/ctx.h"
#include "lib/rank.h"

#include <stdbool.h>

struct rank_team;

/*
 * init.c: open a context beside others of this process. launched: it is a rank of the launcher's job, and the call is
 * collective over that; else it is a world of one. Close *out also after an error, unless it is NULL.
 */
rank_status_t rk_world_open(int level, bool progress_thread, bool launched, struct rk_ctx **out);
/* Collective. */
void rk_world_close(struct rk_ctx *ctx);
/* meet.c: set up the node, and the network if needed; then fence. Collective over the job. */
rank_status_t rk_world_meet(struct rk_ctx *ctx);
/* Close what rk_world_open has opened and failed. */
void rk_world_abandon(struct rk_ctx *ctx);

/*
 * api_team.c: create the team of these processes, which include this one, and open its collectives. Collective over
 * it. Takes ownership of world_ranks.
 */
rank_status_t rk_team_open(struct rk_ctx *ctx, uint64_t id, int n, int *world_ranks, struct rank_team **out);

#endif
