/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.c: send messages: eager while the receiver has credit, else by rendezvous.
 *
 * Small messages go whole, at once, within the receiver's window for unexpected messages; all others are
 * announced. What finds no room in the channel waits in the peer's queue, in order, in the caller's memory.
 */
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/p2p/p2p_internal.h"
#include "lib/p2p/send_fast.h"

#include <string.h>

/* A synchronous send up to this size goes whole, with a request for a reply. */
enum { SYNC_EAGER_MAX = 128 };

/* Payload of a request that is no contiguous host memory. Never on a wire. */
enum { RK_KIND_PIECES = RK_KIND_CHANNEL_FIRST - 1 };
/* Longer such payload is fetched, and gathered on the way. */
enum { PACK_MAX = 16384 };

bool rk_p2p_lacks_credit(struct rank_team *team, int dest, size_t bytes)
{
    const struct rk_peer *peer = team->peers[dest];

    return peer && bytes <= peer->eager_limit && !rk_send_has_credit(peer, bytes);
}

static void send_announce(const struct rank_request *req, struct rk_hdr *hdr)
{
    hdr->kind = RK_KIND_RNDV;
    hdr->flags = req->flags & RK_REQ_SYNC ? RK_FLAG_SYNC : 0;
    hdr->len = 0;
}

static rank_status_t offer_sync(struct rank_request *req, struct rk_hdr *hdr, const void *payload)
{
    struct rk_peer *peer = req->peer;
    uint64_t bytes = req->view.bytes;
    rank_status_t st = rk_req_name(req);

    if (st)
        return st;
    hdr->kind = RK_KIND_SMSG;
    hdr->len = (uint32_t)(sizeof(req->id) + req->view.bytes);
    peer->eager_out += rk_send_cost(bytes);
    st = peer->channel->send2(peer, hdr, &req->id, sizeof(req->id), payload);
    if (st) {
        peer->eager_out -= rk_send_cost(bytes);
        rk_req_unname(req);
    }
    return st;
}

RK_INLINE rank_status_t send_view_counted(struct rk_peer *peer, const struct rk_hdr *hdr,
                                          const struct rk_view *view)
{
    char packed[PACK_MAX];
    rank_status_t st;

    if (!peer->channel->send_view || rk_view_may_fail(view)) { /* a failed copy is no message */
        st = rk_copy_out(packed, view, 0, view->bytes);
        return st ? st : rk_send_counted(peer, hdr, packed);
    }
    peer->eager_out += rk_send_cost(hdr->len);
    st = peer->channel->send_view(peer, hdr, view);
    if (st)
        peer->eager_out -= rk_send_cost(hdr->len);
    return st;
}

/* As send_offer, for payload that is no contiguous host memory: small ones go whole, packed by the channel or here. */
static RK_COLD rank_status_t offer_pieces(struct rank_request *req, struct rk_hdr *hdr)
{
    bool sync = req->flags & RK_REQ_SYNC;
    struct rk_peer *peer = req->peer;
    uint64_t bytes = req->view.bytes;
    char packed[SYNC_EAGER_MAX];
    rank_status_t st;

    if (bytes <= peer->eager_limit && rk_send_has_credit(peer, bytes) &&
        !(peer->channel->fetches && peer->channel->fetches(peer, &req->view)) &&
        bytes <= (sync ? (uint64_t)SYNC_EAGER_MAX : PACK_MAX)) {
        if (sync) {
            st = rk_copy_out(packed, &req->view, 0, bytes);
            return st ? st : offer_sync(req, hdr, packed);
        }
        hdr->kind = RK_KIND_MSG;
        st = send_view_counted(peer, hdr, &req->view);
        if (!st)
            rk_req_complete(req, RANK_OK);
        return st;
    }
    send_announce(req, hdr);
    return peer->channel->rndv_send(peer, hdr, &req->view, req);
}

/* Offer the request to its channel once: RANK_OK (complete or started), RK_AGAIN, or an error (not completed). */
static rank_status_t send_offer(struct rank_request *req)
{
    struct rk_peer *peer = req->peer;
    uint64_t bytes = req->view.bytes;
    struct rk_hdr hdr = {.kind = req->kind,
                         .epoch = peer->epoch,
                         .src = req->src,
                         .len = (uint32_t)bytes,
                         .team = req->team,
                         .tag = req->tag};
    rank_status_t st;

    if (req->kind == RK_KIND_PIECES)
        return offer_pieces(req, &hdr);
    if (bytes <= peer->eager_limit && rk_send_has_credit(peer, bytes)) {
        if (!(req->flags & RK_REQ_SYNC)) {
            st = rk_send_counted(peer, &hdr, req->view.base);
            if (!st)
                rk_req_complete(req, RANK_OK);
            return st;
        }
        if (bytes <= SYNC_EAGER_MAX)
            return offer_sync(req, &hdr, req->view.base);
    }
    send_announce(req, &hdr);
    return peer->channel->rndv_send(peer, &hdr, &req->view, req);
}

