/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_stream.c: stream a large message through the fifo's byte ring.
 *
 * The receiver requests the stream (FETCH), or offers it to a sender that may compute (OFFER). The sender appends
 * DATA frames as the ring has room. The send completes when its last part is in the ring. A DATA frame that is
 * marked as failed ends both sides.
 */
#include "lib/base/clock.h"
#include "lib/channel/shm/shm_rndv.h"
#include "lib/channel/shm/split_copy.h"
#include "lib/data/view_stage.h"
#include "lib/node/node.h"

/* Private words of a send that is streamed. */
enum { S_RECEIVER, S_WANT, S_OFFSET };
/* Flag of a DATA frame: the sender could not read its payload, and no frame follows. */
enum { STREAM_FAILED = 1 };

/* ------------------------------------------------------------------- sender */

void rk_shm_stream_start(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_shm_fetch *f)
{
    struct rank_request *req = rk_req_find(shm->ctx, f->sender);

    if (!req || req->type != RK_REQ_SEND || req->peer != ep->peer || f->want > req->view.bytes) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    req->priv[S_RECEIVER] = rk_id_pack(f->receiver);
    req->priv[S_WANT] = f->want;
    req->priv[S_OFFSET] = 0;
    ep->staged |= req->view.ops && req->view.ops->kind;
    if (rk_unlikely(rk_view_may_fail(&req->view)))
        rk_view_stage_open(&req->view, f->want);
    rk_list_remove(&req->link);
    rk_list_append(&ep->streams, &req->link);
    rk_engine_defer(shm->ctx, &shm->busy, &ep->busy);
}

/* One part of a stream. RK_AGAIN: the ring is full; RANK_ERR_DEVICE: the receiver learns that it fails. */
static rank_status_t stream_piece(struct rk_shm *shm, struct rk_shm_ep *ep,
                                  struct rank_request *req)
{
    struct rk_id receiver = rk_id_unpack(req->priv[S_RECEIVER]);
    uint64_t left = req->priv[S_WANT] - req->priv[S_OFFSET];
    uint32_t room = shm->shape.frame - (uint32_t)sizeof(receiver);
    uint32_t n = left < room ? (uint32_t)left : room;
    struct rk_hdr hdr = {.kind = RK_SHM_DATA,
                         .epoch = ep->peer->epoch,
                         .len = n + (uint32_t)sizeof(receiver),
                         .tag = req->priv[S_OFFSET]};
    rank_status_t st, failed;

    if (req->view.ops) {
        char packed[8192];
        if (n > sizeof(packed))
            n = sizeof(packed);
        hdr.len = n + (uint32_t)sizeof(receiver);
        failed = rk_copy_out(packed, &req->view, req->priv[S_OFFSET], n);
        if (rk_unlikely(failed)) {
            hdr.flags = STREAM_FAILED;
            hdr.len = (uint32_t)sizeof(receiver);
        }
        st = rk_shm_put(shm, ep, &hdr, &receiver, sizeof(receiver), packed);
        if (rk_unlikely(failed) && !st)
            return RANK_ERR_DEVICE; /* which the receiver gets */
    } else {
        st = rk_shm_put(shm, ep, &hdr, &receiver, sizeof(receiver),
                        (char *)req->view.base + req->priv[S_OFFSET]);
    }
    if (!st)
        req->priv[S_OFFSET] += n;
    return st;
}

int rk_shm_rndv_stream(struct rk_shm *shm, struct rk_shm_ep *ep)
{
    int n = 0;

    while (!rk_list_empty(&ep->streams)) {
        struct rank_request *req = rk_list_entry(ep->streams.next, struct rank_request, link);
        rank_status_t st = stream_piece(shm, ep, req);

        if (st == RK_AGAIN)
            break;
        n++;
        if (st && st != RANK_ERR_PEER_DEAD && st != RANK_ERR_DEVICE) /* the rest will not come, and the receiver would wait forever */
            rk_engine_report_death(shm->ctx, ep->peer->number);
        if (st || req->priv[S_OFFSET] == req->priv[S_WANT])
            rk_shm_complete_linked(req, st);
    }
    return n;
}

/*
 * At the sender: accept an OFFER if the ring has room for the whole message, so that the receiver, which waits
 * briefly, needs no other process.
 */
