/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_arena.h: give the ranks of a team that share a host two arenas.
 *
 * The first call of a team that runs on two levels starts the agreement of each host: its first rank takes the arenas, and
 * the others report if they share its segment and have opened them. The host uses them if all of its ranks have. Otherwise
 * its phases are messages. Other hosts do not take part.
 *
 * First phases of calls use one arena, and last ones the other. So a call begins while those before it cross the network.
 * Calls use each arena in the order of their starts, and a first phase waits for no last one, so there is no cycle.
 *
 * Messages of the agreement have tags of their own, so it does not matter which call starts it on a rank. Calls wait for
 * it before they build their steps, so all ranks of a host build alike.
 */
#ifndef RK_COLLECTIVES_HOST_ARENA_H
#define RK_COLLECTIVES_HOST_ARENA_H

#include "collectives/team_hosts.h"

/* Start the agreement unless it has begun. kind: of the call, for descriptions. The hosts are known. False: out of memory. */
bool rk_host_arena_begin(struct rank_team *team, struct rk_coll_team *t, enum rk_coll_kind kind);
bool rk_host_arena_agreed(const struct rk_coll_team *t);
/* No-op if the team has none. */
void rk_host_arena_close(struct rk_coll_team *t);

#endif
