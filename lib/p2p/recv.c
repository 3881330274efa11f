/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recv.c: receive: match a message with its receive, or store it as unexpected.
 */
#include "lib/data/copy_small.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/core/conn_memory.h"
#include "lib/data/iov.h"
#include "lib/p2p/p2p_internal.h"
#include "lib/p2p/recv_start.h"

#include <stdlib.h>
#include <string.h>

static RK_COLD void no_memory_for(struct rk_peer *peer)
{
    /* The message is lost, and with it the order of all later ones: disconnect. */
    rk_peer_condemn(peer, "out of memory for a message of it that no receive waits for");
}

rank_status_t rk_recv_truncated(int source, uint64_t tag, uint64_t sent, uint64_t got)
{
    return rk_arg_error(RANK_ERR_TRUNCATED, "", "a message of %llu bytes from rank %d with tag %lld came into a receive of "
                        "%llu bytes: the rest is lost", (unsigned long long)sent, source, (long long)tag,
                        (unsigned long long)got);
}

void rk_message_explain(const struct rank_request *req)
{
    if (req->type == RK_REQ_RECV && req->status == RANK_ERR_TRUNCATED)
        rk_recv_truncated((int)req->env_src, req->env_tag, req->sent, req->got);
}

/* ------------------------------------------------------------ message and receive */

RK_INLINE void set_envelope(struct rank_request *req, uint32_t src, uint64_t tag, uint64_t sent)
{
    req->env_src = src;
    req->env_tag = tag;
    req->sent = sent;
    req->got = sent < req->view.bytes ? sent : req->view.bytes;
}

/* To a list, or memory of another kind. */
static __attribute__((noinline)) void recv_unpack(struct rank_request *req, const void *payload)
{
    rank_status_t st = req->view.ops->unpack(&req->view, 0, payload, req->got);

    rk_req_end(req, req->sent > req->got && !st ? RANK_ERR_TRUNCATED : st);
}

RK_INLINE void recv_deliver(struct rank_request *req, const void *payload)
{
    /*
     * ops is NULL for one piece, and this tests for 8 bytes; otherwise it is an address, larger than any frame.
     * One test instead of two.
     */
    if (req->got - 8 == (uintptr_t)req->view.ops) {
        memcpy(req->view.base, payload, 8);
    } else if (rk_unlikely(req->view.ops != NULL)) {
        recv_unpack(req, payload);
        return;
    } else if (req->got) {
        memcpy(req->view.base, payload, req->got);
    }
    /* a request with an id receives no frame */
    rk_req_end(req, rk_unlikely(req->sent > req->got) ? RANK_ERR_TRUNCATED : RANK_OK);
}

static void recv_fetch(struct rank_request *req, const struct rk_rndv *rndv)
{
    struct rk_view view = req->view;

    req->peer = rndv->peer;
    if (rndv->peer->state != RK_PEER_UP) {
        req->got = 0;
        rk_req_complete(req, RANK_ERR_PEER_DEAD);
        return;
    }
    rndv->peer->channel->rndv_recv(rndv, &view, req);
}

/*
 * A frame of a collective that ends with an error here, since its team has lost a member. No receive will match
 * it, and its sender must not wait.
 */
static bool is_late(struct rk_ctx *ctx, uint64_t team_id, uint64_t tag)
{
    const struct rank_team *team;

    if (rk_likely(!ctx->p2p->deaths || !(team_id & RK_TEAM_COLL) || (tag & RK_TAG_CREATE)))
        return false;
    team = rk_team_table_find(&ctx->p2p->by_id, team_id & ~RK_TEAM_COLL);
    return team && team->ndead > 0;
}

static void recv_drop(struct rk_peer *peer, const struct rk_rndv *rndv, uint64_t bytes)
{
    if (!rndv)
        rk_recv_consumed(peer, bytes);
    else if (peer->state == RK_PEER_UP)
        peer->channel->rndv_drop(rndv);
}

