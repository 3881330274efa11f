/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * validate.c: validate the envelope of a received frame.
 *
 * Over a network a header is untrusted. Its source rank must be the peer's rank in the team, and its tag one that
 * a program can send. Messages for a team that this rank has not created yet are validated when it does.
 */
#include "lib/p2p/p2p_internal.h"

/* Search a team by its id, unless it is the last one's. */
static struct rank_team *validate_find(struct rk_p2p *p2p, uint64_t id)
{
    struct rank_team *team = p2p->last_validated;

    if (rk_likely(team && team->id == id))
        return team;
    team = rk_team_table_find(&p2p->by_id, id);
    if (team)
        p2p->last_validated = team;
    return team;
}

static bool is_member(const struct rank_team *team, uint32_t rank, const struct rk_peer *peer)
{
    return rank < (uint32_t)team->size && rk_team_world_rank(team, (int)rank) == peer->number;
}

bool rk_validate_header(struct rk_ctx *ctx, const struct rk_peer *peer, const struct rk_hdr *hdr)
{
    struct rk_p2p *p2p = ctx->p2p;
    const struct rank_team *team = validate_find(p2p, hdr->team & ~RK_TEAM_COLL);

    if (rk_likely((!team || is_member(team, hdr->src, peer)) &&
                  (hdr->tag <= INT64_MAX || (hdr->team & RK_TEAM_COLL))))
        return true;
    rk_engine_refused(ctx, &p2p->bad_frames);
    return false;
}

void rk_validate_unexpected(struct rk_p2p *p2p, const struct rank_team *team)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &p2p->match.arrived)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        if ((u->team & ~RK_TEAM_COLL) != team->id || is_member(team, u->src, u->peer))
            continue;
        rk_engine_refused(team->ctx, &p2p->bad_frames);
        rk_recv_drop_unexpected(p2p, u);
    }
}
