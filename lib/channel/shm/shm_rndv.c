/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_rndv.c: move large messages between ranks of a node (rendezvous).
 *
 * The sender announces the location of the payload (RK_KIND_RNDV). Once matched, the receiver selects a protocol
 * (proto.h) by the table of proto_table.h and by what the message has, and runs it. If that fails, it selects
 * again. A receive that has copied then sends DONE, which completes the send.
 */
#include "lib/base/log.h"
#include "lib/channel/shm/device_copy.h"
#include "lib/channel/shm/shm_rndv.h"
#include "lib/data/view_stage.h"
#include "lib/mem/segment.h"
#include "lib/node/node.h"

#define STREAM_ONLY UINT64_MAX
#define IN_PIECES (UINT64_MAX - 1)
#define WAITED_FOR (UINT64_MAX - 2)

struct announcement { /* payload of RK_KIND_RNDV */
    uint64_t total;
    struct rk_id sender;
    uint64_t at;      /* address at the sender, or offset in the segment */
    /*
     * 0: private memory, also of a registered segment that the receiver has not mapped; WAITED_FOR: private, and
     * the sender only waits; STREAM_ONLY: not accessible, or in short blocks; IN_PIECES: a list, struct rk_pieces
     */
    uint64_t segment; /* ANNOUNCES_EXPORT: name of device memory (export_table.h), and at is the offset in it */
};

/* Flag of the frame, beside RK_FLAG_SYNC. */
enum { ANNOUNCES_EXPORT = 128 };

_Static_assert(sizeof(struct announcement) <= RK_CELL_INLINE && sizeof(struct rk_shm_fetch) <= RK_CELL_INLINE &&
                   sizeof(struct rk_shm_offer) <= RK_CELL_INLINE && sizeof(struct rk_shm_assist) <= RK_CELL_INLINE &&
                   sizeof(struct rk_shm_push) <= RK_CELL_INLINE,
               "control fits in a cell");

/*
 * Mean bytes of a block from which the kernel copies a list faster than the ring. The kernel resolves pages for each
 * block of the sender (0.35 us); one of the receiver costs 0.05 us. Two cores of an Intel Xeon, 20 KiB to 1 MiB.
 * The ring waits for a sender that computes, which has to be worth COMPUTES times shorter blocks.
 */
enum { SENT_BLOCK = 2048, RECEIVED_BLOCK = 256, COMPUTES = 8 };

/* Private words of a struct rk_rndv. */
enum { P_SENDER, P_AT, P_SEGMENT, P_EXPORT };

void rk_shm_complete_linked(struct rank_request *req, rank_status_t st)
{
    rk_list_remove(&req->link);
    if (rk_unlikely(rk_view_may_fail(&req->view)))
        rk_view_stage_close(&req->view, false);
    rk_req_complete(req, st);
}

static void send_done(struct rk_shm_ep *ep, uint64_t sender)
{
    struct rk_id id = rk_id_unpack(sender);

    rk_send_control(ep->peer, RK_SHM_DONE, 0, &id, sizeof(id));
}

void rk_shm_recv_finish(const struct rk_shm_recv *r, rank_status_t st)
{
    send_done(r->ep, r->sender);
    rk_req_complete(r->req, st);
}

/* Is the view a list whose blocks are too short for the kernel? block: SENT_BLOCK or RECEIVED_BLOCK. */
static bool in_short_blocks(const struct rk_view *view, uint64_t block, bool waited)
{
    return rk_pieces_block(view) < (waited ? block : block / COMPUTES) && rk_shm_proto_set() != &rk_shm_proto_cma;
}

/* ------------------------------------------------------------------- sender */

rank_status_t rk_shm_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req)
{
    struct rk_shm_ep *ep = peer->ep;
    struct announcement a = {.total = view->bytes, .at = (uint64_t)(uintptr_t)view->base};
    struct rk_hdr h = *hdr;
    uint64_t name;
    rank_status_t st;

    st = rk_req_name(req);
    if (st)
        return st;
    req->view = *view;
    a.sender = req->id;
    if (view->ops && view->ops->kind && (name = rk_export_view(ep->shm, view, &a.at)) != 0) {
        a.segment = name;
        h.flags |= ANNOUNCES_EXPORT;
    } else if (view->ops) {
        a.segment = view->ops == &rk_pieces_ops && !in_short_blocks(view, SENT_BLOCK, req->flags & RK_REQ_WAITED) ? IN_PIECES
                                                                                                                  : STREAM_ONLY;
    } else if (rk_segment_name(peer->ctx, view->base, view->bytes, &a.segment, &a.at)) {
        if (a.segment & RK_SEGMENT_REGISTERED && req->flags & RK_REQ_WAITED)
            a.segment |= RK_SEGMENT_MARK;
    } else if (req->flags & RK_REQ_WAITED) {
        a.segment = WAITED_FOR;
    }
    h.len = sizeof(a);
    st = rk_shm_put(ep->shm, ep, &h, &a, sizeof(a), NULL);
    if (st) {
        rk_req_unname(req);
        return st;
    }
    rk_list_append(&ep->shm->sending, &req->link);
    return RANK_OK;
}