void rk_recv_on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                      const void *payload, const struct rk_rndv *rndv)
{
    struct rk_p2p *p2p = ctx->p2p;
    uint64_t bytes = rndv ? rndv->total : hdr->len;
    struct rk_id sync = {0, 0};
    struct rk_unexpected *u;
    struct rank_request *req;

    if (rk_unlikely(hdr->kind == RK_KIND_SMSG)) {
        if (hdr->len < sizeof(sync)) {
            rk_engine_refused(ctx, &p2p->bad_frames);
            return;
        }
        memcpy(&sync, payload, sizeof(sync));
        payload = (const char *)payload + sizeof(sync);
        bytes -= sizeof(sync);
    }
    req = rk_match_arrive(&p2p->match, hdr->team, hdr->src, hdr->tag);
    if (rk_likely(req != NULL)) {
        set_envelope(req, hdr->src, hdr->tag, bytes);
        if (rndv) {
            recv_fetch(req, rndv);
            if (rk_credit_is_due(peer))
                rk_send_credit(peer);
            return;
        }
        if (rk_unlikely(hdr->kind == RK_KIND_SMSG))
            rk_send_control(peer, RK_KIND_MATCHED, 0, &sync, sizeof(sync));
        recv_deliver(req, payload);
        rk_recv_consumed(peer, bytes);
        return;
    }
    if (rk_unlikely(is_late(ctx, hdr->team, hdr->tag)) || (rk_unlikely(p2p->freed != NULL) && rk_stale_has(p2p, hdr->team))) {
        if (hdr->kind == RK_KIND_SMSG)
            rk_send_control(peer, RK_KIND_MATCHED, 0, &sync, sizeof(sync));
        recv_drop(peer, rndv, bytes);
        return;
    }
    if (rk_unlikely(rk_unexpected_exceeds(p2p, peer))) {
        if (rndv)
            recv_drop(peer, rndv, bytes);
        return;
    }
    u = rk_unexpected_alloc(p2p);
    if (rk_unlikely(!u)) {
        no_memory_for(peer);
        return;
    }
    u->team = hdr->team;
    u->tag = hdr->tag;
    u->src = hdr->src;
    u->kind = hdr->kind;
    u->bytes = bytes;
    u->peer = peer;
    u->sync = sync;
    if (rndv) {
        u->u.rndv = *rndv;
        rk_early_add(p2p, u, hdr->flags);
    } else if (bytes <= RK_UNEXPECTED_INLINE) {
        if (bytes)
            memcpy(u->u.inl, payload, bytes);
    } else {
        u->u.heap = malloc(bytes);
        if (!u->u.heap) {
            u->bytes = 0;
            rk_peer_keeps(peer, (int64_t)sizeof(*u)); /* which the next line takes back: it was not added */
            rk_unexpected_free(p2p, u);
            no_memory_for(peer);
            return;
        }
        memcpy(u->u.heap, payload, bytes);
    }
    rk_unexpected_add(p2p, u);
}

/* With any receive, none, or one for several pieces. */
static __attribute__((noinline)) void small_else(struct rank_request *req, struct rk_peer *peer, uint64_t team, uint32_t src,
                                                 uint64_t tag, const void *payload, uint32_t bytes)
{
    struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = peer->epoch, .src = src, .len = bytes, .team = team, .tag = tag};

    if (!req) {
        rk_recv_on_frame(peer->ctx, peer, &hdr, payload, NULL);
        return;
    }
    set_envelope(req, src, tag, bytes);
    recv_deliver(req, payload);
    rk_recv_consumed(peer, bytes);
}

static RK_COLD void small_over(struct rank_request *req, struct rk_peer *peer, bool credit)
{
    if (credit)
        rk_send_credit(peer);
    if (req->on_done)
        req->on_done(req, req->arg);
}

/* Makes tail calls only; rare cases are handled elsewhere. */
void rk_recv_on_small(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload, uint32_t bytes)
{
    struct rank_request *req = rk_match_head(&peer->ctx->p2p->match, team, src, tag);
    bool credit;

    if (rk_unlikely(!req || req->view.ops || bytes > req->view.bytes)) {
        small_else(req, peer, team, src, tag, payload, bytes);
        return;
    }
    req->env_src = src;
    req->env_tag = tag;
    req->sent = req->got = bytes;
    rk_copy_small(req->view.base, payload, bytes);
    req->status = RANK_OK;
    req->done = true;
    credit = rk_recv_counted(peer, bytes);
    if (rk_unlikely(credit || req->on_done))
        small_over(req, peer, credit);
}

