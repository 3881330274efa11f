/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stale_teams.c: messages for teams that this rank has freed. No receive can ask for them any more: what is here goes with its team,
 * what comes later is not kept. Their senders go on.
 *
 * A team is freed by each of its ranks when it comes to it, so a message may still be under way. Which teams were freed last is
 * remembered; one that is too long ago is a stranger again, as one that is still to be made: what comes for it is kept. An
 * id comes again after 2^32 more teams of its first rank (lib/world/api_team.c) and no sooner, which takes longer than that.
 */
#include "lib/base/clock.h"
#include "lib/core/threads.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>

enum { SLOTS_LOG2 = 9 };
#define REMEMBERED_NS 600000000000ull

struct rk_freed {
    uint64_t id, at; /* id 0: none; that is the world's */
};

static struct rk_freed *stale_teams_slot_of(const struct rk_p2p *p2p, uint64_t id)
{
    return &p2p->freed[id * 0x9e3779b97f4a7c15ull >> (64 - SLOTS_LOG2)];
}

/* Without memory they are not remembered. The last one that falls into a slot has it. */
static void stale_teams_remember(struct rk_p2p *p2p, uint64_t id)
{
    if (!p2p->freed)
        p2p->freed = calloc((size_t)1 << SLOTS_LOG2, sizeof(struct rk_freed));
    if (p2p->freed)
        *stale_teams_slot_of(p2p, id) = (struct rk_freed){id, rk_clock_ns()};
}

void rk_freed_comes_again(struct rk_p2p *p2p, uint64_t id)
{
    if (p2p->freed && stale_teams_slot_of(p2p, id)->id == id)
        stale_teams_slot_of(p2p, id)->id = 0;
}

bool rk_freed_has(struct rk_p2p *p2p, uint64_t team)
{
    uint64_t id = team & ~RK_TEAM_COLL;
    const struct rk_freed *f = stale_teams_slot_of(p2p, id);

    return rk_unlikely(f->id == id) && id && rk_clock_ns() - f->at < REMEMBERED_NS;
}

void rk_team_forget(struct rank_team *team)
{
    RK_ENTER(team->lane);
    struct rk_p2p *p2p = team->lane->p2p;
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &p2p->match.arrived)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        if ((u->team & ~RK_TEAM_COLL) == team->id)
            rk_recv_drop_kept(p2p, u);
    }
    if (team->size > 1) /* nothing of our own is under way */
        stale_teams_remember(p2p, team->id);
}