/* ----------------------------------------------------------------- receiver */

void rk_shm_rndv_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                         const void *payload)
{
    struct announcement a;
    struct rk_rndv rndv = {.peer = peer};

    if (hdr->len != sizeof(a)) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    if (!rk_shm_ep_of(peer))
        return;
    memcpy(&a, payload, sizeof(a));
    rndv.total = a.total;
    rndv.priv[P_SENDER] = rk_id_pack(a.sender);
    rndv.priv[P_AT] = a.at;
    rndv.priv[P_SEGMENT] = hdr->flags & ANNOUNCES_EXPORT ? STREAM_ONLY : a.segment;
    rndv.priv[P_EXPORT] = hdr->flags & ANNOUNCES_EXPORT ? a.segment : 0;
    shm->ctx->engine->handler[RK_KIND_RNDV](shm->ctx, peer, hdr, NULL, &rndv);
}

/*
 * May the sender be requested to copy a share? One copy at a time, and only if the fifo has room: a queued request
 * could be read after the generations of claims have wrapped.
 */
static bool may_request_assist(const struct rk_shm_ep *ep)
{
    return !ep->assisted && !rk_sendq_has(&ep->peer->sendq, RK_SEND_CONTROL);
}

/* Find the payload's mapping, and how the sender reaches the buffer. Returns false if the payload is not mapped. */
static bool find_mapping(struct rk_shm_recv *r, uint64_t segment)
{
    const struct rk_view *view = &r->req->view;

    r->here = segment ? rk_segment_at(r->shm->ctx, segment, r->at, r->want) : NULL;
    if (!r->here)
        return false;
    r->has |= RK_NEEDS_MAPPING;
    if (view->ops || !may_request_assist(r->ep))
        return true;
    rk_segment_name(r->shm->ctx, view->base, r->want, &r->to_segment, &r->to);
    if (r->to_segment || r->ep->cma)
        r->has |= RK_NEEDS_ASSIST;
    return true;
}

/* Find out by what the receiver can reach the payload, which is private memory of the sender or a list. */
static void find_access(struct rk_shm_recv *r)
{
    const struct rk_view *view = &r->req->view;

    if (r->ep->cma)
        r->has |= RK_NEEDS_CMA;
    if (!r->in_pieces && !view->ops && may_request_assist(r->ep))
        r->has |= RK_NEEDS_ASSIST;
}

/* The protocol that RANK_LARGE sets for this kind of memory; NULL: none. */
static const struct rk_shm_proto *set_for(const struct rk_shm_recv *r)
{
    const struct rk_shm_proto *set = rk_shm_proto_set();

    return set && (set->needs & RK_NEEDS_MAPPING) == (r->has & RK_NEEDS_MAPPING) ? set : NULL;
}

/* The preferred protocol, whether or not the message has what it needs. */
static const struct rk_shm_proto *prefer_proto(const struct rk_shm_recv *r)
{
    const struct rk_proto_table *t = &r->shm->protos;
    const struct rk_shm_proto *p = set_for(r);
    int class = rk_proto_class(r->want);

    if (p)
        return p;
    if (r->has & RK_NEEDS_MAPPING) /* a sender that has to use the kernel is slower at its share */
        return r->shm->node->oversubscribed || (!r->to_segment && t->alone[class] != &rk_shm_proto_cma2)
                   ? &rk_shm_proto_mapped
                   : t->mapped[class];
    p = r->waited ? t->best[class] : t->alone[class];
    if (r->has & RK_NEEDS_CMA && (r->in_pieces || r->req->view.ops))
        return in_short_blocks(&r->req->view, RECEIVED_BLOCK, r->waited) ? t->ring[class] : &rk_shm_proto_cma;
    return p;
}

static const struct rk_shm_proto *select_proto(const struct rk_shm_recv *r)
{
    const struct rk_shm_proto *p = prefer_proto(r);

    if (p->needs & RK_NEEDS_ASSIST & ~r->has)
        p = p->alone;
    return p->needs & ~r->has ? r->shm->protos.ring[rk_proto_class(r->want)] : p;
}

/* Could the ring be faster, if the sender makes progress right now? Otherwise the receiver copies by CMA. */
static bool should_offer(const struct rk_shm_recv *r, const struct rk_shm_proto *p)
{
    const struct rk_shm *shm = r->shm;

    return p->needs & RK_NEEDS_CMA && r->has & RK_NEEDS_ASSIST && r->want <= shm->shape.shallow / 2 && !set_for(r) &&
           shm->protos.best[rk_proto_class(r->want)]->needs & RK_NEEDS_RING && !shm->node->oversubscribed;
}