/* A receive has matched an unexpected message, which is in no list any more. */
static void receive_kept(struct rk_p2p *p2p, struct rank_request *req, struct rk_unexpected *u)
{
    struct rk_peer *peer = u->peer;
    rank_status_t st;

    p2p->ahead.sending = false;
    set_envelope(req, u->src, u->tag, u->bytes);
    if (u->kind >= RK_KIND_RNDV) {
        struct rk_rndv rndv;
        if (u->kind == RK_KIND_EARLY) {
            rk_early_receive(p2p, req, u);
            return;
        }
        rndv = u->u.rndv;
        rk_list_remove(&u->u.announced.link);
        rk_unexpected_envelope_done(u);
        rk_unexpected_free(p2p, u);
        recv_fetch(req, &rndv);
        if (rk_credit_is_due(peer))
            rk_send_credit(peer);
        return;
    }
    if (u->kind == RK_KIND_SMSG)
        rk_send_control(peer, RK_KIND_MATCHED, 0, &u->sync, sizeof(u->sync));
    rk_unexpected_done(p2p, u);
    st = rk_copy_in(&req->view, 0, rk_unexpected_on_heap(u) ? u->u.heap : u->u.inl, req->got);
    rk_unexpected_free(p2p, u);
    rk_req_complete(req, st);
}

/*
 * Is this rank the last live member? Its own messages are here already, unless another thread sends one; a receive
 * would wait forever.
 */
static RK_COLD bool recv_all_dead(const struct rank_team *team)
{
    return team->ndead >= team->size - 1;
}

bool rk_p2p_cannot_come(struct rank_team *team, int source)
{
    struct rk_peer *peer;

    if (rk_likely(team->ndead == 0))
        return false;
    if (source != RANK_ANY_SOURCE) {
        peer = rk_team_peer(team, source);
        return peer && peer->state == RK_PEER_DEAD;
    }
    if (!team->any_source_errors)
        return recv_all_dead(team);
    team->any_source_errors = 0; /* reported; from now on wait for live ranks */
    return true;
}

/* Ends a receive without a message. */
static void end_unmatched(struct rank_request *req, rank_status_t status)
{
    set_envelope(req, req->src, req->tag, 0);
    rk_req_complete(req, status);
}

void rk_receive_else(struct rank_team *team, struct rank_request *req)
{
    struct rk_p2p *p2p = team->ctx->p2p;
    struct rk_unexpected *u;

    rk_list_init(&req->link);
    if (rk_unlikely(!req->peer && req->src != RK_SRC_ANY)) {
        end_unmatched(req, RANK_ERR_NO_MEMORY);
        return;
    }
    u = rk_match_find(&p2p->match, req->team, req->src, req->tag);
    if (u) {
        rk_match_drop(&p2p->match, u);
        receive_kept(p2p, req, u);
        return;
    }
    if (rk_unlikely(rk_p2p_cannot_come(team, (int)req->src))) {
        end_unmatched(req, rk_team_lost(team));
        return;
    }
    rk_match_post(&p2p->match, req);
}

void rk_p2p_irecv(struct rank_team *team, void *buf, size_t bytes, int source, uint64_t tag,
                  uint64_t space, struct rank_request *req)
{
    rk_receive_start(team, (struct rk_view){buf, bytes, NULL}, rk_receive_peer(team, source), source, tag, space, req);
}

void rk_p2p_irecv_view(struct rank_team *team, const struct rk_view *view, int source, uint64_t tag,
                       struct rank_request *req)
{
    rk_receive_start(team, *view, rk_receive_peer(team, source), source, tag, 0, req);
}

/* ------------------------------------------------------------------ overlap check */

struct overlap {
    const struct iovec *iov;
    int n;
    bool found;
};

/* The check, a debugging aid, stops after these. */
enum { PIECES_CHECKED = 64, RECEIVES_CHECKED = 512 };

static int pieces_of(const struct rk_view *view, struct iovec out[PIECES_CHECKED])
{
    if (view->bytes == 0 || (view->ops && !view->ops->list))
        return 0;
    if (view->ops)
        return rk_view_list(view, 0, view->bytes, out, PIECES_CHECKED);
    out[0] = (struct iovec){view->base, view->bytes};
    return 1;
}

static void find_overlap(struct rank_request *posted, void *arg)
{
    struct iovec theirs[PIECES_CHECKED];
    struct overlap *o = arg;
    int n = o->found ? 0 : pieces_of(&posted->view, theirs);

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < o->n; k++)
            o->found |= rk_overlap(theirs[i].iov_base, theirs[i].iov_len, o->iov[k].iov_base, o->iov[k].iov_len);
    }
}

RK_COLD bool rk_p2p_awaits_view(struct rank_team *team, const struct rk_view *view)
{
    struct rk_match *m = &team->ctx->p2p->match;
    struct iovec iov[PIECES_CHECKED];
    struct overlap o = {.iov = iov, .n = pieces_of(view, iov)};

    if (o.n > 0 && m->nposted + m->nwild <= RECEIVES_CHECKED)
        rk_match_each_posted(m, find_overlap, &o);
    return o.found;
}

