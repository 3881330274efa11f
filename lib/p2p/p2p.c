/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.c: keep the room's state, dispatch its frames, handle deaths.
 */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>
#include <string.h>

static void on_matched(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                       const void *payload, const struct rk_rndv *rndv)
{
    struct rank_request *req;
    struct rk_id id;

    (void)rndv;
    if (hdr->len != sizeof(id)) {
        rk_engine_refused(ctx, &ctx->p2p->bad_frames);
        return;
    }
    memcpy(&id, payload, sizeof(id));
    req = rk_req_find(ctx, id);
    if (req && req->peer == peer && req->type == RK_REQ_SEND)
        rk_req_complete(req, RANK_OK);
}

static void on_credit(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                      const void *payload, const struct rk_rndv *rndv)
{
    (void)payload;
    (void)rndv;
    if (rk_likely(hdr->tag <= (uint64_t)peer->eager_out)) {
        peer->eager_out -= (int64_t)hdr->tag;
        return;
    }
    peer->eager_out = 0; /* more than was sent: the peer is faulty, which is harmless here */
    rk_engine_refused(ctx, &ctx->p2p->bad_frames);
}

static bool team_has(const struct rank_team *team, const struct rk_peer *peer)
{
    for (int i = 0; i < team->size; i++) {
        if (rk_team_world_rank(team, i) == peer->number)
            return true;
    }
    return false;
}

static void p2p_on_death(struct rk_ctx *ctx, struct rk_peer *peer)
{
    struct rk_link *l;

    ctx->p2p->deaths = true;
    ctx->p2p->deaths_due = ctx->p2p->nwatches > 0;
    rk_req_each_named(ctx, rk_req_fail_if_of, peer); /* synchronous sends without a reply are found by id only */
    rk_list_for_each(l, &ctx->p2p->teams)
    {
        struct rank_team *team = rk_list_entry(l, struct rank_team, link);
        if (team_has(team, peer)) {
            team->ndead++;
            team->any_source_errors = 1;
        }
    }
    rk_recv_peer_died(ctx, peer);
}

static void p2p_on_drop(struct rk_ctx *ctx, struct rk_peer *peer)
{
    struct rk_link *l, *next;

    rk_req_each_named(ctx, rk_req_fail_if_of, peer);
    rk_recv_peer_died(ctx, peer);
    rk_list_for_each_safe(l, next, &ctx->p2p->match.arrived)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        if (u->peer == peer)
            rk_recv_drop_unexpected(ctx->p2p, u);
    }
    if (peer->by_conn)
        rk_unexpected_trim(ctx->p2p);
}

/* A million envelopes, and many windows. */
enum { KEPT_MAX = 256 << 20, KEPT_CHUNK = 256 /* some pages, which can be given back */ };

static rank_status_t p2p_open(struct rk_ctx *ctx)
{
    struct rk_p2p *p2p = calloc(1, sizeof(*p2p));

    if (!p2p)
        return RANK_ERR_NO_MEMORY;
    ctx->p2p = p2p;
    p2p->kept_slab = (struct rk_slab)RK_SLAB_INIT(sizeof(struct rk_unexpected), KEPT_CHUNK);
    rk_list_init(&p2p->teams);
    rk_list_init(&p2p->probed);
    rk_early_init(&p2p->ahead);
    p2p->kept_max = (rk_conf.unexpected_max > KEPT_MAX ? rk_conf.unexpected_max : KEPT_MAX) + rk_conf.eager_window;
    if (rk_match_init(&p2p->match))
        return RANK_ERR_NO_MEMORY;
    return RANK_OK;
}

static void p2p_close(struct rk_ctx *ctx)
{
    struct rk_p2p *p2p = ctx->p2p;

    if (!p2p)
        return;
    while (!rk_list_empty(&p2p->teams))
        rk_team_destroy(rk_list_entry(p2p->teams.next, struct rank_team, link));
    if (p2p->bad_frames)
        rk_warn("%llu broken frames of messages came", (unsigned long long)p2p->bad_frames);
    rk_unexpected_free_all(p2p);
    rk_early_close(ctx);
    rk_match_destroy(&p2p->match);
    free(p2p->freed);
    free(p2p);
    ctx->p2p = NULL;
}

static void p2p_spoil(struct rk_ctx *ctx)
{
    struct rk_link *l;

    rk_requests_spoil(ctx);
    rk_list_for_each(l, &ctx->p2p->teams)
        rk_list_entry(l, struct rank_team, link)->magic = 0;
}

const struct rk_room rk_room_p2p = {
    .name = "p2p",
    .open = p2p_open,
    .close = p2p_close,
    .progress = rk_callbacks_progress,
    .progress_on_demand = true,
    .peer_died = p2p_on_death,
    .peer_dropped = p2p_on_drop,
    .spoil = p2p_spoil,
    .requests = 1 << RK_REQ_SEND | 1 << RK_REQ_RECV,
    .describe = rk_message_describe,
    .explain = rk_message_explain,
    .small = rk_recv_on_small,
    .is_valid = rk_validate_header,
    .frames = {
        {RK_KIND_MSG, rk_recv_on_frame},
        {RK_KIND_SMSG, rk_recv_on_frame},
        {RK_KIND_RNDV, rk_recv_on_frame},
        {RK_KIND_MATCHED, on_matched},
        {RK_KIND_CREDIT, on_credit},
    },
};