void rk_shm_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view, struct rank_request *req)
{
    uint64_t segment = rndv->priv[P_SEGMENT];
    bool registered = segment < WAITED_FOR && segment & RK_SEGMENT_REGISTERED;
    struct rk_shm_ep *ep = rndv->peer->ep;
    struct rk_shm_recv r = {.shm = ep->shm,
                            .ep = ep,
                            .req = req,
                            .sender = rndv->priv[P_SENDER],
                            .at = rndv->priv[P_AT],
                            .want = rndv->total < view->bytes ? rndv->total : view->bytes,
                            .has = RK_NEEDS_RING,
                            .waited = segment == WAITED_FOR || (registered && segment & RK_SEGMENT_MARK),
                            .in_pieces = segment == IN_PIECES,
                            .to = (uint64_t)(uintptr_t)view->base};
    const struct rk_shm_proto *p;

    req->view = *view;
    if (r.want == 0) {
        rk_shm_recv_finish(&r, RANK_OK);
        return;
    }
    if (rk_unlikely(rndv->priv[P_EXPORT] != 0) && rk_device_fetch(&r, rndv->priv[P_EXPORT]))
        return;
    if (registered)
        segment &= ~(uint64_t)RK_SEGMENT_MARK;
    if (!(segment < WAITED_FOR && find_mapping(&r, segment)) &&
        (segment == 0 || segment == WAITED_FOR || registered || r.in_pieces))
        find_access(&r);
    if (rk_unlikely(view->ops != NULL) && segment != STREAM_ONLY && !r.in_pieces &&
        !(r.has & RK_NEEDS_MAPPING) && rk_device_request_push(&r))
        return;
    if (rk_unlikely(ep->shm->only != NULL) && rk_shm_steps_begin(&r))
        return;
    do {
        p = select_proto(&r);
    } while (!(should_offer(&r, p) && rk_shm_stream_offer(&r)) && !p->run(&r));
}

void rk_shm_rndv_drop(const struct rk_rndv *rndv)
{
    if (rndv->peer->ep)
        send_done(rndv->peer->ep, rndv->priv[P_SENDER]);
}

/* -------------------------------------------------------------------- frames */

void rk_shm_rndv_frame(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                       const void *payload)
{
    struct rk_shm_ep *ep = rk_shm_ep_of(peer);
    struct rank_request *req;
    union {
        struct rk_id id;
        struct rk_shm_fetch fetch;
        struct rk_shm_assist assist;
        struct rk_shm_offer offer;
        struct rk_shm_push push;
    } u;

    if (!ep)
        return;
    if (hdr->kind == RK_SHM_DATA) {
        rk_shm_stream_arrived(shm, peer, hdr, payload);
        return;
    }
    if (hdr->len > sizeof(u)) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    memset(&u, 0xff, sizeof(u)); /* a short frame names no request */
    memcpy(&u, payload, hdr->len);
    switch (hdr->kind) {
    case RK_SHM_DONE:
        req = rk_req_find(shm->ctx, u.id);
        if (req && req->type == RK_REQ_SEND && req->peer == peer)
            rk_shm_complete_linked(req, RANK_OK);
        else
            rk_engine_refused(shm->ctx, &shm->bad_frames);
        break;
    case RK_SHM_FETCH:
        rk_shm_stream_start(shm, ep, &u.fetch);
        break;
    case RK_SHM_OFFER:
        rk_shm_stream_consider(shm, ep, &u.offer);
        break;
    case RK_SHM_PUSH:
        rk_device_push(shm, ep, hdr->tag, &u.push);
        break;
    case RK_SHM_PUSHED:
        rk_device_pushed(shm, ep, hdr->tag, &u.fetch);
        break;
    case RK_SHM_ASSIST:
        rk_shm_assist_serve(shm, ep, hdr->tag, &u.assist);
        break;
    default:
        break;
    }
}

static void fail_all_of(struct rk_link *list, const struct rk_peer *peer)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, list)
    {
        struct rank_request *req = rk_list_entry(l, struct rank_request, link);
        if (req->peer == peer)
            rk_shm_complete_linked(req, RANK_ERR_PEER_DEAD);
    }
}

void rk_shm_rndv_peer_gone(struct rk_shm *shm, struct rk_peer *peer)
{
    struct rk_shm_ep *ep = peer->ep;

    rk_shm_assist_abort(shm, ep);
    rk_shm_steps_abort(shm);
    fail_all_of(&shm->receiving, peer);
    fail_all_of(&shm->sending, peer);
    fail_all_of(&ep->streams, peer);
}
