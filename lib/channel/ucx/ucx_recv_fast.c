/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_recv_fast.c: receive in place, for a blocking receive that is first in line.
 *
 * The message needs no request and no matching: incoming data is compared with the wanted envelope and copied to
 * the buffer. The first other frame of the peer that has to be delivered ends this, since later ones must not
 * overtake it.
 */
#include "lib/channel/ucx/ucx.h"

#include <string.h>

/* Enough passes for a partner that polls too, on a fast network; a slow one is awaited elsewhere. */
enum { PASSES = 16 };

RK_INLINE void ucx_recv_fast_keep(const struct rk_ucx_fast_recv *t, const struct rk_hdr *hdr, const void *payload)
{
    size_t n = hdr->len < t->cap ? hdr->len : t->cap;

    if (n == 8)
        memcpy(t->buf, payload, 8);
    else if (n)
        memcpy(t->buf, payload, n);
    *t->out = (struct rk_took){hdr->tag, hdr->len};
}

RK_INLINE bool is_wanted(const struct rk_ucx_fast_recv *t, const struct rk_hdr *hdr)
{
    return hdr->kind == RK_KIND_MSG && hdr->team == t->team && hdr->src == t->src &&
           (t->tag == RK_TAG_ANY ? hdr->tag <= INT64_MAX : hdr->tag == t->tag);
}

/*
 * After a system call each line of code and data costs a cache miss. So the most likely message, alone in a packet
 * that is due, is recognized by comparison; everything else takes the general path. Must reject all that
 * rk_ucx_decode rejects.
 */
bool rk_ucx_fast_recv_packet(struct rk_ucx_fast_recv *t, const void *head, size_t head_len, const void *data,
                             size_t len)
{
    struct rk_ucx_link *l = t->from;
    struct rk_ucx_head h;

    if (head_len != sizeof(h) || t->found != RK_TAKEN_NONE)
        return false;
    memcpy(&h, head, sizeof(h));
    if (h.to.index != l->id.index || h.to.gen != l->id.gen || h.first.turn != l->in.due || l->in.nheld ||
        h.first.len != len || !is_wanted(t, &h.first) || h.first.epoch != l->peer->epoch ||
        !l->confirmed || l->remote || l->failed || l->dropped || l->peer->state != RK_PEER_UP || l->peer->condemned)
        return false;
    rk_order_advance(&l->in);
    l->ucx->handled++;
    ucx_recv_fast_keep(t, &h.first, data);
    t->found = RK_TAKEN;
    return true;
}

bool rk_ucx_fast_recv_frame(struct rk_ucx_fast_recv *t, struct rk_ucx_link *l, const struct rk_hdr *hdr,
                            const void *payload)
{
    if (l != t->from || t->found != RK_TAKEN_NONE)
        return false;
    t->found = is_wanted(t, hdr) ? RK_TAKEN : RK_TAKEN_OTHER;
    if (t->found == RK_TAKEN)
        ucx_recv_fast_keep(t, hdr, payload);
    return t->found == RK_TAKEN;
}

enum rk_taken rk_ucx_recv_fast(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, void *buf,
                               size_t cap, struct rk_took *out)
{
    struct rk_ucx_link *l = peer->ep;
    struct rk_ucx_fast_recv t = {.from = l, .team = team, .tag = tag, .buf = buf, .cap = cap,
                              .out = out, .src = src, .found = RK_TAKEN_NONE};
    struct rk_ucx *ucx;

    if (rk_unlikely(!l || l->ucx->inside))
        return RK_TAKEN_OTHER;
    ucx = l->ucx;
    ucx->fast_recv = &t;
    for (int i = 0; i < PASSES && t.found == RK_TAKEN_NONE; i++) {
        /* A death or deferred work may satisfy other waits: return to the caller. */
        if (rk_ucx_poll(ucx) > 0 && t.found == RK_TAKEN_NONE)
            t.found = RK_TAKEN_OTHER;
    }
    ucx->fast_recv = NULL;
    return t.found;
}
