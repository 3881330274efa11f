/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.c: move frames between ranks of a node: send, poll.
 */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/node/cma.h"
#include "lib/channel/shm/export_table.h"
#include "lib/channel/shm/shm.h"
#include "lib/channel/shm/shm_rndv.h"
#include "lib/channel/shm/shm_region.h"
#include "lib/node/node.h"

#include <stdlib.h>

/* tests/model/sender_bitmap_model.c uses shorter passes. */
#ifndef RK_FRAMES_PER_PASS
#define RK_FRAMES_PER_PASS 64
#endif

/* ------------------------------------------------------------------------ frames */

RK_COLD rank_status_t rk_shm_back_ring(struct rk_shm *shm, struct rk_shm_ep *ep)
{
    rank_status_t st = rk_node_commit(shm->node, RK_REGION_FIFOS,
                                      rk_shm_box_at(shm, ep->peer->slot, shm->me) + shm->shape.ring_at,
                                      ep->out.used);
    if (st)
        return st;
    ep->bytes_backed = true;
    return RANK_OK;
}

/*
 * A ring doubles when found full TOO_OFTEN times, within DEEPENED_MAX for all rings of a rank: all-to-all traffic
 * does not grow them.
 */
enum { TOO_OFTEN = 8, DEEPENED_MAX = 1 << 20 };

/* No room: is the byte ring full? Repeated polling counts once. */
static RK_COLD void found_full(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_hdr *hdr)
{
    uint32_t used = ep->out.used;

    if (hdr->len <= RK_CELL_INLINE || !rk_fifo_cell_room(&ep->out) || ep->full_at == ep->out.at ||
        used == ep->out.ring_bytes || shm->deepened + used > DEEPENED_MAX)
        return;
    ep->full_at = ep->out.at;
    if (++ep->full < TOO_OFTEN)
        return;
    ep->full = 0;
    shm->deepened += used;
    if (!rk_node_try_commit(shm->node, RK_REGION_FIFOS,
                            rk_shm_box_at(shm, ep->peer->slot, shm->me) + shm->shape.ring_at + used, used)) {
        shm->deepened = DEEPENED_MAX; /* no further attempts */
        return;
    }
    ep->out.used = 2 * used;
    rk_debug("the ring to rank %u is %u bytes deep", ep->peer->id.rank, ep->out.used);
}

/* Publish that something was appended. */
RK_INLINE void shm_notify(struct rk_shm *shm, struct rk_shm_ep *ep)
{
    int to = ep->peer->slot;

    if (shm->by_bits)
        atomic_fetch_or(&rk_shm_bits_of(shm, to)[shm->me / 64], 1ull << (shm->me % 64));
    rk_node_wake(shm->node, to);
}

RK_INLINE rank_status_t put_frame(struct rk_shm *shm, struct rk_shm_ep *ep,
                                  const struct rk_hdr *hdr, const void *first, uint32_t first_len,
                                  const void *second)
{
    if (rk_unlikely(hdr->len > RK_CELL_INLINE && !ep->bytes_backed)) {
        rank_status_t st = rk_shm_back_ring(shm, ep);
        if (st)
            return st;
    }
    if (rk_unlikely(!rk_fifo_put(&ep->out, hdr, first, first_len, second))) {
        found_full(shm, ep, hdr);
        return RK_AGAIN;
    }
    shm_notify(shm, ep);
    return RANK_OK;
}

rank_status_t rk_shm_put(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_hdr *hdr,
                         const void *first, uint32_t first_len, const void *second)
{
    return put_frame(shm, ep, hdr, first, first_len, second);
}

rank_status_t rk_shm_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_shm_ep *ep = peer->ep;

    return put_frame(ep->shm, ep, hdr, payload, hdr->len, NULL);
}

static RK_COLD rank_status_t send_unbound(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag,
                                          const void *payload, uint32_t bytes)
{
    struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = peer->epoch, .src = src, .len = bytes, .team = team, .tag = tag};

    return rk_shm_send(peer, &hdr, payload);
}

