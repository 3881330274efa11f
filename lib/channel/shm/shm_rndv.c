/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_rndv.c: move large messages between ranks of a node (rendezvous).
 *
 * The sender announces the location of the payload. Once matched, the receiver uses the fastest protocol of
 * proto_table.h:
 *
 *   mapped   payload in rank_alloc memory, or in registered memory that the receiver has mapped: one memcpy; long
 *            ones are shared as below
 *   CMA      one copy by the kernel; long ones are shared: the receiver requests an assist (ASSIST), and both
 *            claim chunks from the two ends (split_copy.h) until they meet, one reading, the other writing
 *   attached as CMA, by memcpy, where XPMEM has attached the peer's memory
 *   stream   where CMA is refused or slower: the sender pushes the payload through the byte ring (FETCH, or OFFER,
 *            which it may decline; DATA...), two overlapping copies
 *
 * The receiver then sends DONE, which completes the send. A streamed send completes when its last part is in the
 * ring.
 */
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/channel/shm/split_copy.h"
#include "lib/node/cma.h"
#include "lib/channel/shm/cma_iov.h"
#include "lib/channel/shm/shm.h"
#include "lib/node/node.h"
#include "lib/mem/segment.h"

#define STREAM_ONLY UINT64_MAX
#define IN_PIECES (UINT64_MAX - 1)
#define WAITED_FOR (UINT64_MAX - 2)

struct announcement { /* payload of RK_KIND_RNDV */
    uint64_t total;
    struct rk_id sender;
    uint64_t at;      /* address at the sender, or offset in the segment */
    /*
     * 0: private memory, also of a registered segment that the receiver has not mapped; WAITED_FOR: private, and
     * the sender only waits; STREAM_ONLY: not accessible; IN_PIECES: a list, struct rk_pieces
     */
    uint64_t segment;
};

struct fetch {
    struct rk_id sender, receiver;
    uint64_t want;
};

struct offer {
    struct fetch fetch;
    uint32_t gen, pad;
};

struct assist { /* Frame tag: 0, or the segment that holds the receive buffer. */
    struct rk_id sender;
    uint64_t to, bytes;  /* to: offset in that segment; for a registered one or none, address at the receiver */
    uint32_t gen, chunk; /* chunk in KiB; ATTACHED: use attached memory if possible */
};

enum { ATTACHED = 1u << 31 };

_Static_assert(sizeof(struct announcement) <= RK_CELL_INLINE &&
                   sizeof(struct fetch) <= RK_CELL_INLINE &&
                   sizeof(struct offer) <= RK_CELL_INLINE &&
                   sizeof(struct assist) <= RK_CELL_INLINE,
               "control fits in a cell");

/* Private words of a struct rk_rndv. */
enum { P_SENDER, P_AT, P_SEGMENT };
/* Private words of a streamed send, */
enum { S_RECEIVER, S_WANT, S_OFFSET };
/* and of a receive. */
enum { R_SENDER, R_WANT, R_GOT };

static void send_done(struct rk_shm_ep *ep, uint64_t sender)
{
    struct rk_id id = rk_id_unpack(sender);

    rk_shm_control(ep->shm, ep, RK_SHM_DONE, 0, &id, sizeof(id));
}

struct rk_xpmem *rk_shm_attached(struct rk_shm_ep *ep)
{
    struct rk_node *node = ep->shm->ctx->node;

    if (rk_unlikely(!ep->far_asked)) {
        rk_xpmem_offer(node); /* so that the peer can copy a share */
        ep->far = rk_xpmem_of(node, ep->peer->local);
        ep->far_asked = true;
    }
    return ep->far;
}

#ifndef move_mapped /* a model defines its own */
#define move_mapped memcpy
#endif

static rank_status_t move_in(struct rk_shm_ep *ep, bool attached, void *to, uint64_t from, size_t bytes)
{
    if (attached && rk_xpmem_read(rk_shm_attached(ep), to, from, bytes))
        return RANK_OK;
    return ep->cma ? rk_cma_read(ep->pid, to, from, bytes) : RANK_ERR_CHANNEL;
}

static rank_status_t move_out(struct rk_shm_ep *ep, bool attached, uint64_t to, const void *from, size_t bytes)
{
    if (attached && rk_xpmem_write(rk_shm_attached(ep), to, from, bytes))
        return RANK_OK;
    return ep->cma ? rk_cma_write(ep->pid, to, from, bytes) : RANK_ERR_CHANNEL;
}

