/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_conn.c: make the links of connections, as lib/conn asks.
 *
 * Both sides prepare a link during the handshake: that shows whether UCX leads there. A link leads to one context at a
 * time. UCP pairs the n-th endpoints of two workers: with several, the end of one could break another.
 *
 * A packet to a side that has not adopted its link would be dropped. So frames wait, with RK_AGAIN, until the other side
 * has announced that on the socket, or until its first packet. UCX's errors wait for the socket, too: it reports whether
 * the peer has closed the connection or died.
 */
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

/* Does a link lead to the context, or is one about to? */
static bool is_linked(struct rk_ucx *ucx, uint64_t remote)
{
    struct rk_ucx_link *l;
    struct rk_link *pos;
    int i;

    rk_list_for_each(pos, &ucx->prepared)
    {
        if (rk_list_entry(pos, struct rk_ucx_link, on_prepared)->remote == remote)
            return true;
    }
    rk_ucx_each_link(i, l, ucx)
    {
        if (l->remote == remote && !l->dropped)
            return true;
    }
    return false;
}

static rank_status_t ucx_conn_prepare(void *state, uint64_t remote, const void *bytes, size_t len, char *why, size_t size,
                                      bool *warn, void **out)
{
    unsigned char copy[RK_CARD_MAX + 64] __attribute__((aligned(8))) = {0}; /* UCX reads on behind the address */
    struct rk_ucx *ucx = state;
    const void *address = NULL;
    struct rk_ucx_card card;
    struct rk_ucx_link *l;
    char versions[64];
    rank_status_t st;

    *warn = true;
    if (len <= RK_CARD_MAX)
        memcpy(copy, bytes, len);
    if (len > RK_CARD_MAX || !rk_ucx_card_decode(copy, len, &card, &address)) {
        snprintf(why, size, "its UCX address is malformed; use the same release of librank on both sides");
        return RANK_ERR_UNREACHABLE;
    }
    if (!rk_ucx_card_fits(&card, versions, sizeof(versions))) {
        snprintf(why, size, "it has UCX %s; start both with the same UCX (LD_LIBRARY_PATH)", versions);
        return RANK_ERR_UNREACHABLE;
    }
    *warn = false;
    if (is_linked(ucx, remote)) {
        snprintf(why, size, "another connection to its context uses UCX");
        return RANK_ERR_UNREACHABLE;
    }
    l = rk_ucx_link_alloc(ucx);
    if (!l)
        return RANK_ERR_NO_MEMORY;
    l->remote = remote;
    st = rk_ucx_make_endpoint(l, address, &l->shut);
    if (st) {
        snprintf(why, size, "UCX finds no device or transport in common (UCX_TLS, UCX_NET_DEVICES, RANK_NICS)");
        free(l);
        return st;
    }
    rk_list_append(&ucx->prepared, &l->on_prepared);
    *out = l;
    return RANK_OK;
}

static void ucx_conn_unprepare(void *state, void *link)
{
    (void)state;
    rk_ucx_link_discard(link);
}

static rank_status_t ucx_conn_adopt(void *link, struct rk_peer *peer, struct rk_procid self)
{
    struct rk_ucx_link *l = link;

    if (!rk_ucx_link_bind(l, peer))
        return RANK_ERR_NO_MEMORY;
    rk_list_remove(&l->on_prepared);
    l->self = self;
    return RANK_OK;
}

static void ucx_conn_admit(struct rk_peer *peer)
{
    struct rk_ucx_link *l = peer->ep;

    if (l)
        rk_ucx_link_admit(l);
}

static rank_status_t ucx_conn_settled(struct rk_peer *peer)
{
    struct rk_ucx_link *l = peer->ep;

    if (!l || l->failed || l->dropped || l->shut)
        return RANK_OK;
    if (l->ucx->inside || rk_ucx_is_moving(l))
        return RK_AGAIN;
    return rk_ucx_link_drained(l);
}

RK_COLD rank_status_t rk_ucx_conn_refusal(const struct rk_ucx_link *l)
{
    return l && !l->dropped && (l->shut || (l->remote && l->lost_ns)) ? RK_AGAIN : RANK_ERR_PEER_DEAD;
}

const struct rk_channel_links rk_ucx_conn_links = {
    .prepare = ucx_conn_prepare,
    .unprepare = ucx_conn_unprepare,
    .adopt = ucx_conn_adopt,
    .admit = ucx_conn_admit,
    .settled = ucx_conn_settled,
};
