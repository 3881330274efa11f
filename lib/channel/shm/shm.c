/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.c: move frames between ranks of a node: first contact, send, poll.
 *
 * The fifo region of the node's segment is sparse. It begins with a byte for each pair (opened or not) and the
 * bitmaps of pending senders, which its creator backs. A sender backs its fifo on first contact, and the byte ring
 * on the first frame that needs it. With many ranks rings start small and grow where they are often full.
 */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/node/cma.h"
#include "lib/channel/shm/export_table.h"
#include "lib/channel/shm/shm.h"
#include "lib/channel/shm/shm_region.h"
#include "lib/node/node.h"

#include <stdlib.h>

/*
 * Up to about this many ranks, polling each fifo is cheaper than a bitmap, which costs an atomic a frame. To
 * measure: CPPFLAGS=-DRK_POLL_ALL_MAX=0 always uses the bitmap, 1000 never. Equal in all ranks of a job.
 */
#ifndef RK_POLL_ALL_MAX
#define RK_POLL_ALL_MAX 8
#endif
/* tests/model/sender_bitmap_model.c uses shorter passes. */
#ifndef RK_FRAMES_PER_PASS
#define RK_FRAMES_PER_PASS 64
#endif

/* ---------------------------------------------------------- layout of the region */

static size_t box_bytes(int nlocal)
{
    size_t want = (size_t)rk_conf.shm_box;

    if (want == 0)
        want = nlocal <= 4 ? 256 << 10 : nlocal <= 16 ? 64 << 10 : nlocal <= 64 ? 32 << 10 : 16 << 10;
    return rk_round_up(want < (16 << 10) ? 16 << 10 : want, 4096);
}

static size_t bits_words(int nlocal)
{
    return rk_round_up((size_t)(nlocal + 63) / 64, RK_CACHE_LINE / 8);
}

static size_t opened_bytes(int nlocal)
{
    return rk_round_up((size_t)nlocal * (size_t)nlocal, RK_CACHE_LINE);
}

static size_t shm_front_bytes(int nlocal)
{
    return rk_round_up(opened_bytes(nlocal) + (size_t)nlocal * bits_words(nlocal) * 8, 4096);
}

/*
 * Maximum depth of a ring (64 KiB made short messages slower). All rings of the node, which each rank maps, stay
 * below 1 GiB.
 */
enum { DEEP = 32 << 10 };
#define REGION_MAX ((size_t)1 << 30)

static struct rk_fifo_shape shape_for(int nlocal)
{
    struct rk_fifo_shape s = rk_fifo_shape(box_bytes(nlocal));
    size_t most = REGION_MAX / ((size_t)nlocal * (size_t)nlocal);

    if (rk_conf.shm_box == 0 && most > s.ring)
        rk_fifo_shape_deepen(&s, most < DEEP ? (uint32_t)most : DEEP);
    return s;
}

size_t rk_shm_region_bytes(int nlocal)
{
    return shm_front_bytes(nlocal) + (size_t)nlocal * (size_t)nlocal * shape_for(nlocal).bytes;
}

static _Atomic unsigned char *opened_flag(struct rk_shm *shm, int to, int from)
{
    unsigned char *row = rk_node_at(shm->ctx->node, RK_REGION_FIFOS,
                                    (size_t)to * (size_t)shm->nlocal);
    return (_Atomic unsigned char *)(row + from);
}

static _Atomic uint64_t *bits_of(struct rk_shm *shm, int to)
{
    return rk_node_at(shm->ctx->node, RK_REGION_FIFOS,
                      opened_bytes(shm->nlocal) + (size_t)to * bits_words(shm->nlocal) * 8);
}

static size_t box_at(const struct rk_shm *shm, int to, int from)
{
    return shm_front_bytes(shm->nlocal) +
           ((size_t)to * (size_t)shm->nlocal + (size_t)from) * shm->shape.bytes;
}

/* ------------------------------------------------------------------ open, close */

static void shm_close(struct rk_ctx *ctx, void *state)
{
    struct rk_shm *shm = state;

    (void)ctx;
    if (!shm)
        return;
    if (shm->bad_frames)
        rk_warn("%llu broken frames came through shared memory", (unsigned long long)shm->bad_frames);
    rk_exports_close(shm);
    free(shm->imports); /* closed with the peers */
    free(shm->ep);
    free(shm->in);
    free(shm->from);
    free(shm->open_in);
    free(shm->again);
    free(shm);
}

