/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unexpected.c: store messages that no receive waits for.
 *
 * While all of them together are few (RANK_UNEXPECTED_MAX), their credit is returned at once, so that messages
 * behind a long queue do not suffer. Above that each sender is limited by its window and then announces. Senders
 * obey by themselves; one that exceeds its window, or announces without end, is stopped here, for known and
 * unknown teams. That limit is far above any legal one, as windows may differ between ranks.
 */
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/core/conn_memory.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>

enum { KEPT_LINK = offsetof(struct rk_unexpected, bucket) };

struct rk_unexpected *rk_unexpected_alloc(struct rk_p2p *p2p)
{
    struct rk_unexpected *u = rk_slab_alloc(&p2p->kept_slab, KEPT_LINK);

    if (rk_likely(u != NULL))
        u->magic = u->held = 0;
    return u;
}

/* Memory of a message that is stored. */
static int64_t stored_bytes(const struct rk_unexpected *u)
{
    return (int64_t)(sizeof(*u) + (rk_unexpected_on_heap(u) ? u->bytes : 0) + u->held);
}

void rk_unexpected_free(struct rk_p2p *p2p, struct rk_unexpected *u)
{
    rk_peer_keeps(u->peer, -stored_bytes(u));
    if (rk_unexpected_on_heap(u))
        free(u->u.heap);
    rk_slab_free(&p2p->kept_slab, u, KEPT_LINK);
}

static void free_payloads(struct rk_p2p *p2p, struct rk_link *list)
{
    struct rk_link *l;

    rk_list_for_each(l, list)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        if (rk_unexpected_on_heap(u))
            free(u->u.heap);
        else if (u->kind == RK_KIND_EARLY)
            rk_early_free(p2p, u);
    }
}

void rk_unexpected_free_all(struct rk_p2p *p2p)
{
    free_payloads(p2p, &p2p->match.arrived);
    free_payloads(p2p, &p2p->probed);
    rk_slab_close(&p2p->kept_slab);
}

/* A rank limits its own messages itself. */
static RK_COLD bool is_too_much(struct rk_p2p *p2p, struct rk_peer *peer)
{
    if (peer->number == peer->ctx->boot->rank)
        return false;
    rk_engine_refused(peer->ctx, &p2p->bad_frames);
    rk_peer_condemn(peer, "%lld kB of messages from it wait here for a receive, more than its window lets it send (see "
                          "RANK_UNEXPECTED_MAX)", (long long)(peer->kept / 1000));
    return true;
}

/* Is the credit that a peer of a connection has used within the window that both sides have agreed on? */
static bool keeps_to_window(struct rk_peer *peer)
{
    int64_t used = peer->kept - peer->announced + peer->eager_in;

    if (rk_likely(!peer->by_conn || used <= peer->window))
        return true;
    rk_peer_condemn(peer, "it has sent %lld bytes without credit", (long long)(used - peer->window));
    return false;
}

bool rk_unexpected_exceeds(struct rk_p2p *p2p, struct rk_peer *peer)
{
    return (rk_unlikely(peer->kept > p2p->kept_max) && is_too_much(p2p, peer)) || !keeps_to_window(peer) || !rk_peer_may_keep(peer);
}

/*
 * Where all ranks send first, a delayed credit would only turn eager messages into announced ones, which are
 * fetched at once (rndv_early.h).
 */
static bool may_stay(const struct rk_p2p *p2p, int64_t cost)
{
    int64_t most = p2p->ahead.sending ? rk_conf.rndv_unexpected_max - p2p->ahead.bytes : 0;

    return p2p->kept + cost <= (most > rk_conf.unexpected_max ? most : rk_conf.unexpected_max);
}

void rk_unexpected_open_windows(struct rk_p2p *p2p)
{
    struct rk_link *l;

    rk_list_for_each(l, &p2p->match.arrived)
    {
        struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
        int64_t cost = (int64_t)u->bytes + RK_UNEXPECTED_COST;
        if (u->credited || u->kind >= RK_KIND_RNDV || u->peer->state != RK_PEER_UP)
            continue;
        if (!may_stay(p2p, cost))
            return;
        u->credited = true;
        u->peer->kept -= cost;
        p2p->kept += cost;
        rk_recv_consumed(u->peer, u->bytes);
    }
}

void rk_unexpected_add(struct rk_p2p *p2p, struct rk_unexpected *u)
{
    int64_t cost = (int64_t)u->bytes + RK_UNEXPECTED_COST;

    u->credited = u->kind != RK_KIND_RNDV && may_stay(p2p, cost);
    if (u->credited) {
        p2p->kept += cost;
        rk_recv_consumed(u->peer, u->bytes);
    } else {
        u->peer->kept += u->kind == RK_KIND_RNDV ? RK_UNEXPECTED_ENVELOPE : cost;
        u->peer->announced += u->kind == RK_KIND_RNDV ? RK_UNEXPECTED_ENVELOPE : 0;
    }
    if (rk_unlikely(u->peer->by_conn) && u->kind == RK_KIND_RNDV && u->peer->channel)
        u->held = u->peer->channel->announced_bytes;
    rk_peer_keeps(u->peer, stored_bytes(u));
    rk_match_add_unexpected(&p2p->match, u);
}

void rk_unexpected_trim(struct rk_p2p *p2p)
{
    rk_slab_trim(&p2p->kept_slab, KEPT_LINK);
}

void rk_unexpected_done(struct rk_p2p *p2p, const struct rk_unexpected *u)
{
    int64_t cost = (int64_t)u->bytes + RK_UNEXPECTED_COST;

    if (u->credited) {
        p2p->kept -= cost;
        return;
    }
    u->peer->kept -= cost;
    rk_recv_consumed(u->peer, u->bytes);
}
