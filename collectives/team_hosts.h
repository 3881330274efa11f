/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team_hosts.h: find out which ranks of a team share a host, alike on all of them.
 *
 * Each rank has a number for its host: the nonce of the segment that it shares with others, or a hash of the host's name
 * if it shares none. A split exchanges the numbers with its ballots. Other teams exchange them when their first
 * collective begins, by messages of their own. A call that needs the hosts before they are known is built later.
 */
#ifndef RK_COLLECTIVES_TEAM_HOSTS_H
#define RK_COLLECTIVES_TEAM_HOSTS_H

#include "collectives/algo.h"

struct rk_coll_team;

/* Numbers of exchanges among the collectives of a team: no call has them. */
#define RK_HOSTS_SEQ ((UINT64_C(1) << 39) - 1)
#define RK_HOST_ARENA_SEQ (RK_HOSTS_SEQ - 1)

/* Start the exchange unless the hosts are known or it has begun. kind: of the call, for descriptions. False: out of memory. */
bool rk_team_hosts_begin(struct rank_team *team, enum rk_coll_kind kind);

typedef bool rk_team_ready_fn(const struct rk_coll_team *t);
rk_team_ready_fn rk_team_hosts_known;
/* Block until ready. RANK_ERR_PEER_DEAD or RANK_ERR_COLLECTIVE if the team's collectives have failed. */
rank_status_t rk_team_wait(struct rank_team *team, rk_team_ready_fn *ready);

/* Builds the steps of a call. t: of its team, which may be freed meanwhile. */
typedef void rk_build_fn(struct rk_sched *s, struct rk_coll_team *t, const struct rk_coll_call *c);
/* Add a step that waits until ready, then replace it by what build adds. The schedule must not be a kept one. */
void rk_build_later(struct rk_sched *s, struct rk_coll_team *t, const struct rk_coll_call *c, rk_team_ready_fn *ready,
                    rk_build_fn *build);

#endif