/* ------------------------------------------------------------------- sender */

rank_status_t rk_shm_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req)
{
    struct rk_shm_ep *ep = peer->ep;
    struct announcement a = {.total = view->bytes, .at = (uint64_t)(uintptr_t)view->base};
    struct rk_segment *seg;
    struct rk_hdr h = *hdr;
    rank_status_t st;

    st = rk_req_name(req);
    if (st)
        return st;
    req->view = *view;
    a.sender = req->id;
    if (view->ops) {
        a.segment = view->ops == &rk_pieces_ops ? IN_PIECES : STREAM_ONLY;
    } else if ((seg = rk_segment_holding(peer->ctx, view->base, view->bytes)) != NULL && !seg->map.map) {
        /*
         * A mapping of another rank's memory counts as private: the name has the owner's address, this process has
         * its own.
         */
        a.segment = seg->id;
        if (!seg->there)
            a.at = (uint64_t)((char *)view->base - seg->base);
        else if (req->flags & RK_REQ_WAITED)
            a.segment |= RK_SEGMENT_MARK;
    } else {
        rk_xpmem_offer(peer->ctx->node);
        if (req->flags & RK_REQ_WAITED)
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

static void complete_unlinked(struct rank_request *req, rank_status_t st)
{
    rk_list_remove(&req->link);
    rk_req_complete(req, st);
}

static void start_stream(struct rk_shm *shm, struct rk_shm_ep *ep, const struct fetch *f)
{
    struct rank_request *req = rk_req_find(shm->ctx, f->sender);

    if (!req || req->type != RK_REQ_SEND || req->peer != ep->peer || f->want > req->view.bytes) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    req->priv[S_RECEIVER] = rk_id_pack(f->receiver);
    req->priv[S_WANT] = f->want;
    req->priv[S_OFFSET] = 0;
    rk_list_remove(&req->link);
    rk_list_append(&ep->streams, &req->link);
    rk_engine_defer(shm->ctx, &shm->busy, &ep->busy);
}

/* One part of a stream; RK_AGAIN when the ring is full. */
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
    rank_status_t st;

    if (req->view.ops) {
        char packed[8192];
        if (n > sizeof(packed))
            n = sizeof(packed);
        hdr.len = n + (uint32_t)sizeof(receiver);
        req->view.ops->pack(req->view.base, req->priv[S_OFFSET], packed, n);
        st = rk_shm_put(shm, ep, &hdr, &receiver, sizeof(receiver), packed);
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
        if (st && st != RANK_ERR_PEER_DEAD) /* the rest will not come, and the receiver would wait forever */
            rk_engine_report_death(shm->ctx, ep->peer->number);
        if (st || req->priv[S_OFFSET] == req->priv[S_WANT])
            complete_unlinked(req, st);
    }
    return n;
}

/*
 * At the sender: accept an OFFER if the ring has room for the whole message, so that the receiver, which waits
 * briefly, needs no other process.
 */
static void consider(struct rk_shm *shm, struct rk_shm_ep *ep, const struct offer *o)
{
    struct rk_fifo_out *out = &ep->out;
    uint64_t begun = rk_split_begin(o->gen), need;
    uint32_t cells, frame = shm->shape.frame;

    /* Once claimed, all of it must go now: the next progress call may be late. */
    if (o->fetch.want > out->used / 2 || !rk_list_empty(&ep->streams) || !rk_list_empty(&ep->control) ||
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
    start_stream(shm, ep, &o->fetch);
    rk_shm_rndv_stream(shm, ep);
}

enum { ASSIST_FAILED = 1u << 31 };

/* Local mapping of another rank's memory; NULL if there is none. segment: without marks. */
static char *mapped_at(struct rk_ctx *ctx, uint64_t segment, uint64_t at, uint64_t want)
{
    struct rk_segment *seg = rk_segment_by_id(ctx, segment);

    if (!seg)
        return NULL;
    at -= seg->there;
    return at <= seg->bytes && want <= seg->bytes - at ? seg->base + at : NULL;
}

/* At the sender: copy a share of what the receiver fetches. */
static void shm_rndv_assist(struct rk_shm *shm, struct rk_shm_ep *ep, uint64_t segment, const struct assist *a)
{
    struct rank_request *req = rk_req_find(shm->ctx, a->sender);
    uint64_t chunk = (uint64_t)(a->chunk & ~ATTACHED) << 10;
    char *to = segment ? mapped_at(shm->ctx, segment, a->to, a->bytes) : NULL;
    struct rk_share share;

    if (!req)
        return; /* everything is copied */
    if (req->type != RK_REQ_SEND || req->view.ops || req->peer != ep->peer || a->bytes > req->view.bytes ||
        chunk < RK_CHUNK_MIN) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    if (!to && ((segment && !(segment & RK_SEGMENT_REGISTERED)) || !(ep->cma || a->chunk & ATTACHED)))
        return; /* a foreign team's segment, or inaccessible: the receiver does all */
    while (rk_split_claim(&ep->out.box->claims, a->gen, a->bytes, chunk, true, &share)) {
        const char *from = (char *)req->view.base + share.at;
        rank_status_t st = RANK_OK;

        if (to)
            move_mapped(to + share.at, from, share.bytes);
        else
            st = move_out(ep, a->chunk & ATTACHED, a->to + share.at, from, share.bytes);
        if (st) {
            atomic_fetch_or(&ep->out.box->helped, ASSIST_FAILED);
            if (st != RANK_ERR_PEER_DEAD)
                rk_shm_cma_failed(ep);
        }
        atomic_fetch_add(&ep->out.box->helped, 1);
        rk_node_wake(shm->ctx->node, ep->peer->local);
        if (st)
            return;
    }
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
    if (!rk_shm_ep_of(shm, peer))
        return;
    memcpy(&a, payload, sizeof(a));
    rndv.total = a.total;
    rndv.priv[P_SENDER] = rk_id_pack(a.sender);
    rndv.priv[P_AT] = a.at;
    rndv.priv[P_SEGMENT] = a.segment;
    shm->ctx->engine->handler[RK_KIND_RNDV](shm->ctx, peer, hdr, NULL, &rndv);
}

static void request_stream(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_rndv *rndv,
                           struct rank_request *req, uint64_t want)
{
    struct fetch f = {.sender = rk_id_unpack(rndv->priv[P_SENDER]), .want = want};
    rank_status_t st = rk_req_name(req);

    if (st) {
        send_done(ep, rndv->priv[P_SENDER]);
        rk_req_complete(req, st);
        return;
    }
    f.receiver = req->id;
    req->priv[R_WANT] = want;
    req->priv[R_GOT] = 0;
    rk_list_append(&shm->receiving, &req->link);
    rk_shm_control(shm, ep, RK_SHM_FETCH, 0, &f, sizeof(f));
}

static void shm_rndv_finish(struct rk_shm_ep *ep, struct rank_request *req, uint64_t sender,
                   rank_status_t st)
{
    send_done(ep, sender);
    rk_req_complete(req, st);
}

/* Has the sender finished its share of ep->assisted? Called when all chunks are claimed. */
static bool assist_is_done(struct rk_shm_ep *ep, struct rk_fifo *box)
{
    uint32_t helped = atomic_load(&box->helped);
    uint32_t claimed = rk_split_front(atomic_load(&box->claims));
    struct rank_request *req = ep->assisted;
    struct rk_rndv again = {.peer = ep->peer};

    if ((helped & ~ASSIST_FAILED) < claimed)
        return false;
    ep->assisted = NULL;
    ep->shm->nassisted--;
    rk_list_remove(&req->link);
    if (helped & ASSIST_FAILED) { /* the kernel refused: start over as a stream */
        again.priv[P_SENDER] = req->priv[R_SENDER];
        rk_shm_cma_failed(ep);
        request_stream(ep->shm, ep, &again, req, req->priv[R_WANT]);
    } else {
        shm_rndv_finish(ep, req, req->priv[R_SENDER], RANK_OK);
    }
    return true;
}

/* End a receive without its dead sender, which must not claim more chunks. */
static void end_assist(struct rk_shm *shm, struct rk_shm_ep *ep)
{
    atomic_store(&shm->in[ep->peer->local].box->claims, rk_split_begin(++ep->assist_gen));
    ep->assisted = NULL;
    shm->nassisted--;
}

/* Is a message on its way to that peer that it has to fetch? */
static bool has_for(const struct rk_shm *shm, const struct rk_peer *peer)
{
    const struct rk_link *last = shm->sending.prev;

    return last != &shm->sending && rk_list_entry(last, struct rank_request, link)->peer == peer;
}

/* Location of the receive buffer for the sender: struct assist and its tag. */
struct target {
    uint64_t segment, to;
};

/* Maximum time of a chunk. */
enum { LAST_CHUNK_NS = 20 * 1000 };

/*
 * Copy with the sender's help. here: the payload's mapping, or NULL. attached: payload and receive buffer may be
 * attached.
 */
static void copy_together(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_rndv *rndv, struct rank_request *req,
                          uint64_t want, const char *here, bool attached, struct target target)
{
    struct rk_fifo *box = shm->in[ep->peer->local].box;
    /* A sender that fetches from this rank at the same time will not help. */
    uint64_t most = target.segment ? RK_CHUNK_MAPPED : has_for(shm, ep->peer) ? RK_CHUNK_BUSY : RK_CHUNK_MAX;
    uint64_t chunk = rk_chunk_of(want, most), from = rndv->priv[P_AT];
    struct assist a = {.sender = rk_id_unpack(rndv->priv[P_SENDER]),
                       .to = target.to,
                       .bytes = want,
                       .gen = ++ep->assist_gen,
                       .chunk = (uint32_t)(chunk >> 10) | (attached ? ATTACHED : 0)};
    struct rk_share share;
    uint64_t until;

    atomic_store(&box->helped, 0);
    atomic_store(&box->claims, rk_split_begin(a.gen));
    req->priv[R_SENDER] = rndv->priv[P_SENDER];
    req->priv[R_WANT] = want;
    ep->assisted = req;
    shm->nassisted++;
    rk_list_append(&shm->receiving, &req->link);
    rk_shm_control(shm, ep, RK_SHM_ASSIST, target.segment, &a, sizeof(a));
    while (rk_split_claim(&box->claims, a.gen, want, chunk, false, &share)) {
        char *to = (char *)req->view.base + share.at;
        rank_status_t st;

        if (here) {
            move_mapped(to, here + share.at, share.bytes);
            continue;
        }
        st = move_in(ep, attached, to, from + share.at, share.bytes);

        if (st == RANK_ERR_PEER_DEAD) { /* a chunk of the sender's is missing */
            end_assist(shm, ep);
            complete_unlinked(req, st);
            return;
        }
        if (st) {
            rk_split_claim_rest(&box->claims, rk_chunks(want, chunk));
            atomic_fetch_or(&box->helped, ASSIST_FAILED);
            break;
        }
    }
    /*
     * Both finish at about the same time. Wait for the sender: it would otherwise wait for DONE until the next
     * progress call.
     */
    for (until = rk_clock_ns() + LAST_CHUNK_NS; !assist_is_done(ep, box) && rk_clock_ns() < until;)
        rk_cpu_relax();
}

/* Time that the receiver leaves the sender to accept an OFFER: a round trip. */
enum { OFFER_NS = 1500 };

/* Does the sender accept, because it makes progress right now? */
static bool offered(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_rndv *rndv,
                    struct rank_request *req, uint64_t want)
{
    struct rk_fifo *box = shm->in[ep->peer->local].box;
    struct offer o = {.fetch = {.sender = rk_id_unpack(rndv->priv[P_SENDER]), .want = want}};
    uint64_t until, begun;

    if (rk_req_name(req))
        return false;
    o.fetch.receiver = req->id;
    o.gen = ++ep->assist_gen;
    begun = rk_split_begin(o.gen);
    req->priv[R_WANT] = want;
    req->priv[R_GOT] = 0;
    atomic_store(&box->claims, begun);
    rk_list_append(&shm->receiving, &req->link);
    rk_shm_control(shm, ep, RK_SHM_OFFER, 0, &o, sizeof(o));
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

/* Does the configuration set the protocol of private memory? */
static bool sets_private_path(void)
{
    return rk_conf.large != RK_CONF_LARGE_AUTO && rk_conf.large < RK_CONF_LARGE_MAPPED;
}

/* Protocol for private memory, where CMA or attaching is possible. The ring needs a sender that makes progress. */
static enum rk_path chosen(const struct rk_shm *shm, uint64_t bytes, bool waited_for, bool attached)
{
    const struct rk_paths *p = &shm->paths;
    int class = rk_path_class(bytes);

    static const enum rk_path asked[] = {[RK_CONF_LARGE_CMA] = RK_PATH_CMA,
                                         [RK_CONF_LARGE_BOTH] = RK_PATH_BOTH,
                                         [RK_CONF_LARGE_RING] = RK_PATH_RING,
                                         [RK_CONF_LARGE_STREAMED] = RK_PATH_STREAMED,
                                         [RK_CONF_LARGE_XPMEM] = RK_PATH_XPMEM,
                                         [RK_CONF_LARGE_XBOTH] = RK_PATH_XBOTH};
    enum rk_path path = rk_unlikely(sets_private_path()) ? asked[rk_conf.large]
                        : waited_for                                     ? p->best[attached][class]
                                                                         : p->alone[attached][class];

    if (!attached)
        path = path == RK_PATH_XPMEM ? RK_PATH_CMA : path == RK_PATH_XBOTH ? RK_PATH_BOTH : path;
    return path;
}

/* Copy once from the sender's attached memory. */
static bool copy_attached(struct rk_xpmem *far, const struct rk_rndv *rndv, const struct rk_view *view,
                          uint64_t want)
{
    char *here = rk_xpmem_begin(far, rndv->priv[P_AT], want);

    if (!here)
        return false;
    rk_view_copy(view, &(struct rk_view){here, want, NULL}, want);
    return rk_xpmem_end(far);
}

/* How the sender reaches the receive buffer. */
static struct target target_of(const struct rk_shm_ep *ep, const struct rk_view *view, uint64_t want)
{
    struct rk_segment *seg = rk_segment_holding(ep->shm->ctx, view->base, want);
    uint64_t at = (uint64_t)(uintptr_t)view->base;

    if (!seg || seg->map.map) /* none, or another rank's */
        return (struct target){0, at};
    return (struct target){seg->id, seg->there ? at : at - (uint64_t)(uintptr_t)seg->base};
}

/* Should the sender copy a share of a mapped payload? By the kernel it is slower at that. */
static bool share_mapped(const struct rk_shm_ep *ep, uint64_t want, bool by_kernel)
{
    const struct rk_paths *p = &ep->shm->paths;
    int class = rk_path_class(want);

    if (by_kernel && !ep->cma)
        return false;
    if (rk_unlikely(rk_conf.large == RK_CONF_LARGE_MAPPED || rk_conf.large == RK_CONF_LARGE_MBOTH))
        return rk_conf.large == RK_CONF_LARGE_MBOTH;
    return p->mapped[class] == RK_PATH_MBOTH && !ep->shm->ctx->node->oversubscribed &&
           !(by_kernel && p->alone[0][class] != RK_PATH_BOTH);
}

/*
 * May the sender be asked for a share? One copy at a time, and only if the fifo has room: a queued request could
 * be read after the generations of claims have wrapped.
 */
static bool may_request_assist(const struct rk_shm_ep *ep)
{
    return !ep->assisted && rk_list_empty(&ep->control);
}

void rk_shm_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                      struct rank_request *req)
{
    struct rk_shm_ep *ep = rndv->peer->ep;
    struct rk_shm *shm = ep->shm;
    uint64_t want = rndv->total < view->bytes ? rndv->total : view->bytes;
    uint64_t sender = rndv->priv[P_SENDER];
    uint64_t segment = rndv->priv[P_SEGMENT];
    bool registered = segment < WAITED_FOR && segment & RK_SEGMENT_REGISTERED;
    bool waited = segment == WAITED_FOR || (registered && segment & RK_SEGMENT_MARK);
    bool private = segment == 0 || segment == WAITED_FOR || registered;
    struct rk_xpmem *far;
    enum rk_path path;
    struct target target;
    rank_status_t st;
    char *here;

    req->view = *view;
    if (want == 0) {
        shm_rndv_finish(ep, req, sender, RANK_OK);
        return;
    }
    if (registered)
        segment &= ~(uint64_t)RK_SEGMENT_MARK;
    if (segment && segment < WAITED_FOR && (here = mapped_at(shm->ctx, segment, rndv->priv[P_AT], want)) != NULL) {
        if (!view->ops && may_request_assist(ep)) {
            target = target_of(ep, view, want);
            if (share_mapped(ep, want, target.segment == 0)) {
                copy_together(shm, ep, rndv, req, want, here, false, target);
                return;
            }
        }
        rk_view_copy(view, &(struct rk_view){here, want, NULL}, want);
        shm_rndv_finish(ep, req, sender, RANK_OK);
        return;
    }
    target = (struct target){0, (uint64_t)(uintptr_t)view->base};
    far = private ? rk_shm_attached(ep) : NULL;
    path = chosen(shm, want, waited, far != NULL);
    if (far && (path == RK_PATH_XPMEM || (rk_path_attaches(path) && (view->ops || !may_request_assist(ep))) ||
                (!ep->cma && path <= RK_PATH_BOTH))) {
        if (copy_attached(far, rndv, view, want)) {
            shm_rndv_finish(ep, req, sender, RANK_OK);
            return;
        }
        path = chosen(shm, want, waited, false); /* inaccessible memory, or no longer there */
    }
    if (far && path == RK_PATH_XBOTH) {
        copy_together(shm, ep, rndv, req, want, NULL, true, target);
        return;
    }
    if (private && ep->cma && !view->ops && path <= RK_PATH_BOTH) {
        if (!sets_private_path() && want <= shm->shape.shallow / 2 && may_request_assist(ep) &&
            shm->paths.best[0][rk_path_class(want)] >= RK_PATH_RING && !shm->ctx->node->oversubscribed &&
            offered(shm, ep, rndv, req, want))
            return;
        if (path == RK_PATH_BOTH && may_request_assist(ep)) {
            copy_together(shm, ep, rndv, req, want, NULL, false, target);
            return;
        }
        st = rk_cma_read(ep->pid, view->base, rndv->priv[P_AT], want);
        if (st != RANK_ERR_CHANNEL) {
            shm_rndv_finish(ep, req, sender, st);
            return;
        }
        rk_shm_cma_failed(ep);
    }
    if (rk_conf.large != RK_CONF_LARGE_RING && rk_conf.large != RK_CONF_LARGE_STREAMED &&
        (rndv->priv[P_SEGMENT] == IN_PIECES || (private && view->ops))) {
        st = rk_shm_gather(ep, rndv->priv[P_AT], rndv->priv[P_SEGMENT] == IN_PIECES, view, want);
        if (st != RANK_ERR_CHANNEL) {
            shm_rndv_finish(ep, req, sender, st);
            return;
        }
    }
    request_stream(shm, ep, rndv, req, want);
}

void rk_shm_rndv_drop(const struct rk_rndv *rndv)
{
    if (rndv->peer->ep)
        send_done(rndv->peer->ep, rndv->priv[P_SENDER]);
}

static void shm_rndv_data_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                         const char *payload)
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
    if (!req || req->peer != peer || hdr->tag > req->priv[R_WANT] ||
        n > req->priv[R_WANT] - hdr->tag) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    if (req->view.ops)
        req->view.ops->unpack(req->view.base, hdr->tag, payload + sizeof(id), n);
    else
        memcpy((char *)req->view.base + hdr->tag, payload + sizeof(id), n);
    req->priv[R_GOT] += n;
    if (req->priv[R_GOT] == req->priv[R_WANT])
        complete_unlinked(req, RANK_OK);
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

/* ------------------------------------------------------------------------- both */

void rk_shm_rndv_frame(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                       const void *payload)
{
    struct rk_shm_ep *ep = rk_shm_ep_of(shm, peer);
    struct rank_request *req;
    union {
        struct rk_id id;
        struct fetch fetch;
        struct assist assist;
        struct offer offer;
    } u;

    if (!ep)
        return;
    if (hdr->kind == RK_SHM_DATA) {
        shm_rndv_data_arrived(shm, peer, hdr, payload);
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
            complete_unlinked(req, RANK_OK);
        else
            rk_engine_refused(shm->ctx, &shm->bad_frames);
        break;
    case RK_SHM_FETCH:
        start_stream(shm, ep, &u.fetch);
        break;
    case RK_SHM_OFFER:
        consider(shm, ep, &u.offer);
        break;
    case RK_SHM_ASSIST:
        shm_rndv_assist(shm, ep, hdr->tag, &u.assist);
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
            complete_unlinked(req, RANK_ERR_PEER_DEAD);
    }
}

void rk_shm_rndv_peer_gone(struct rk_shm *shm, struct rk_peer *peer)
{
    struct rk_shm_ep *ep = peer->ep;

    if (ep->assisted)
        end_assist(shm, ep);
    fail_all_of(&shm->receiving, peer);
    fail_all_of(&shm->sending, peer);
    fail_all_of(&ep->streams, peer);
}