void rk_shm_stream_consider(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_shm_offer *o)
{
    struct rk_fifo_out *out = &ep->out;
    uint64_t begun = rk_split_begin(o->gen), need;
    uint32_t cells, frame = shm->shape.frame;

    /* Once claimed, all of it must go now: the next progress call may be late. */
    if (o->fetch.want > out->used / 2 || !rk_list_empty(&ep->streams) || rk_sendq_has(&ep->peer->sendq, RK_SEND_CONTROL) ||
        !rk_req_find(shm->ctx, o->fetch.sender))
        return;
    cells = atomic_load_explicit(&out->box->taken, memory_order_acquire) + out->mask + 1 - out->next;
    if (cells < o->fetch.want / frame + 4)
        return;
    rk_fifo_read_counters(out);
    need = o->fetch.want + frame + 4 * RK_CELL_BYTES + (out->ring_bytes - out->used); /* a lap may end in between */
    if (out->ring_limit - out->at < need ||
        !atomic_compare_exchange_strong(&out->box->claims, &begun, begun + (1ull << 24)))
        return;
    rk_shm_stream_start(shm, ep, &o->fetch);
    rk_shm_rndv_stream(shm, ep);
}

/* ----------------------------------------------------------------- receiver */

bool rk_shm_stream_request(struct rk_shm_recv *r)
{
    struct rk_shm_fetch f = {.sender = rk_id_unpack(r->sender), .want = r->want};
    rank_status_t st = rk_req_name(r->req);

    if (st) {
        rk_shm_recv_finish(r, st);
        return true;
    }
    f.receiver = r->req->id;
    r->req->priv[RK_SHM_R_WANT] = r->want;
    r->req->priv[RK_SHM_R_GOT] = r->req->priv[RK_SHM_R_BAD] = 0;
    if (rk_unlikely(rk_view_may_fail(&r->req->view)))
        rk_view_stage_open(&r->req->view, r->want);
    rk_list_append(&r->shm->receiving, &r->req->link);
    rk_send_control(r->ep->peer, RK_SHM_FETCH, 0, &f, sizeof(f));
    return true;
}

/* Time that the receiver leaves the sender to accept an OFFER: a round trip. */
enum { OFFER_NS = 1500 };

bool rk_shm_stream_offer(struct rk_shm_recv *r)
{
    struct rk_fifo *box = r->shm->in[r->ep->peer->slot].box;
    struct rk_shm_offer o = {.fetch = {.sender = rk_id_unpack(r->sender), .want = r->want}};
    struct rank_request *req = r->req;
    uint64_t until, begun;

    if (rk_req_name(req))
        return false;
    o.fetch.receiver = req->id;
    o.gen = ++r->ep->assist_gen;
    begun = rk_split_begin(o.gen);
    req->priv[RK_SHM_R_WANT] = r->want;
    req->priv[RK_SHM_R_GOT] = req->priv[RK_SHM_R_BAD] = 0;
    atomic_store(&box->claims, begun);
    rk_list_append(&r->shm->receiving, &req->link);
    rk_send_control(r->ep->peer, RK_SHM_OFFER, 0, &o, sizeof(o));
    /* Not rk_wait: this runs inside progress, which must not be entered again, and it is over in a round trip. */
    for (until = rk_clock_ns() + OFFER_NS; rk_clock_ns() < until; rk_cpu_relax()) {
        if (atomic_load_explicit(&box->claims, memory_order_relaxed) != begun)
            return true;
    }
    if (!atomic_compare_exchange_strong(&box->claims, &begun, begun + 1))
        return true;
    rk_list_remove(&req->link);
    rk_req_unname(req);
    return false;
}

void rk_shm_stream_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr, const char *payload)
{
    struct rk_id id;
    struct rank_request *req;
    uint64_t n = hdr->len - sizeof(id);

    if (hdr->len < sizeof(id)) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    memcpy(&id, payload, sizeof(id));
    req = rk_req_find(shm->ctx, id);
    if (!req || req->peer != peer || hdr->tag > req->priv[RK_SHM_R_WANT] ||
        n > req->priv[RK_SHM_R_WANT] - hdr->tag) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    if (rk_unlikely(hdr->flags & STREAM_FAILED)) {
        rk_shm_complete_linked(req, RANK_ERR_DEVICE);
        return;
    }
    if (!req->priv[RK_SHM_R_BAD])
        req->priv[RK_SHM_R_BAD] = (uint64_t)(int64_t)rk_copy_in(&req->view, hdr->tag, payload + sizeof(id), n);
    req->priv[RK_SHM_R_GOT] += n;
    if (req->priv[RK_SHM_R_GOT] == req->priv[RK_SHM_R_WANT])
        rk_shm_complete_linked(req, (rank_status_t)(int64_t)req->priv[RK_SHM_R_BAD]);
}