RK_COLD bool rk_p2p_awaits(struct rank_team *team, void *buf, size_t bytes)
{
    return rk_p2p_awaits_view(team, &(struct rk_view){buf, bytes, NULL});
}

struct rk_unexpected *rk_p2p_take(struct rank_team *team, int source, uint64_t tag)
{
    struct rk_p2p *p2p = team->ctx->p2p;
    uint32_t src = (uint32_t)source;
    struct rk_unexpected *u = rk_match_find(&p2p->match, team->id, src, tag);

    if (!u)
        return NULL;
    rk_match_drop(&p2p->match, u);
    u->magic = RK_MESSAGE_MAGIC;
    rk_list_append(&p2p->probed, &u->order);
    return u;
}

void rk_p2p_mrecv(struct rk_unexpected *u, struct rk_view view, struct rank_request *req)
{
    req->magic = RK_REQ_MAGIC;
    req->type = RK_REQ_RECV;
    req->done = false;
    req->ctx = u->peer->ctx;
    req->peer = u->peer;
    req->view = view;
    req->team = u->team;
    req->tag = u->tag;
    req->src = u->src;
    rk_list_init(&req->link);
    rk_list_remove(&u->order);
    u->magic = 0;
    receive_kept(req->ctx->p2p, req, u);
}

bool rk_p2p_cancel_recv(struct rank_request *req, rank_status_t status)
{
    if (req->type != RK_REQ_RECV || !(req->flags & RK_REQ_POSTED))
        return false;
    rk_match_unpost(&req->ctx->p2p->match, req);
    end_unmatched(req, status);
    return true;
}

void rk_message_envelope(const struct rk_unexpected *u, rank_envelope_t *envelope)
{
    memset(envelope, 0, sizeof(*envelope));
    envelope->source = (int32_t)u->src;
    envelope->tag = (int64_t)u->tag;
    envelope->count = envelope->bytes = envelope->sent_bytes = (int64_t)u->bytes;
}

bool rk_p2p_probe(struct rank_team *team, int source, uint64_t tag, rank_envelope_t *envelope)
{
    uint32_t src = (uint32_t)source;
    struct rk_unexpected *u = rk_match_find(&team->ctx->p2p->match, team->id, src, tag);

    if (!u)
        return false;
    if (envelope)
        rk_message_envelope(u, envelope);
    return true;
}

/* ------------------------------------------------------------------------- deaths */

struct death {
    struct rk_ctx *ctx;
    struct rk_peer *peer;
};

static void fail_posted(struct rank_request *req, void *arg)
{
    struct death *d = arg;
    struct rank_team *team;

    if (!req->peer) {
        team = rk_team_table_find(&d->ctx->p2p->by_id, req->team & ~RK_TEAM_COLL);
        if (!team || !team->any_source_errors)
            return;
        team->any_source_errors = -1; /* reported; settled when all receives have been checked */
    } else if (req->peer != d->peer) {
        return;
    }
    rk_p2p_cancel_recv(req, RANK_ERR_PEER_DEAD);
}

void rk_recv_drop_unexpected(struct rk_p2p *p2p, struct rk_unexpected *u)
{
    rk_match_drop(&p2p->match, u);
    if (u->kind == RK_KIND_EARLY) {
        rk_early_drop(p2p, u);
        return;
    }
    if (u->kind == RK_KIND_RNDV) {
        rk_list_remove(&u->u.announced.link);
        rk_unexpected_envelope_done(u);
        recv_drop(u->peer, &u->u.rndv, u->bytes);
    } else {
        if (u->kind == RK_KIND_SMSG)
            rk_send_control(u->peer, RK_KIND_MATCHED, 0, &u->sync, sizeof(u->sync));
        rk_unexpected_done(p2p, u);
    }
    rk_unexpected_free(p2p, u);
}

static void drop_late(struct rk_ctx *ctx)
{
    struct rk_p2p *p2p = ctx->p2p;
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &p2p->match.arrived)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        if (is_late(ctx, u->team, u->tag))
            rk_recv_drop_unexpected(p2p, u);
    }
}

void rk_recv_peer_died(struct rk_ctx *ctx, struct rk_peer *peer)
{
    struct death d = {ctx, peer};
    struct rk_link *l;

    rk_match_each_posted(&ctx->p2p->match, fail_posted, &d);
    rk_list_for_each(l, &ctx->p2p->teams)
    {
        struct rank_team *team = rk_list_entry(l, struct rank_team, link);
        if (team->any_source_errors < 0)
            team->any_source_errors = 0;
    }
    drop_late(ctx);
}