static rank_status_t shm_shm_open(struct rk_ctx *ctx, void **state, void *card, size_t *len)
{
    struct rk_node *node = ctx->node;
    struct rk_shm *shm = calloc(1, sizeof(*shm));
    size_t n = (size_t)node->nlocal;

    (void)card;
    *len = 0;
    if (!shm)
        return RANK_ERR_NO_MEMORY;
    shm->ctx = ctx;
    shm->nlocal = node->nlocal;
    shm->me = node->index;
    shm->shape = shape_for(node->nlocal);
    shm->by_bits = node->nlocal > RK_POLL_ALL_MAX;
    rk_list_init(&shm->busy);
    rk_list_init(&shm->receiving);
    rk_list_init(&shm->sending);
    shm->ep = calloc(n, sizeof(*shm->ep));
    shm->in = calloc(n, sizeof(*shm->in));
    shm->from = calloc(n, sizeof(*shm->from));
    shm->open_in = calloc(n, sizeof(*shm->open_in));
    shm->again = calloc((n + 63) / 64, sizeof(*shm->again));
    if (!shm->ep || !shm->in || !shm->from || !shm->open_in || !shm->again) {
        shm_close(ctx, shm);
        return RANK_ERR_NO_MEMORY;
    }
    if (node->index == 0) {
        rank_status_t st = rk_node_commit(node, RK_REGION_FIFOS, 0, shm_front_bytes(node->nlocal));
        if (st) {
            shm_close(ctx, shm);
            return st;
        }
    }
    if (node->nlocal > 1)
        free(rk_proto_table_load(&shm->protos, node->index == 0));
    shm->nt_from = rk_shm_proto_set() == &rk_shm_proto_ring_nt ? RK_NT_LEAST
                   : rk_shm_proto_set() == &rk_shm_proto_ring  ? UINT32_MAX
                                                               : rk_proto_table_nt_from(&shm->protos);
    rk_cma_allow();
    *state = shm;
    return RANK_OK;
}

/* ----------------------------------------------------------------- first contact */

static bool try_cma(const struct rk_node_slot *slot)
{
    bool works;

    if (rk_conf.cma == RK_CONF_CMA_OFF)
        return false;
    works = rk_cma_works(slot->pid, slot->probe_addr, slot->probe_word);
    if (!works && rk_conf.cma == RK_CONF_CMA_ON)
        rk_warn("RANK_CMA is on, but the kernel does not let this process read the memory of rank "
                "%d (pid %d); large messages are copied twice",
                slot->world_rank, slot->pid);
    return works;
}

void rk_shm_cma_failed(struct rk_shm_ep *ep)
{
    const struct rk_node_slot *slot = &ep->shm->ctx->node->slots[ep->peer->local];

    if (!ep->cma || rk_cma_works(slot->pid, slot->probe_addr, slot->probe_word))
        return;
    ep->cma = false;
    rk_warn("the kernel stopped letting this process reach the memory of rank %u; large messages are copied twice from now on",
            ep->peer->id.rank);
}

static rank_status_t shm_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer)
{
    struct rk_shm *shm = state;
    struct rk_node *node = ctx->node;
    struct rk_shm_ep *ep;
    rank_status_t st;
    size_t at;

    if (peer->local < 0 || peer->local == shm->me)
        return RANK_ERR_UNREACHABLE;
    at = box_at(shm, peer->local, shm->me);
    st = rk_node_commit(node, RK_REGION_FIFOS, at, shm->shape.ring_at);
    if (st)
        return st;
    ep = calloc(1, sizeof(*ep));
    if (!ep)
        return RANK_ERR_NO_MEMORY;
    ep->shm = shm;
    ep->peer = peer;
    ep->pid = node->slots[peer->local].pid;
    ep->cma = try_cma(&node->slots[peer->local]);
    rk_list_init(&ep->busy);
    rk_list_init(&ep->streams);
    rk_fifo_out_init(&ep->out, rk_node_at(node, RK_REGION_FIFOS, at), &shm->shape);
    ep->out.nt_from = shm->nt_from;
    ep->out.opposite = &shm->in[peer->local];
    shm->ep[peer->local] = ep;
    peer->ep = ep;
    atomic_store(opened_flag(shm, peer->local, shm->me), 1);
    atomic_fetch_add(&node->slots[peer->local].opened, 1);
    return RANK_OK;
}

