/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_send.c: build packets from frames, and pass them to UCP.
 *
 * The first frame to a peer after a progress call is sent at once. Later ones are coalesced in an open packet
 * until the next library call, until it is full, or until a sleeping thread has been woken for it. Payload is
 * copied into a buffer, which is free again if UCP sends at once, as it mostly does; a queued packet keeps its
 * buffer. With warm buffers no memory is allocated.
 *
 * Nothing is passed to UCP during its callbacks: its tcp handles events of many sockets at once, and a nested send
 * may close one with a pending event, on which 1.13 aborts. Frames that handlers send are coalesced, or refused
 * for now; both proceed as soon as UCP has returned.
 */
#include "lib/channel/ucx/ucx.h"

#include <string.h>

/*
 * Up to this size UCP copies a packet behind its own headers, for a single send call; a longer one is sent in
 * place as an iovec, which is cheaper than a copy then.
 */
enum { PACK_MAX = 2048 };
enum { BIG_CAP = RK_UCX_FRAME_MAX + 2 * sizeof(struct rk_id) };
enum { SMALL_CAP = RK_UCX_SMALL - sizeof(struct rk_ucx_buf) };

/* --------------------------------------------------------------------- buffers */

enum { BUF_LINK = offsetof(struct rk_ucx_buf, to) };

static void buf_put(struct rk_ucx *ucx, struct rk_ucx_buf *b)
{
    rk_slab_free(b->cap == SMALL_CAP ? &ucx->small_bufs : &ucx->big_bufs, b, BUF_LINK);
}

static RK_COLD struct rk_ucx_buf *buf_new(struct rk_ucx *ucx, bool small)
{
    struct rk_ucx_buf *b = rk_slab_extend(small ? &ucx->small_bufs : &ucx->big_bufs);

    if (b)
        b->cap = small ? SMALL_CAP : BIG_CAP;
    return b;
}

/* NULL: no room or no memory; buffers in use will be freed. */
static struct rk_ucx_buf *buf_get(struct rk_ucx_link *l, size_t bytes)
{
    bool small = bytes <= SMALL_CAP;
    struct rk_ucx_buf *b;

    if (rk_unlikely(l->unsent >= RK_UCX_UNSENT_MAX))
        return NULL;
    b = rk_slab_reuse(small ? &l->ucx->small_bufs : &l->ucx->big_bufs, BUF_LINK);
    if (rk_unlikely(!b) && !(b = buf_new(l->ucx, small)))
        return NULL;
    b->to = l;
    b->used = 0;
    return b;
}

void rk_ucx_bufs_init(struct rk_ucx *ucx)
{
    ucx->small_bufs = (struct rk_slab)RK_SLAB_INIT(RK_UCX_SMALL, 128);
    ucx->big_bufs = (struct rk_slab)RK_SLAB_INIT(rk_round_up(sizeof(struct rk_ucx_buf) + BIG_CAP, RK_CACHE_LINE), 15);
}

void rk_ucx_bufs_destroy(struct rk_ucx *ucx)
{
    rk_slab_close(&ucx->small_bufs);
    rk_slab_close(&ucx->big_bufs);
}

/* --------------------------------------------------------------------- packets */

/* Complete a head that has its header, with its turn. */
RK_INLINE size_t finish_head(struct rk_ucx_link *l, unsigned char *head)
{
    uint32_t turn = l->turn++;
    struct rk_ucx_hello hello;

    memcpy(head + offsetof(struct rk_ucx_head, to), &l->theirs, sizeof(l->theirs));
    memcpy(head + offsetof(struct rk_ucx_head, first.turn), &turn, sizeof(turn));
    if (rk_likely(l->confirmed && l->theirs.index != RK_UCX_NO_LINK && !l->remote))
        return sizeof(struct rk_ucx_head);
    hello = (struct rk_ucx_hello){RK_UCX_MAGIC, l->self.rank, l->self.job, l->id};
    memcpy(head + sizeof(struct rk_ucx_head), &hello, sizeof(hello));
    return RK_UCX_HEAD_MAX;
}

size_t rk_ucx_write_head(struct rk_ucx_link *l, unsigned char *head, const struct rk_hdr *hdr)
{
    memcpy(head + offsetof(struct rk_ucx_head, first), hdr, sizeof(*hdr));
    return finish_head(l, head);
}

static void packet_done(void *request, ucs_status_t status, void *arg)
{
    struct rk_ucx_buf *b = arg;
    struct rk_ucx_link *l = b->to;

    l->ucx->handled++;
    l->unsent--;
    if (status != UCS_OK && !l->dropped)
        rk_ucx_link_ended(l, status);
    buf_put(l->ucx, b);
    ucp_request_free(request);
}

/* UCP's generic datatype requests a copy; its buffer is the packet. */
static void *packet_begin(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)(uintptr_t)buffer;
}

static size_t packet_size(void *state)
{
    return ((struct rk_ucx_buf *)state)->used;
}

static size_t packet_pack(void *state, size_t offset, void *to, size_t room)
{
    struct rk_ucx_buf *b = state;
    size_t n = b->used - offset < room ? b->used - offset : room;

    if (n == 8)
        memcpy(to, b->data + offset, 8);
    else
        memcpy(to, b->data + offset, n);
    return n;
}

static void packet_end(void *state)
{
    (void)state;
}