/* A queued request has not been sent at all. */
static void request_fail(struct rk_send_item *item, struct rk_peer *peer, rank_status_t status)
{
    struct rank_request *req = rk_container_of(item, struct rank_request, item);

    (void)peer;
    req->flags &= (uint8_t)~RK_REQ_QUEUED;
    rk_req_complete(req, status);
}

static rank_status_t request_send(struct rk_send_item *item, struct rk_peer *peer)
{
    struct rank_request *req = rk_container_of(item, struct rank_request, item);
    rank_status_t st;

    req->flags &= (uint8_t)~RK_REQ_QUEUED;
    st = send_offer(req);
    if (st == RK_AGAIN)
        req->flags |= RK_REQ_QUEUED;
    else if (st)
        request_fail(item, peer, st);
    return st;
}

static void send_enqueue(struct rank_request *req)
{
    static const struct rk_send_ops ops = {request_send, request_fail};

    req->flags |= RK_REQ_QUEUED;
    rk_sendq_append(req->peer, RK_SEND_DATA, &req->item, &ops);
}

RK_INLINE void send_start_send(struct rank_team *team, struct rk_view view, uint8_t kind, int dest,
                          uint64_t tag, uint64_t space, struct rank_request *req)
{
    struct rk_peer *peer = rk_team_peer(team, dest);
    rank_status_t st;

    req->magic = RK_REQ_MAGIC;
    req->type = RK_REQ_SEND;
    req->done = false;
    req->kind = kind;
    req->ctx = team->ctx;
    req->peer = peer;
    req->view = view;
    req->team = team->id | space;
    req->tag = tag;
    req->src = (uint32_t)team->rank;
    rk_list_init(&req->link);
    if (rk_unlikely(!peer)) {
        rk_req_complete(req, RANK_ERR_NO_MEMORY);
        return;
    }
    if (rk_unlikely(peer->state != RK_PEER_UP) && (st = rk_peer_try_connect(peer)) != RANK_OK) {
        if (st == RK_AGAIN)
            send_enqueue(req);
        else
            rk_req_complete(req, st);
        return;
    }
    if (rk_unlikely(rk_sendq_has(&peer->sendq, RK_SEND_DATA))) {
        send_enqueue(req);
        return;
    }
    st = send_offer(req);
    if (rk_unlikely(st == RK_AGAIN))
        send_enqueue(req);
    else if (rk_unlikely(st))
        rk_req_complete(req, st);
}

void rk_p2p_isend(struct rank_team *team, const void *buf, size_t bytes, int dest, uint64_t tag,
                  uint64_t space, struct rank_request *req)
{
    send_start_send(team, (struct rk_view){(void *)(uintptr_t)buf, bytes, NULL}, RK_KIND_MSG, dest, tag,
               space, req);
}

void rk_p2p_isend_view(struct rank_team *team, const struct rk_view *view, int dest, uint64_t tag,
                       struct rank_request *req)
{
    send_start_send(team, *view, view->ops ? RK_KIND_PIECES : RK_KIND_MSG, dest, tag, 0, req);
}

bool rk_p2p_cancel_send(struct rank_request *req, rank_status_t status)
{
    if (req->type != RK_REQ_SEND || !(req->flags & RK_REQ_QUEUED))
        return false;
    rk_sendq_remove(req->peer, &req->item);
    request_fail(&req->item, req->peer, status);
    return true;
}

rank_status_t rk_p2p_send(struct rank_team *team, const void *buf, size_t bytes, int dest,
                          uint64_t tag)
{
    rank_status_t st = rk_send_now(team, buf, bytes, dest, tag);
    struct rank_request req;

    if (rk_likely(st != RK_AGAIN))
        return rk_call_end("rank_send", st);
    rk_req_init(&req, NULL, NULL);
    req.flags = RK_REQ_WAITED;
    rk_p2p_isend(team, buf, bytes, dest, tag, 0, &req);
    return rk_req_wait(&req);
}

void rk_send_credit(struct rk_peer *peer)
{
    struct rk_hdr hdr = {.kind = RK_KIND_CREDIT, .epoch = peer->epoch,
                         .tag = (uint64_t)peer->eager_in};

    if (rk_peer_try_connect(peer) != RANK_OK)
        return;
    /* No room: retried after the next consumed message. */
    if (peer->channel->send(peer, &hdr, NULL) == RANK_OK)
        peer->eager_in = 0;
}
