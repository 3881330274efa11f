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
struct rk_conn;

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

/* For the answers of peers in rank_team_free and rank_finalize. */
enum { RK_CLOSE_NS = 1000000000 };
/* api_conn.c: close listeners and connections, within timeout_ns, and end handshakes. No-op if there are none. */
rank_status_t rk_world_close_conns(struct rk_ctx *ctx, int64_t timeout_ns);
/* Free the connections that a thread was still using when they were ended. No thread is in a call now. */
void rk_world_free_conns(struct rk_ctx *ctx);
/* Disconnect, and free connection and team. */
rank_status_t rk_world_end_conn(struct rk_conn *conn, int64_t timeout_ns);
/* rank_team_free of a connection. Returns false if the team is none. */
bool rk_world_free_conn(struct rank_team *team);
/*
 * api_team.c: create the team of these processes, which include this one, and open its collectives. Collective over
 * it. Takes ownership of world_ranks.
 */
rank_status_t rk_team_open(struct rk_ctx *ctx, uint64_t id, int n, int *world_ranks, struct rank_team **out);

#endif
