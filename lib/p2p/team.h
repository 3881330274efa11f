/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.h: represent a team: a list of peers and an id.
 *
 * Frames carry the id; both ends find peers by rank in the list. lib/world creates teams, which needs collectives;
 * here is what sending and receiving need.
 */
#ifndef RK_P2P_TEAM_H
#define RK_P2P_TEAM_H

#include "lib/base/arg_error.h"
#include "lib/core/threads.h"

#define RK_TEAM_MAGIC 0x7465616du
/* Of a team for several threads, or for other kinds of memory than host: the fast paths reject it. */
#define RK_TEAM_SHARED_MAGIC 0x7465616eu
/* In an id: space of the collectives' tags. */
#define RK_TEAM_COLL (1ull << 63)
/*
 * In a tag of that space: of rank_team_create, and no collective. It goes on where a member of the team is dead, while
 * collectives end.
 */
#define RK_TAG_CREATE (1ull << 63)
/* In an id: the rest is random, as the members share no numbering. */
#define RK_TEAM_MIXED (1ull << 62)

struct rk_coll_team; /* per-team state of the collectives */
struct rk_death_watch;

struct rank_team {
    uint32_t magic;
    int rank, size;
    struct rk_ctx *ctx;
    uint64_t id;       /* world rank of the creator (30 bits), its counter (32 bits), or see RK_TEAM_MIXED */
    bool mixed;        /* has ranks of other jobs; their numbers are not agreed on */
    int *world_ranks;  /* numbers of the members (lib/core/procs.h); NULL: the world */
    struct rk_peer **peers; /* NULL entries until first contact */
    bool local;        /* all members are on this node's segment */
    union {
        struct {
            int ndead;           /* members known to be dead */
            uint32_t coll_failed; /* its collectives have failed, and how (collectives/coll_failure.h) */
        };
        uint64_t coll_over; /* both: if not 0, no collective begins */
    };
    uint64_t coll_failed_at; /* of coll_failed: the first collective that fails, by number; those before it go on */
    int any_source_errors; /* deaths not yet reported by an ANY_SOURCE receive */
    uint32_t counter;  /* splits in which this rank took part (of the world) */
    uint64_t coll_seq; /* collectives started: upper part of their tags */
    struct rk_coll_team *coll;
    struct rk_link link; /* in p2p's list of all teams */
    struct rk_death_watch *watch; /* on_death.c; NULL: none */
    bool freed;          /* by the user, with operations pending on it */
    uint32_t pending;    /* of a freed team: receives and schedules, when they were last counted */
};

/* An id for a team of members without a common numbering. */
uint64_t rk_team_random_id(void);
/* The same, which no other process can guess. Returns false if the kernel gives no random bytes. */
bool rk_team_secret_id(uint64_t *id);
/* Epoch of the peers that meet by a team: all sides have its id. */
RK_INLINE uint16_t rk_team_epoch(uint64_t id)
{
    return (uint16_t)(id ^ id >> 16 ^ id >> 32 ^ id >> 48);
}

RK_INLINE int rk_team_world_rank(const struct rank_team *team, int r)
{
    return team->world_ranks ? team->world_ranks[r] : r;
}

/* Team with this id; NULL if there is none. */
struct rank_team *rk_team_find(const struct rk_ctx *ctx, uint64_t id);

struct rk_peer *rk_team_peer_slow(struct rank_team *team, int r);

/* Peer of a valid r, connected or not; NULL if out of memory. */
RK_INLINE struct rk_peer *rk_team_peer(struct rank_team *team, int r)
{
    struct rk_peer *p = team->peers[r];
    return rk_likely(p != NULL) ? p : rk_team_peer_slow(team, r);
}

/* Takes ownership of world_ranks (NULL: the world), unless it fails; they are freed with the team. */
rank_status_t rk_team_create(struct rk_ctx *ctx, uint64_t id, int rank, int size, int *world_ranks,
                             struct rank_team **out);
void rk_team_destroy(struct rank_team *team);
/*
 * The user frees the team: discard stored and later messages (stale_teams.c). Call before rk_team_destroy, but not
 * in finalize, which senders detect. With team->freed set, those of collectives stay.
 */
void rk_team_discard(struct rank_team *team);
/* The user frees a team. Its handle is invalid from now on. The team stays until no operation is pending on it. */
void rk_team_close(struct rank_team *team);
/* Destroy the teams that were closed, and have no pending operation any more. */
void rk_team_destroy_idle(struct rk_ctx *ctx);

/* The program is told of deaths no more. No-op without rank_on_death. */
void rk_death_watch_end(struct rank_team *team);
/* The same for all teams, with the lock. */
void rk_death_watches_end(struct rk_ctx *ctx);

/* Call once all ranks of the node have joined: is the team local? */
void rk_team_settle(struct rank_team *team);

/* Do calls on it have to lock, and to find the kind of buffers? */
RK_INLINE bool rk_team_is_shared(const struct rank_team *team)
{
    return team && team->magic == RK_TEAM_SHARED_MAGIC;
}

/* For calls on a team. An invalid team is rejected later, without the lock. */
RK_INLINE struct rk_threads *rk_enter_team(const struct rank_team *team)
{
    return rk_unlikely(rk_team_is_shared(team)) ? rk_enter(team->ctx) : NULL;
}
#define RK_ENTER_TEAM(team) RK_ENTERED = rk_enter_team(team)

/* A live team, in a library with a single thread and host memory only? */
RK_INLINE bool rk_team_is_plain(const struct rank_team *team)
{
    return team && team->magic == RK_TEAM_MAGIC;
}

/* View of a buffer that a call on the team passes. */
RK_INLINE struct rk_view rk_team_view(const struct rank_team *team, const void *buf, size_t bytes)
{
    return rk_unlikely(rk_team_is_shared(team)) ? rk_view_of(buf, bytes)
                                                : (struct rk_view){(void *)(uintptr_t)buf, bytes, NULL};
}

/* Status of calls on a team that has lost a member. */
rank_status_t rk_team_lost(const struct rank_team *team);

/* For the public function call: RANK_ERR_HANDLE or RANK_ERR_STATE unless it is a live team. */
RK_INLINE rank_status_t rk_team_check(const char *call, const struct rank_team *team)
{
    return rk_likely(rk_team_is_plain(team)) || rk_team_is_shared(team) ? RANK_OK : rk_arg_handle(call, "team", team);
}

#endif