struct rk_shm_ep *rk_shm_ep_of(struct rk_peer *peer)
{
    rank_status_t st = RANK_OK;

    if (rk_unlikely(peer->state == RK_PEER_NEW))
        st = rk_peer_try_connect(peer); /* a rank of this host: the answer is immediate */
    if (rk_likely(!st))
        return peer->ep;
    rk_send_give_up(peer, st);
    return NULL;
}

static void shm_disconnect(void *state, struct rk_peer *peer)
{
    struct rk_shm *shm = state;
    struct rk_shm_ep *ep = peer->ep;

    rk_shm_rndv_peer_gone(shm, peer);
    rk_imports_drop(shm, peer->local);
    rk_xpmem_close(ep->far);
    rk_engine_release(shm->ctx, &ep->busy);
    shm->ep[peer->local] = NULL;
    peer->ep = NULL;
    free(ep);
}

static void accept_box(struct rk_shm *shm, int from)
{
    struct rk_node *node = shm->ctx->node;
    struct rk_peer *peer = rk_engine_peer(shm->ctx, node->slots[from].world_rank);

    if (!peer)
        return; /* out of memory, reported; the next pass retries */
    shm->from[from] = peer;
    rk_fifo_in_init(&shm->in[from],
                    rk_node_at(node, RK_REGION_FIFOS, box_at(shm, shm->me, from)), &shm->shape);
    shm->open_in[shm->nopen_in++] = from;
}

static RK_COLD void accept_boxes(struct rk_shm *shm)
{
    shm->opened_seen = atomic_load(&shm->ctx->node->mine->opened);
    for (int i = 0; i < shm->nlocal; i++) {
        if (!shm->in[i].box && atomic_load(opened_flag(shm, shm->me, i)))
            accept_box(shm, i);
    }
}

/* ------------------------------------------------------------------------ frames */

static RK_COLD rank_status_t back_ring(struct rk_shm *shm, struct rk_shm_ep *ep)
{
    rank_status_t st = rk_node_commit(shm->ctx->node, RK_REGION_FIFOS,
                                      box_at(shm, ep->peer->local, shm->me) + shm->shape.ring_at,
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
    if (!rk_node_try_commit(shm->ctx->node, RK_REGION_FIFOS,
                            box_at(shm, ep->peer->local, shm->me) + shm->shape.ring_at + used, used)) {
        shm->deepened = DEEPENED_MAX; /* no further attempts */
        return;
    }
    ep->out.used = 2 * used;
    rk_debug("the ring to rank %u is %u bytes deep", ep->peer->id.rank, ep->out.used);
}

/* Publish that something was appended. */
RK_INLINE void shm_notify(struct rk_shm *shm, struct rk_shm_ep *ep)
{
    int to = ep->peer->local;

    if (shm->by_bits)
        atomic_fetch_or(&bits_of(shm, to)[shm->me / 64], 1ull << (shm->me % 64));
    rk_node_wake(shm->ctx->node, to);
}

RK_INLINE rank_status_t put_frame(struct rk_shm *shm, struct rk_shm_ep *ep,
                                  const struct rk_hdr *hdr, const void *first, uint32_t first_len,
                                  const void *second)
{
    if (rk_unlikely(hdr->len > RK_CELL_INLINE && !ep->bytes_backed)) {
        rank_status_t st = back_ring(shm, ep);
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

static rank_status_t shm_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_shm_ep *ep = peer->ep;

    return put_frame(ep->shm, ep, hdr, payload, hdr->len, NULL);
}

static RK_COLD rank_status_t send_unbound(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag,
                                          const void *payload, uint32_t bytes)
{
    struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = peer->epoch, .src = src, .len = bytes, .team = team, .tag = tag};

    return shm_send(peer, &hdr, payload);
}

static rank_status_t shm_send_small(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
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

static rank_status_t shm_send2(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first,
                               size_t first_len, const void *second)
{
    struct rk_shm_ep *ep = peer->ep;

    return put_frame(ep->shm, ep, hdr, first, (uint32_t)first_len, second);
}

static size_t shm_frame_max(const struct rk_peer *peer)
{
    return ((struct rk_shm_ep *)peer->ep)->shm->shape.frame;
}

static void shm_frame_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                          const void *payload)
{
    rk_handler_fn handler = shm->ctx->engine->handler[hdr->kind];

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

            if (rk_likely(b && b->epoch == peer->epoch))
                shm->ctx->engine->small(peer, b->team, b->src, in->head >> 24, in->cell->slot[in->slot].payload, len);
            else
                rk_engine_refused(shm->ctx, &shm->bad_frames);
            rk_fifo_consume(in, in->at);
            n++;
            continue;
        }
        payload = rk_fifo_read(in, shm->shape.frame, &hdr, &behind);
        if (rk_likely(payload && hdr.epoch == peer->epoch))
            shm_frame_arrived(shm, peer, &hdr, payload);
        else
            rk_engine_refused(shm->ctx, &shm->bad_frames);
        rk_fifo_consume(in, behind);
        n++;
    }
    return n;
}

