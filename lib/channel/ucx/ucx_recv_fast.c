/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_recv_fast.c: the shortest way for a blocking receive that is the first in line.
 *
 * Nothing else is looked at meanwhile, and the message needs no request and no matching: what UCP hands us is
 * compared with what the caller wants and copied where it belongs. The first frame of the peer that has to go up
 * ends this, whatever it is: what comes behind it may not overtake it.
 */
#include "lib/channel/ucx/ucx.h"

#include <string.h>

/* As many passes as a partner needs who is looking too, on a fast network; a slow one is waited for elsewhere. */
enum { PASSES = 16 };

RK_INLINE void ucx_recv_fast_keep(const struct rk_ucx_taking *t, const struct rk_hdr *hdr, const void *payload)
{
    size_t n = hdr->len < t->cap ? hdr->len : t->cap;

    if (n == 8)
        memcpy(t->buf, payload, 8);
    else if (n)
        memcpy(t->buf, payload, n);
    *t->out = (struct rk_took){hdr->tag, hdr->len};
}

RK_INLINE bool is_wanted(const struct rk_ucx_taking *t, const struct rk_hdr *hdr)
{
    return hdr->kind == RK_KIND_MSG && hdr->team == t->team && hdr->src == t->src &&
           (t->tag == RK_TAG_ANY ? hdr->tag <= INT64_MAX : hdr->tag == t->tag);
}

/*
 * Behind a system call each line of code and data costs a miss: the message that is most likely, alone in a packet
 * that is due, is known here by comparing, and all else is left to the general way. So whatever rk_ucx_decode would
 * refuse is refused here, too.
 */
bool rk_ucx_take_packet(struct rk_ucx_taking *t, const void *head, size_t head_len, const void *data,
                        size_t len)
{
    struct rk_ucx_link *l = t->from;
    struct rk_ucx_head h;

    if (head_len != sizeof(h) || t->found != RK_TAKEN_NONE)
        return false;
    memcpy(&h, head, sizeof(h));
    if (h.to.index != l->id.index || h.to.gen != l->id.gen || h.first.turn != l->in.due || l->in.nheld ||
        h.first.len != len || !is_wanted(t, &h.first) || h.first.epoch != l->peer->epoch ||
        !l->confirmed || l->failed || l->dropped || l->peer->state != RK_PEER_UP)
        return false;
    rk_order_advance(&l->in);
    l->ucx->handled++;
    ucx_recv_fast_keep(t, &h.first, data);
    t->found = RK_TAKEN;
    return true;
}

bool rk_ucx_taken(struct rk_ucx_taking *t, struct rk_ucx_link *l, const struct rk_hdr *hdr,
                  const void *payload)
{
    if (l != t->from || t->found != RK_TAKEN_NONE)
        return false;
    t->found = is_wanted(t, hdr) ? RK_TAKEN : RK_TAKEN_OTHER;
    if (t->found == RK_TAKEN)
        ucx_recv_fast_keep(t, hdr, payload);
    return t->found == RK_TAKEN;
}

enum rk_taken rk_ucx_take(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, void *buf,
                          size_t cap, struct rk_took *out)
{
    struct rk_ucx_link *l = peer->ep;
    struct rk_ucx_taking t = {.from = l, .team = team, .tag = tag, .buf = buf, .cap = cap,
                              .out = out, .src = src, .found = RK_TAKEN_NONE};
    struct rk_ucx *ucx;

    if (rk_unlikely(!l || l->ucx->inside))
        return RK_TAKEN_OTHER;
    ucx = l->ucx;
    ucx->taking = &t;
    for (int i = 0; i < PASSES && t.found == RK_TAKEN_NONE; i++) {
        /* A death, or what was put off, may be somebody's answer: that is for others to see. */
        if (rk_ucx_pass(ucx) > 0 && t.found == RK_TAKEN_NONE)
            t.found = RK_TAKEN_OTHER;
    }
    ucx->taking = NULL;
    return t.found;
}
