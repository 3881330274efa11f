/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_recv.c: receive packets from UCP: validate, order and deliver their frames.
 *
 * Input is used only after rk_ucx_decode and link_for have validated it. Malformed or late packets are dropped and
 * counted. A link that has lost its order is disconnected as if its peer had died.
 */
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

/* Limit of held data of a link while an earlier packet is missing. */
enum { HELD_BYTES_MAX = 64 << 20 };

/* An early packet. */
struct held {
    struct rk_ucx_packet packet;
    void *desc;     /* UCP's descriptor of a rendezvous */
    uint64_t total;
    size_t bytes;
    unsigned char data[] __attribute__((aligned(8)));
};

static void release_desc(struct rk_ucx *ucx, void *desc)
{
    if (desc)
        ucp_am_data_release(ucx->worker, desc);
}

/* ------------------------------------------------------------------- sender */

/* The sender has the link, and takes frames. */
static void sender_known(struct rk_ucx_link *l, const struct rk_ucx_hello *hello)
{
    if (l->theirs.index == RK_UCX_NO_LINK)
        l->theirs = hello->from;
    rk_ucx_link_admit(l);
}

static struct rk_ucx_link *introduced_link(struct rk_ucx *ucx, const struct rk_ucx_hello *hello)
{
    struct rk_peer *peer;
    struct rk_ucx_link *l;

    if (hello->job == ucx->job && hello->rank == ucx->me)
        return NULL;
    peer = rk_engine_find_peer(ucx->ctx, (struct rk_procid){hello->job, hello->rank});
    l = peer ? rk_ucx_link_of(ucx, peer) : NULL;
    if (l)
        sender_known(l, hello);
    return l;
}

static bool is_of_peer(const struct rk_ucx_link *l, const struct rk_ucx_hello *hello)
{
    return hello->job == l->peer->id.job && hello->rank == l->peer->id.rank;
}

/*
 * A packet that names a link is its peer's: the id is secret. On a connection each packet also names the job, which only
 * both sides have.
 */
static struct rk_ucx_link *link_for(struct rk_ucx *ucx, const struct rk_ucx_packet *p)
{
    struct rk_hash_node *node;
    struct rk_ucx_link *named;

    if (p->to.index == RK_UCX_NO_LINK)
        return introduced_link(ucx, &p->hello);
    node = rk_secret_id_find(&ucx->links, p->to);
    named = node ? rk_container_of(node, struct rk_ucx_link, by_id) : NULL;
    if (!named || (p->has_hello ? !is_of_peer(named, &p->hello) : named->remote != 0))
        return NULL;
    named->confirmed = true;
    if (rk_unlikely(p->has_hello))
        sender_known(named, &p->hello);
    return named;
}

/* --------------------------------------------------------------------- delivery */

static RK_COLD void bye_came(struct rk_ucx_link *l, uint8_t flags)
{
    struct rk_ctx *ctx = l->ucx->ctx;

    l->bye = true;
    l->lost_ns = 0;
    l->peer->left = 1;
    /* A wait for a peer that leaves alone, after a death, never ends; nor does the last barrier. */
    if (!(flags & RK_UCX_DISCONNECTED) && (!ctx->engine->finalizing || flags & RK_UCX_ALONE))
        rk_engine_report_death(ctx, l->peer->number);
}

static void ucx_recv_frame_arrived(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_ctx *ctx = l->ucx->ctx;
    rk_handler_fn handler;

    if (rk_unlikely(hdr->epoch != l->peer->epoch)) {
        l->ucx->late_frames++;
        return;
    }
    if (rk_unlikely(hdr->kind == RK_UCX_BYE)) {
        bye_came(l, hdr->flags);
        return;
    }
    if (hdr->kind <= RK_KIND_SMSG && !rk_ucx_is_valid(l, hdr))
        return;
    if (l->ucx->fast_recv && rk_ucx_fast_recv_frame(l->ucx->fast_recv, l, hdr, payload))
        return;
    handler = ctx->engine->handler[hdr->kind];
    if (rk_likely(handler != NULL))
        handler(ctx, l->peer, hdr, payload, NULL);
    else
        rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
}

/* Returns true if desc is kept; false: release it. */
static bool ucx_recv_deliver(struct rk_ucx_link *l, struct rk_ucx_packet *p, void *desc, uint64_t total)
{
    const void *payload;
    struct rk_hdr hdr;

    l->ucx->handled++;
    if (rk_unlikely(l->peer->condemned)) {
        l->ucx->late_frames++;
        return false;
    }
    if (desc) {
        if (rk_likely(p->first.epoch == l->peer->epoch))
            return rk_ucx_announced(l, &p->first, desc, total);
        l->ucx->late_frames++;
        return false;
    }
    while (rk_likely(!l->peer->condemned) && rk_ucx_next(p, &hdr, &payload))
        ucx_recv_frame_arrived(l, &hdr, payload);
    return true;
}