rank_status_t rk_shm_send_small(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                                    uint32_t bytes)
{
    struct rk_shm_ep *ep = peer->ep;
    int bind = rk_fifo_binding(&ep->out, team, src, peer->epoch, tag);

    if (rk_unlikely(bind < 0))
        return send_unbound(peer, team, src, tag, payload, bytes);
    if (rk_unlikely(!rk_fifo_put_compact(&ep->out, (uint32_t)bind, tag, payload, bytes)))
        return RK_AGAIN;
    shm_notify(ep->shm, ep);
    return RANK_OK;
}

rank_status_t rk_shm_send2(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first,
                               size_t first_len, const void *second)
{
    struct rk_shm_ep *ep = peer->ep;

    return put_frame(ep->shm, ep, hdr, first, (uint32_t)first_len, second);
}

size_t rk_shm_frame_max(const struct rk_peer *peer)
{
    return ((struct rk_shm_ep *)peer->ep)->shm->shape.frame;
}

/* May a frame of the peer of a connection be handled? Is it in the team of its message? is_valid counts those that it refuses. */
static bool is_admitted(const struct rk_shm *shm, const struct rk_peer *peer, const struct rk_hdr *hdr)
{
    const struct rk_engine *e = shm->ctx->engine;

    if (peer->condemned)
        return false;
    return (hdr->kind > RK_KIND_SMSG && hdr->kind != RK_KIND_RNDV) || !e->is_valid || e->is_valid(shm->ctx, peer, hdr);
}

static bool is_admitted_small(const struct rk_shm *shm, const struct rk_peer *peer, const struct rk_bind *b, uint64_t tag)
{
    const struct rk_hdr hdr = {.kind = RK_KIND_MSG, .src = b->src, .team = b->team, .tag = tag};

    return is_admitted(shm, peer, &hdr);
}

static void shm_frame_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                          const void *payload)
{
    rk_handler_fn handler = shm->ctx->engine->handler[hdr->kind];

    if (rk_unlikely(shm->checks) && !is_admitted(shm, peer, hdr))
        return;
    if (rk_likely(handler && hdr->kind != RK_KIND_RNDV)) {
        handler(shm->ctx, peer, hdr, payload, NULL);
        return;
    }
    if (hdr->kind == RK_KIND_RNDV)
        rk_shm_rndv_arrived(shm, peer, hdr, payload);
    else if (hdr->kind >= RK_SHM_FETCH && hdr->kind <= RK_SHM_PUSHED)
        rk_shm_rndv_frame(shm, peer, hdr, payload);
    else
        rk_engine_refused(shm->ctx, &shm->bad_frames);
}

/* Returns the number of frames consumed, at most RK_FRAMES_PER_PASS. */
RK_INLINE int shm_drain(struct rk_shm *shm, int from)
{
    struct rk_fifo_in *in = &shm->in[from];
    struct rk_peer *peer = shm->from[from];
    int n = 0;

    while (n < RK_FRAMES_PER_PASS && rk_fifo_ready(in)) {
        struct rk_hdr hdr;
        uint64_t behind;
        const void *payload;

        if (rk_likely(rk_fifo_is_compact(in))) {
            uint32_t len;
            const struct rk_bind *b = rk_fifo_compact(in, &len);

            if (rk_unlikely(!b || b->epoch != peer->epoch))
                rk_engine_refused(shm->ctx, &shm->bad_frames);
            else if (rk_likely(!shm->checks) || is_admitted_small(shm, peer, b, in->head >> 24))
                shm->ctx->engine->small(peer, b->team, b->src, in->head >> 24, in->cell->slot[in->slot].payload, len);
            in->messages++;
            rk_fifo_consume(in, in->at);
            n++;
            continue;
        }
        payload = rk_fifo_read(in, shm->shape.frame, &hdr, &behind);
        if (rk_likely(payload && hdr.epoch == peer->epoch))
            shm_frame_arrived(shm, peer, &hdr, payload);
        else
            rk_engine_refused(shm->ctx, &shm->bad_frames);
        in->messages += payload && rk_frame_is_message(hdr.kind);
        rk_fifo_consume(in, behind);
        n++;
    }
    return n;
}

