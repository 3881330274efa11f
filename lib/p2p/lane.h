/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h: the small context of a team whose only rank is this one, where several threads call the library.
 *
 * What such a team sends can only be received on it, so it shares nothing with what others do: it has peers (one),
 * requests, matching and a lock of its own, and threads that send to themselves on a team each do not meet. All else
 * of the team (collectives, memory, its handle) is the context's. Below RANK_THREAD_MULTIPLE, and for other teams,
 * team->lane is the context itself.
 *
 * Lanes are kept for later teams when theirs is freed, as users may still hold requests; they end with the context.
 */
#ifndef RK_P2P_LANE_H
#define RK_P2P_LANE_H

#include "lib/core/threads.h"
#include "lib/p2p/team.h"

/* For a team that is being made, with the context's lock held. NULL: out of memory. */
struct rk_ctx *rk_lane_take(struct rk_ctx *ctx);
/* Its team is freed. */
void rk_lane_give(struct rk_ctx *lane);
void rk_lanes_close(struct rk_ctx *ctx);
/* Make all teams and requests of the context and of its lanes invalid handles. Takes no lock: for a forked child. */
void rk_lanes_spoil(struct rk_ctx *ctx);

/* callback.c: callbacks of requests of lanes are called like the context's: bring them there. */
void rk_lanes_collect_calls(struct rk_ctx *ctx);

RK_INLINE struct rk_threads *rk_enter_team(const struct rank_team *team)
{
    return rk_unlikely(rk_team_is_shared(team)) ? rk_enter(team->ctx) : NULL;
}

RK_INLINE struct rk_threads *rk_enter_lane(const struct rank_team *team)
{
    return rk_unlikely(rk_team_is_shared(team)) ? rk_enter(team->lane) : NULL;
}

/* For calls on a team; of messages: the second. What is no team is refused by what follows, without the lock. */
#define RK_ENTER_TEAM(team) RK_ENTERED = rk_enter_team(team)
#define RK_ENTER_LANE(team) RK_ENTERED = rk_enter_lane(team)

#endif