static void held_free(void *item, void *ucx)
{
    struct held *h = item;

    release_desc(ucx, h->desc);
    free(h);
}

void rk_ucx_drop_held(struct rk_ucx_link *l)
{
    rk_order_destroy(&l->in, held_free, l->ucx);
    l->held_bytes = 0;
}

static bool hold(struct rk_ucx_link *l, const struct rk_ucx_packet *p, void *desc, uint64_t total)
{
    size_t bytes = sizeof(struct held) + p->len;
    struct held *h = l->held_bytes + bytes <= HELD_BYTES_MAX ? malloc(bytes) : NULL;
    int rc = -1;

    if (h) {
        h->packet = *p;
        h->desc = desc;
        h->total = total;
        h->bytes = bytes;
        if (p->len)
            memcpy(h->data, p->data, p->len);
        h->packet.data = h->data;
        rc = rk_order_hold(&l->in, p->first.turn, h);
        if (rc == 0) {
            l->held_bytes += bytes;
            return true;
        }
        free(h);
        if (rc > 0) { /* a duplicate turn: the second is forged */
            rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
            return false;
        }
    }
    rk_error("cannot hold what rank %u sent out of order (%zu bytes already)", l->peer->id.rank,
             (size_t)l->held_bytes);
    rk_ucx_link_broken(l);
    return false;
}

static void deliver_held(struct rk_ucx_link *l)
{
    struct held *h;

    while ((h = rk_order_take(&l->in)) != NULL) {
        l->held_bytes -= h->bytes;
        rk_order_advance(&l->in);
        if (!ucx_recv_deliver(l, &h->packet, h->desc, h->total))
            release_desc(l->ucx, h->desc);
        free(h);
    }
}

/* Returns true if desc is kept. */
static bool packet_arrived(struct rk_ucx_link *l, struct rk_ucx_packet *p, void *desc,
                           uint64_t total)
{
    bool kept;

    switch (rk_order_compare(&l->in, p->first.turn)) {
    case RK_TURN_DUE:
        rk_order_advance(&l->in);
        kept = ucx_recv_deliver(l, p, desc, total);
        if (rk_unlikely(l->in.nheld))
            deliver_held(l);
        return kept;
    case RK_TURN_EARLY:
        return hold(l, p, desc, total);
    case RK_TURN_STALE:
    case RK_TURN_BROKEN:
        break;
    }
    rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
    return false;
}

/* ---------------------------------------------------------------- UCP's callback */

/*
 * Count a packet without a link, or a malformed one (NULL). The first packet of a peer may come when its job has been
 * disconnected here, and this side has never had a link to it.
 */
static RK_COLD void unknown_link(struct rk_ucx *ucx, const struct rk_ucx_packet *p)
{
    if (p && (rk_secret_id_was_dropped(&ucx->links, p->to) || (p->has_hello && rk_engine_job_is_gone(ucx->ctx, p->hello.job))))
        ucx->late_frames++;
    else
        rk_engine_refused(ucx->ctx, &ucx->bad_frames);
}

static ucs_status_t on_packet(void *arg, const void *head, size_t head_len, void *data, size_t len,
                              const ucp_am_recv_param_t *param)
{
    bool rndv = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    struct rk_ucx *ucx = arg;
    struct rk_ucx_packet p;
    struct rk_ucx_link *l;
    bool valid;

    if (ucx->fast_recv && !rndv && rk_ucx_fast_recv_packet(ucx->fast_recv, head, head_len, data, len))
        return UCS_OK;
    valid = rk_ucx_decode(head, head_len, data, len, rndv, &p);
    l = rk_likely(valid) ? link_for(ucx, &p) : NULL;
    if (rk_unlikely(!l)) {
        unknown_link(ucx, valid ? &p : NULL);
        return UCS_OK; /* UCP completes the sender of a rendezvous */
    }
    if (rk_unlikely(ucx->leaving || l->dropped || (l->failed && !l->lost_ns) || l->peer->state == RK_PEER_DEAD ||
                    l->peer->condemned)) {
        ucx->late_frames++;
        return UCS_OK;
    }
    if (!packet_arrived(l, &p, rndv ? data : NULL, rndv ? len : 0))
        return UCS_OK;
    return rndv ? UCS_INPROGRESS : UCS_OK;
}

rank_status_t rk_ucx_listen(struct rk_ucx *ucx)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = RK_UCX_AM,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = on_packet,
        .arg = ucx,
    };
    ucs_status_t st = ucp_worker_set_am_recv_handler(ucx->worker, &param);

    if (st == UCS_OK)
        return RANK_OK;
    return rk_fail(RANK_ERR_CHANNEL, "UCX does not take a handler of active messages: %s", ucs_status_string(st));
}