enum rk_taken rk_shm_take(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag,
                              void *buf, size_t cap, struct rk_took *out)
{
    struct rk_shm *shm = ((struct rk_shm_ep *)peer->ep)->shm;
    struct rk_fifo_in *in = &shm->in[peer->slot];
    struct rk_hdr hdr;
    const void *payload;
    uint64_t behind;

    if (rk_unlikely(!in->box) || !rk_fifo_ready(in))
        return RK_TAKEN_NONE;
    if (rk_likely(rk_fifo_is_compact(in))) {
        uint32_t len;
        const struct rk_bind *b = rk_fifo_compact(in, &len);

        if (rk_unlikely(!b || b->team != team || b->src != src || b->epoch != peer->epoch ||
                        (in->head >> 24 != tag && tag != RK_TAG_ANY)))
            return RK_TAKEN_OTHER;
        *out = (struct rk_took){in->head >> 24, len};
        rk_copy_small(buf, in->cell->slot[in->slot].payload, len < cap ? len : (uint32_t)cap);
        in->messages++;
        rk_fifo_consume(in, in->at);
        return RK_TAKEN;
    }
    payload = rk_fifo_read(in, shm->shape.frame, &hdr, &behind);
    if (rk_unlikely(!payload || hdr.kind != RK_KIND_MSG || hdr.team != team || hdr.src != src ||
                    (hdr.tag != tag && tag != RK_TAG_ANY) || hdr.epoch != peer->epoch))
        return RK_TAKEN_OTHER;
    out->tag = hdr.tag;
    out->bytes = hdr.len;
    if (hdr.len < cap)
        cap = hdr.len;
    if (cap <= RK_CELL_BYTES)
        rk_copy_small(buf, payload, (uint32_t)cap);
    else
        memcpy(buf, payload, cap);
    in->messages++;
    rk_fifo_consume(in, behind);
    return RK_TAKEN;
}

static int drain_by_bits(struct rk_shm *shm)
{
    _Atomic uint64_t *bits = rk_shm_bits_of(shm, shm->me);
    int n = 0;

    for (int w = 0; w < (shm->nlocal + 63) / 64; w++) {
        uint64_t x = shm->again[w];

        if (atomic_load_explicit(&bits[w], memory_order_relaxed))
            x |= atomic_exchange(&bits[w], 0);
        shm->again[w] = 0;
        for (; x; x &= x - 1) {
            int from = w * 64 + __builtin_ctzll(x), got;

            if (rk_unlikely(!shm->in[from].box))
                rk_shm_accept_boxes(shm);
            got = shm->in[from].box ? shm_drain(shm, from) : 0;
            if (got == RK_FRAMES_PER_PASS || !shm->in[from].box)
                shm->again[w] |= 1ull << (from % 64);
            n += got;
        }
    }
    return n;
}

/* At most what its fifo holds: a peer that closes its connection lives, and could go on sending. */
RK_COLD void rk_shm_drain(struct rk_shm *shm, struct rk_peer *peer)
{
    int n = 0, most = (int)shm->shape.cells * RK_SLOTS;

    rk_shm_accept_boxes(shm);
    while (n < most && peer->state == RK_PEER_UP && !peer->condemned && shm->in[peer->slot].box) {
        int got = shm_drain(shm, peer->slot);
        if (got == 0)
            break;
        n += got;
    }
}

static RK_COLD int continue_streams(struct rk_shm *shm)
{
    struct rk_link *l, *next;
    int n = 0;

    rk_list_for_each_safe(l, next, &shm->busy)
    {
        struct rk_shm_ep *ep = rk_list_entry(l, struct rk_shm_ep, busy);

        if (!rk_sendq_has(&ep->peer->sendq, RK_SEND_CONTROL)) /* else it would take their room */
            n += rk_shm_rndv_stream(shm, ep);
        if (rk_list_empty(&ep->streams))
            rk_engine_release(shm->ctx, &ep->busy);
    }
    return n;
}

