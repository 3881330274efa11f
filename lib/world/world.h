/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h: the roof: what needs every room below it: joining and leaving, making teams and
 * symmetric memory.
 */
#ifndef RK_WORLD_WORLD_H
#define RK_WORLD_WORLD_H

#include "lib/base/ctx.h"
#include "lib/rank.h"

struct rank_team;

/* The context that rank_init made; NULL outside init and finalize. */
struct rk_ctx *rk_world_ctx(void);

/* init.c: for PMIx's thread: what the context's own thread waits for may have come. */
void rk_world_wake(void *ctx);
/* init.c: open the ucx channel. Its card is in the engine, for whoever tells it on. */
rank_status_t rk_world_open_ucx(struct rk_ctx *ctx);

/* spawn.c: the ranks of a job that rank_spawn started meet those who spawned it. Collective over
 * the world, as part of joining. */
rank_status_t rk_spawn_join(struct rk_ctx *ctx);
/* The id of a team whose members have no numbers in common. */
uint64_t rk_team_random_id(void);

#endif
