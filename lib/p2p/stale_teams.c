/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stale_teams.c: discard messages for teams that this rank has freed.
 *
 * No receive can match them any more: stored ones go with their team, later ones are not stored. Their senders
 * complete.
 *
 * The ranks of a team free it at different times, so messages may still be on their way. The teams freed last are
 * remembered; an older one counts as unknown, like a team still to be created, and its messages are stored. An id
 * returns after 2^32 more teams of its first rank (lib/world/api_team.c).
 */
#include "lib/base/clock.h"
#include "lib/core/threads.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>

enum { SLOTS_LOG2 = 9 };
#define REMEMBERED_NS 600000000000ull

struct rk_stale {
    uint64_t id, at; /* id 0 (the world's): none */
};

static struct rk_stale *stale_teams_slot_of(const struct rk_p2p *p2p, uint64_t id)
{
    return &p2p->freed[id * 0x9e3779b97f4a7c15ull >> (64 - SLOTS_LOG2)];
}

/* Without memory they are not remembered. A slot keeps the latest team. */
static void stale_teams_remember(struct rk_p2p *p2p, uint64_t id)
{
    if (!p2p->freed)
        p2p->freed = calloc((size_t)1 << SLOTS_LOG2, sizeof(struct rk_stale));
    if (p2p->freed)
        *stale_teams_slot_of(p2p, id) = (struct rk_stale){id, rk_clock_ns()};
}

void rk_stale_remove(struct rk_p2p *p2p, uint64_t id)
{
    if (p2p->freed && stale_teams_slot_of(p2p, id)->id == id)
        stale_teams_slot_of(p2p, id)->id = 0;
}

bool rk_stale_has(struct rk_p2p *p2p, uint64_t team)
{
    uint64_t id = team & ~RK_TEAM_COLL;
    const struct rk_stale *f = stale_teams_slot_of(p2p, id);

    if (rk_likely(f->id != id) || !id || rk_clock_ns() - f->at >= REMEMBERED_NS)
        return false;
    /* A schedule of a freed team may still need the frames of its collective. */
    return !(team & RK_TEAM_COLL) || !rk_team_table_find(&p2p->by_id, id);
}

void rk_team_discard(struct rank_team *team)
{
    RK_ENTER(team->ctx);
    struct rk_p2p *p2p = team->ctx->p2p;
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &p2p->match.arrived)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        if (u->team == team->id || (!team->freed && u->team == (team->id | RK_TEAM_COLL)))
            rk_recv_drop_unexpected(p2p, u);
    }
    if (team->size > 1) /* no own message is on its way */
        stale_teams_remember(p2p, team->id);
}
