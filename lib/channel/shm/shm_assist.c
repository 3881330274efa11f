/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_assist.c: copy a large message by both of its sides.
 *
 * The receiver requests an assist (ASSIST). Both claim chunks from the two ends (split_copy.h) until they meet, one
 * reading, the other writing. Each side copies by a mapping or by CMA, whichever it has.
 */
#include "lib/base/clock.h"
#include "lib/channel/shm/shm_rndv.h"
#include "lib/channel/shm/split_copy.h"
#include "lib/mem/segment.h"
#include "lib/node/cma.h"
#include "lib/node/node.h"

#ifndef move_mapped /* a model defines its own */
#define move_mapped memcpy
#endif

/* A bit of the word helped, which counts the sender's chunks. */
#define ASSIST_FAILED (1u << 31)

/* ------------------------------------------------------------------- sender */

void rk_shm_assist_serve(struct rk_shm *shm, struct rk_shm_ep *ep, uint64_t segment, const struct rk_shm_assist *a)
{
    struct rank_request *req = rk_req_find(shm->ctx, a->sender);
    uint64_t chunk = (uint64_t)a->chunk << 10;
    char *to = segment ? rk_segment_at(shm->ctx, segment, a->to, a->bytes) : NULL;
    struct rk_share share;

    if (!req)
        return; /* everything is copied */
    if (req->type != RK_REQ_SEND || req->view.ops || req->peer != ep->peer || a->bytes > req->view.bytes ||
        chunk < RK_CHUNK_MIN) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    if (!to && ((segment && !(segment & RK_SEGMENT_REGISTERED)) || !ep->cma))
        return; /* a foreign team's segment, or inaccessible: the receiver does all */
    while (rk_split_claim(&ep->out.box->claims, a->gen, a->bytes, chunk, true, &share)) {
        const char *from = (char *)req->view.base + share.at;
        rank_status_t st = RANK_OK;

        if (to)
            move_mapped(to + share.at, from, share.bytes);
        else
            st = rk_cma_write(ep->pid, a->to + share.at, from, share.bytes);
        if (st) {
            atomic_fetch_or(&ep->out.box->helped, ASSIST_FAILED);
            if (st != RANK_ERR_PEER_DEAD)
                rk_shm_cma_failed(ep);
        }
        atomic_fetch_add(&ep->out.box->helped, 1);
        rk_node_wake(shm->node, ep->peer->slot);
        if (st)
            return;
    }
}

/* ----------------------------------------------------------------- receiver */

/* Has the sender finished its share of ep->assisted? Called when all chunks are claimed. */
static bool assist_is_done(struct rk_shm_ep *ep, struct rk_fifo *box)
{
    uint32_t helped = atomic_load(&box->helped);
    uint32_t claimed = rk_split_front(atomic_load(&box->claims));
    struct rank_request *req = ep->assisted;
    struct rk_shm_recv r = {.shm = ep->shm, .ep = ep, .req = req};

    if ((helped & ~ASSIST_FAILED) < claimed)
        return false;
    ep->assisted = NULL;
    ep->shm->nassisted--;
    rk_list_remove(&req->link);
    r.sender = req->priv[RK_SHM_R_SENDER];
    r.want = req->priv[RK_SHM_R_WANT];
    if (helped & ASSIST_FAILED) { /* the kernel refused: start over as a stream */
        rk_shm_cma_failed(ep);
        rk_shm_stream_request(&r);
    } else {
        rk_shm_recv_finish(&r, RANK_OK);
    }
    return true;
}

int rk_shm_rndv_poll(struct rk_shm *shm)
{
    int n = 0;

    for (int i = 0; i < shm->nlocal; i++) {
        if (shm->ep[i] && shm->ep[i]->assisted)
            n += assist_is_done(shm->ep[i], shm->in[i].box);
    }
    return n;
}

void rk_shm_assist_abort(struct rk_shm *shm, struct rk_shm_ep *ep)
{
    if (!ep->assisted)
        return;
    atomic_store(&shm->in[ep->peer->slot].box->claims, rk_split_begin(++ep->assist_gen));
    ep->assisted = NULL;
    shm->nassisted--;
}

/* Is a message on its way to that peer that it has to fetch? */
static bool has_for(const struct rk_shm *shm, const struct rk_peer *peer)
{
    const struct rk_link *last = shm->sending.prev;

    return last != &shm->sending && rk_list_entry(last, struct rank_request, link)->peer == peer;
}

/* Maximum time of a chunk. */
enum { LAST_CHUNK_NS = 20 * 1000 };

void rk_shm_copy_together(struct rk_shm_recv *r, const char *here)
{
    struct rk_shm *shm = r->shm;
    struct rk_shm_ep *ep = r->ep;
    struct rank_request *req = r->req;
    struct rk_fifo *box = shm->in[ep->peer->slot].box;
    /* A sender that fetches from this rank at the same time will not help. */
    uint64_t most = r->to_segment ? RK_CHUNK_MAPPED : has_for(shm, ep->peer) ? RK_CHUNK_BUSY : RK_CHUNK_MAX;
    uint64_t chunk = rk_chunk_of(r->want, most);
    struct rk_shm_assist a = {.sender = rk_id_unpack(r->sender),
                              .to = r->to,
                              .bytes = r->want,
                              .gen = ++ep->assist_gen,
                              .chunk = (uint32_t)(chunk >> 10)};
    struct rk_share share;
    uint64_t until;

    atomic_store(&box->helped, 0);
    atomic_store(&box->claims, rk_split_begin(a.gen));
    req->priv[RK_SHM_R_SENDER] = r->sender;
    req->priv[RK_SHM_R_WANT] = r->want;
    ep->assisted = req;
    shm->nassisted++;
    rk_list_append(&shm->receiving, &req->link);
    rk_send_control(ep->peer, RK_SHM_ASSIST, r->to_segment, &a, sizeof(a));
    while (rk_split_claim(&box->claims, a.gen, r->want, chunk, false, &share)) {
        char *to = (char *)req->view.base + share.at;
        rank_status_t st;

        if (here) {
            move_mapped(to, here + share.at, share.bytes);
            continue;
        }
        st = rk_cma_read(ep->pid, to, r->at + share.at, share.bytes);
        if (st == RANK_ERR_PEER_DEAD) { /* a chunk of the sender's is missing */
            rk_shm_assist_abort(shm, ep);
            rk_shm_complete_linked(req, st);
            return;
        }
        if (st) {
            rk_split_claim_rest(&box->claims, rk_chunks(r->want, chunk));
            atomic_fetch_or(&box->helped, ASSIST_FAILED);
            break;
        }
    }
    /*
     * Wait for the sender, which ends at about the same time and would wait for DONE until the next progress call.
     * Not rk_wait: this runs inside progress, which must not be entered again, and it is over in one chunk's time.
     */
    for (until = rk_clock_ns() + LAST_CHUNK_NS; !assist_is_done(ep, box) && rk_clock_ns() < until;)
        rk_cpu_relax();
}