rank_status_t rk_ucx_packet_type(struct rk_ucx *ucx)
{
    static const ucp_generic_dt_ops_t ops = {
        .start_pack = packet_begin,
        .packed_size = packet_size,
        .pack = packet_pack,
        .finish = packet_end,
    };

    return rk_ucx_create_type(&ops, &ucx->packet_type, &ucx->has_packet_type);
}

/* The head has the first frame's header, without turn. */
static rank_status_t ucx_send_post(struct rk_ucx_link *l, struct rk_ucx_buf *b)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = packet_done,
        .user_data = b,
    };
    bool packs = b->used && b->used <= PACK_MAX;
    size_t head_len = finish_head(l, b->head);
    ucs_status_ptr_t p;

    if (packs) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = l->ucx->packet_type;
    }
    l->last_tick = l->ucx->tick;
    l->ucx->sent++;
    p = ucp_am_send_nbx(l->ep, RK_UCX_AM, b->head, head_len,
                        packs ? (const void *)b : b->data, packs ? 1 : b->used, &param);
    if (rk_likely(p == NULL)) {
        buf_put(l->ucx, b);
        return RANK_OK;
    }
    if (UCS_PTR_IS_ERR(p)) {
        buf_put(l->ucx, b);
        rk_ucx_link_ended(l, UCS_PTR_STATUS(p)); /* a turn is missing now */
        return RANK_ERR_PEER_DEAD;
    }
    l->unsent++;
    return RANK_OK;
}

RK_INLINE void ucx_send_fill(unsigned char *at, const struct rk_hdr *hdr, const void *first, size_t first_len,
                    const void *second, const struct rk_view *view)
{
    size_t rest = hdr->len - first_len;

    if (first_len)
        memcpy(at, first, first_len);
    if (rest == 0)
        return;
    if (view && view->ops)
        view->ops->pack(view, 0, at + first_len, rest); /* host memory: others pack before */
    else if (rest == 8)
        memcpy(at + first_len, view ? view->base : second, 8);
    else
        memcpy(at + first_len, view ? view->base : second, rest);
}

/* Begin a packet with its first frame. */
static void write_first(struct rk_ucx_buf *b, const struct rk_hdr *hdr, const void *first,
                        size_t first_len, const void *second, const struct rk_view *view)
{
    memcpy(b->head + offsetof(struct rk_ucx_head, first), hdr, sizeof(*hdr));
    ucx_send_fill(b->data, hdr, first, first_len, second, view);
    b->used = hdr->len;
}

static bool fits_behind(const struct rk_ucx_buf *b, uint32_t len)
{
    return rk_ucx_pad(b->used) + sizeof(struct rk_hdr) + len <= RK_UCX_PACKET_MAX;
}

static void write_behind(struct rk_ucx_buf *b, const struct rk_hdr *hdr, const void *first,
                         size_t first_len, const void *second, const struct rk_view *view)
{
    size_t at = rk_ucx_pad(b->used);
    struct rk_hdr h = *hdr;

    h.turn = 0;
    memset(b->data + b->used, 0, at - b->used);
    memcpy(b->data + at, &h, sizeof(h));
    at += sizeof(h);
    ucx_send_fill(b->data + at, hdr, first, first_len, second, view);
    b->used = (uint32_t)at + hdr->len;
}

void rk_ucx_flush_open(struct rk_ucx_link *l)
{
    struct rk_ucx_buf *b = l->open;

    if (!b)
        return;
    l->open = NULL;
    rk_engine_release(l->ucx->ctx, &l->on_open);
    if (l->ep && !l->failed)
        ucx_send_post(l, b); /* errors are recorded in the link */
    else
        buf_put(l->ucx, b);
}

rank_status_t rk_ucx_put(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *first,
                         size_t first_len, const void *second, const struct rk_view *view)
{
    bool shares = hdr->len <= RK_UCX_SHARE_MAX, at_once;
    struct rk_ucx_buf *b;
    struct rk_ucx *ucx;

    if (rk_unlikely(!l || !l->ep || l->failed))
        return rk_ucx_conn_refusal(l);
    ucx = l->ucx;
    if (rk_unlikely(ucx->inside && !shares))
        return RK_AGAIN;
    at_once = !ucx->inside && (l->last_tick != ucx->tick || !shares);
    if (l->open) {
        if (shares && fits_behind(l->open, hdr->len)) {
            write_behind(l->open, hdr, first, first_len, second, view);
            return RANK_OK;
        }
        if (ucx->inside)
            return RK_AGAIN;
        rk_ucx_flush_open(l);
        if (rk_unlikely(l->failed))
            return RANK_ERR_PEER_DEAD;
    }
    b = buf_get(l, at_once ? hdr->len : RK_UCX_PACKET_MAX);
    if (rk_unlikely(!b))
        return RK_AGAIN;
    write_first(b, hdr, first, first_len, second, view);
    if (at_once)
        return ucx_send_post(l, b);
    l->open = b;
    rk_engine_defer(ucx->ctx, &ucx->open, &l->on_open);
    return RANK_OK;
}

/* ------------------------------------------------------------- deferred frames */

void rk_ucx_drop_unsent(struct rk_ucx_link *l)
{
    if (l->open) {
        buf_put(l->ucx, l->open);
        l->open = NULL;
        rk_engine_release(l->ucx->ctx, &l->on_open);
    }
}

void rk_ucx_send_progress(struct rk_ucx *ucx)
{
    while (!rk_list_empty(&ucx->open))
        rk_ucx_flush_open(rk_list_entry(ucx->open.next, struct rk_ucx_link, on_open));
}