static enum rk_taken shm_take(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag,
                              void *buf, size_t cap, struct rk_took *out)
{
    struct rk_shm *shm = ((struct rk_shm_ep *)peer->ep)->shm;
    struct rk_fifo_in *in = &shm->in[peer->local];
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
    rk_fifo_consume(in, behind);
    return RK_TAKEN;
}

static int drain_by_bits(struct rk_shm *shm)
{
    _Atomic uint64_t *bits = bits_of(shm, shm->me);
    int n = 0;

    for (int w = 0; w < (shm->nlocal + 63) / 64; w++) {
        uint64_t x = shm->again[w];

        if (atomic_load_explicit(&bits[w], memory_order_relaxed))
            x |= atomic_exchange(&bits[w], 0);
        shm->again[w] = 0;
        for (; x; x &= x - 1) {
            int from = w * 64 + __builtin_ctzll(x), got;

            if (rk_unlikely(!shm->in[from].box))
                accept_boxes(shm);
            got = shm->in[from].box ? shm_drain(shm, from) : 0;
            if (got == RK_FRAMES_PER_PASS || !shm->in[from].box)
                shm->again[w] |= 1ull << (from % 64);
            n += got;
        }
    }
    return n;
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

static int shm_progress(struct rk_ctx *ctx, void *state)
{
    struct rk_shm *shm = state;
    int n = 0;

    if (shm->by_bits) {
        n = drain_by_bits(shm);
    } else {
        if (rk_unlikely(atomic_load_explicit(&ctx->node->mine->opened, memory_order_relaxed) !=
                        shm->opened_seen))
            accept_boxes(shm);
        for (int k = 0; k < shm->nopen_in; k++)
            n += shm_drain(shm, shm->open_in[k]);
    }
    if (rk_unlikely(!rk_list_empty(&shm->busy)))
        n += continue_streams(shm);
    if (rk_unlikely(shm->nassisted))
        n += rk_shm_rndv_poll(shm);
    return n;
}

/* Announce any size rather than copy it twice: each copy of a device costs more than the rendezvous. */
static bool shm_fetches(const struct rk_peer *peer, const struct rk_view *view)
{
    return view->ops->kind && view->ops->kind->block && view->ops->kind->import && !((const struct rk_shm_ep *)peer->ep)->staged;
}

static void shm_idle(void *state, uint64_t now)
{
    struct rk_shm *shm = state;

    if (rk_likely(!shm->exports && !shm->imports))
        return;
    rk_exports_check(shm, now);
    rk_imports_check(shm, now);
}

static void shm_freed(void *state, const void *ptr, size_t bytes)
{
    rk_exports_drop(state, ptr, bytes);
}

/* Memory into which an assisting sender still writes must stay, too. */
static rank_status_t shm_drained(void *state)
{
    const struct rk_shm *shm = state;

    return shm->nassisted > 0 ? RK_AGAIN : RANK_OK;
}

const struct rk_channel rk_channel_shm = {
    .name = "shm",
    .shares_memory = true,
    .open = shm_shm_open,
    .close = shm_close,
    .connect = shm_connect,
    .disconnect = shm_disconnect,
    .frame_max = shm_frame_max,
    .send = shm_send,
    .send_small = shm_send_small,
    .small_below = RK_COMPACT_MAX + 1,
    .send2 = shm_send2,
    .take = shm_take,
    .rndv_send = rk_shm_rndv_send,
    .rndv_recv = rk_shm_rndv_recv,
    .rndv_drop = rk_shm_rndv_drop,
    .progress = shm_progress,
    .fetches = shm_fetches,
    .idle = shm_idle,
    .freed = shm_freed,
    .drained = shm_drained,
    .device = &rk_shm_device_ops,
};
