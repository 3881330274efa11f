/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h: provide a context for a team with this rank only.
 *
 * Messages of such a team stay within it. So its self context has one peer, requests, matching and a lock of its
 * own. Threads that send to themselves, each on its own team, do not contend. The rest of the team (collectives,
 * memory, handle) belongs to the context. Below RANK_THREAD_MULTIPLE, and for other teams, team->lane is the
 * context.
 *
 * When its team is freed a self context is kept for a later team, as users may still hold requests; all end with
 * the context.
 */
#ifndef RK_P2P_LANE_H
#define RK_P2P_LANE_H

#include "lib/core/threads.h"
#include "lib/p2p/team.h"

/* For a new team, with the context's lock held. NULL: out of memory. */
struct rk_ctx *rk_lane_take(struct rk_ctx *ctx);
/* Call when its team is freed. */
void rk_lane_give(struct rk_ctx *lane);
void rk_lanes_close(struct rk_ctx *ctx);
/*
 * Invalidate all handles of teams and requests of the context and its self contexts. Takes no lock: for a forked
 * child.
 */
void rk_lanes_spoil(struct rk_ctx *ctx);

/* callback.c: move due callbacks of self contexts to the context. */
void rk_lanes_collect_calls(struct rk_ctx *ctx);

RK_INLINE struct rk_threads *rk_enter_team(const struct rank_team *team)
{
    return rk_unlikely(rk_team_is_shared(team)) ? rk_enter(team->ctx) : NULL;
}

RK_INLINE struct rk_threads *rk_enter_lane(const struct rank_team *team)
{
    return rk_unlikely(rk_team_is_shared(team)) ? rk_enter(team->lane) : NULL;
}

/* For calls on a team; RK_ENTER_LANE for messages. An invalid team is rejected later, without the lock. */
#define RK_ENTER_TEAM(team) RK_ENTERED = rk_enter_team(team)
#define RK_ENTER_LANE(team) RK_ENTERED = rk_enter_lane(team)

#endif
