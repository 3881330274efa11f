/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.h: a list of peers and an id.
 *
 * Frames carry the id; both ends find peers by their rank in the list. Teams
 * are made by lib/world (that needs collectives); here is what sending and
 * receiving need of one.
 */
#ifndef RK_P2P_TEAM_H
#define RK_P2P_TEAM_H

#include "lib/base/arg_error.h"
#include "lib/core/engine.h"

#define RK_TEAM_MAGIC 0x7465616du
/* Of one that several threads may use at once: the shortest ways, which know the other only, refuse it. */
#define RK_TEAM_SHARED_MAGIC 0x7465616eu
/* In an id: the collectives' own space of tags. */
#define RK_TEAM_COLL (1ull << 63)
/* In an id: the rest is random, for a team whose members have no numbers in common. */
#define RK_TEAM_MIXED (1ull << 62)

struct rk_coll_team; /* what the collectives keep for a team */

struct rank_team {
    uint32_t magic;
    int rank, size;
    struct rk_ctx *ctx;
    struct rk_ctx *lane; /* whose requests, matching and peers it uses: ctx, or see lane.h */
    uint64_t id;       /* creator's world rank (30 bits), its counter (32 bits), or see RK_TEAM_MIXED */
    uint16_t epoch;
    bool mixed;        /* holds ranks of other jobs: their members' numbers are not agreed on */
    int *world_ranks;  /* members' numbers (lib/core/procs.h); NULL: the world itself */
    struct rk_peer **peers; /* NULL entries until first contact */
    bool local;        /* all members share this node's segment */
    int ndead;         /* members known to be dead */
    int any_source_errors; /* deaths that no ANY_SOURCE receive has reported yet */
    uint32_t counter;  /* splits that this rank has had part in (kept on the world) */
    uint64_t coll_seq; /* collectives started: the upper part of their tags */
    struct rk_coll_team *coll;
    struct rk_link link; /* in the list of all teams of p2p */
};

RK_INLINE int rk_team_world_rank(const struct rank_team *team, int r)
{
    return team->world_ranks ? team->world_ranks[r] : r;
}

struct rk_peer *rk_team_peer_slow(struct rank_team *team, int r);

/* The peer, connected or not; NULL when out of memory. r is in range. */
RK_INLINE struct rk_peer *rk_team_peer(struct rank_team *team, int r)
{
    struct rk_peer *p = team->peers[r];
    return rk_likely(p != NULL) ? p : rk_team_peer_slow(team, r);
}

/* world_ranks is taken over (freed with the team); NULL for the world. */
rank_status_t rk_team_create(struct rk_ctx *ctx, uint64_t id, int rank, int size, int *world_ranks,
                             struct rank_team **out);
void rk_team_destroy(struct rank_team *team);
/* Its user frees it: nobody here will receive what has come on it, or still comes (stale_teams.c). Before rk_team_destroy, and not where
 * all leaves: then the senders hear that. */
void rk_team_forget(struct rank_team *team);

/* Once all ranks of the node have joined: is the team local? */
void rk_team_settle(struct rank_team *team);

/* Calls on it have to be locked. */
RK_INLINE bool rk_team_is_shared(const struct rank_team *team)
{
    return team && team->magic == RK_TEAM_SHARED_MAGIC;
}

/* It is a live team, and no other thread is in the library. */
RK_INLINE bool rk_team_is_plain(const struct rank_team *team)
{
    return team && team->magic == RK_TEAM_MAGIC;
}

/* For the public function call: RANK_ERR_HANDLE or _STATE unless it is a live team. */
RK_INLINE rank_status_t rk_team_check(const char *call, const struct rank_team *team)
{
    return rk_likely(rk_team_is_plain(team)) || rk_team_is_shared(team) ? RANK_OK : rk_arg_handle(call, "team", team);
}

#endif