int rk_shm_progress(struct rk_shm *shm)
{
    int n = 0;

    if (shm->by_bits) {
        n = drain_by_bits(shm);
    } else {
        if (rk_unlikely(atomic_load_explicit(&shm->node->mine->opened, memory_order_relaxed) !=
                        shm->opened_seen))
            rk_shm_accept_boxes(shm);
        for (int k = 0; k < shm->nopen_in; k++)
            n += shm_drain(shm, shm->open_in[k]);
    }
    if (rk_unlikely(!rk_list_empty(&shm->busy)))
        n += continue_streams(shm);
    if (rk_unlikely(shm->nassisted))
        n += rk_shm_rndv_poll(shm);
    if (rk_unlikely(shm->nsteps))
        n += rk_shm_steps_progress(shm);
    return n;
}

/* Announce any size rather than copy it twice: each copy of a device costs more than the rendezvous. */
bool rk_shm_fetches(const struct rk_peer *peer, const struct rk_view *view)
{
    return view->ops->kind && view->ops->kind->block && view->ops->kind->import && !((const struct rk_shm_ep *)peer->ep)->staged;
}

void rk_shm_idle(struct rk_shm *shm, uint64_t now)
{
    if (rk_likely(!shm->exports && !shm->imports))
        return;
    rk_exports_check(shm, now);
    rk_imports_check(shm, now);
}

bool rk_shm_has_frames(const struct rk_shm *shm)
{
    if (atomic_load(&shm->node->mine->opened) != shm->opened_seen || shm->nsteps)
        return true;
    for (int k = 0; k < shm->nopen_in; k++) {
        if (rk_fifo_ready(&shm->in[shm->open_in[k]]))
            return true;
    }
    return false;
}

/* ------------------------------------------------- the channel of the context's node */

static rank_status_t shm_open_node(struct rk_ctx *ctx, void **state, void *card, size_t *len)
{
    struct rk_shm *shm;
    rank_status_t st = rk_shm_make(ctx, ctx->node, NULL, NULL, &shm);

    (void)card;
    *len = 0;
    if (!st)
        *state = shm;
    return st;
}

static void shm_close_node(struct rk_ctx *ctx, void *state)
{
    (void)ctx;
    rk_shm_free(state);
}

static rank_status_t shm_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer)
{
    (void)ctx;
    return rk_shm_connect(state, peer);
}

static void shm_drain_peer(void *state, struct rk_peer *peer)
{
    rk_shm_drain(state, peer);
}

static void shm_disconnect(void *state, struct rk_peer *peer)
{
    rk_shm_disconnect(state, peer);
}

static int shm_progress(struct rk_ctx *ctx, void *state)
{
    (void)ctx;
    return rk_shm_progress(state);
}

static void shm_idle(void *state, uint64_t now)
{
    rk_shm_idle(state, now);
}

static void shm_freed(void *state, const void *ptr, size_t bytes)
{
    rk_exports_drop(state, ptr, bytes);
}

/* Memory into which an assisting sender still writes must stay, too. */
static rank_status_t shm_drained(void *state)
{
    return ((const struct rk_shm *)state)->nassisted > 0 ? RK_AGAIN : RANK_OK;
}

const struct rk_channel rk_channel_shm = {
    .name = "shm",
    .shares_memory = true,
    .within_node = true,
    .open = shm_open_node,
    .close = shm_close_node,
    .connect = shm_connect,
    .drain = shm_drain_peer,
    .disconnect = shm_disconnect,
    RK_SHM_FRAMES,
    .progress = shm_progress,
    .idle = shm_idle,
    .freed = shm_freed,
    .drained = shm_drained,
    .device = &rk_shm_device_ops,
};
