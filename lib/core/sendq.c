/* SPDX-License-Identifier: BSD-3-Clause */
/* sendq.c: queue what finds no room in a peer's channel, and retry it in progress. */
#include "lib/core/sendq.h"
#include "lib/base/log.h"
#include "lib/core/engine.h"
#include "lib/core/conn_memory.h"

#include <string.h>

/* A control frame that waits for room. */
struct control {
    struct rk_send_item item;
    struct rk_hdr hdr;
    unsigned char payload[RK_CONTROL_MAX];
};

enum { CONTROL_LINK = offsetof(struct control, item.link) };

void rk_sendq_open(struct rk_engine *e)
{
    rk_list_init(&e->busy);
    e->controls = (struct rk_slab)RK_SLAB_INIT(sizeof(struct control), 16);
}

void rk_sendq_trim(struct rk_engine *e)
{
    rk_slab_trim(&e->controls, CONTROL_LINK);
}

void rk_sendq_init(struct rk_sendq *q)
{
    for (int c = 0; c < RK_SEND_CLASSES; c++)
        rk_list_init(&q->items[c]);
    rk_list_init(&q->on_busy);
}

void rk_sendq_append(struct rk_peer *peer, enum rk_send_class class, struct rk_send_item *item,
                     const struct rk_send_ops *ops)
{
    item->ops = ops;
    rk_list_append(&peer->sendq.items[class], &item->link);
    if (rk_list_empty(&peer->sendq.on_busy))
        rk_engine_defer(peer->ctx, &peer->ctx->engine->busy, &peer->sendq.on_busy);
}

/* The peer's queue has lost an item. */
static void sendq_settle(struct rk_peer *peer)
{
    for (int c = 0; c < RK_SEND_CLASSES; c++) {
        if (!rk_list_empty(&peer->sendq.items[c]))
            return;
    }
    rk_engine_release(peer->ctx, &peer->sendq.on_busy);
}

void rk_sendq_remove(struct rk_peer *peer, struct rk_send_item *item)
{
    rk_list_remove(&item->link);
    sendq_settle(peer);
}

/* Move all links of a list, which is not empty, to another head. */
static void sendq_move(struct rk_link *from, struct rk_link *to)
{
    rk_list_insert_before(from, to);
    rk_list_remove(from);
}

/* ops NULL: of all rooms. Failing an item may cancel others. */
static int sendq_fail_items(struct rk_peer *peer, const struct rk_send_ops *ops, rank_status_t status)
{
    struct rk_link all;
    int n = 0;

    for (int c = 0; c < RK_SEND_CLASSES; c++) {
        if (rk_list_empty(&peer->sendq.items[c]))
            continue;
        sendq_move(&peer->sendq.items[c], &all);
        while (!rk_list_empty(&all)) {
            struct rk_send_item *item = rk_list_entry(all.next, struct rk_send_item, link);
            rk_list_remove(&item->link);
            if (ops && item->ops != ops) {
                rk_sendq_append(peer, (enum rk_send_class)c, item, item->ops);
                continue;
            }
            item->ops->fail(item, peer, status);
            n++;
        }
    }
    sendq_settle(peer);
    return n;
}

void rk_sendq_fail(struct rk_peer *peer, rank_status_t status)
{
    sendq_fail_items(peer, NULL, status);
}

void rk_sendq_fail_ops(struct rk_ctx *ctx, const struct rk_send_ops *ops, rank_status_t status)
{
    for (int i = 0; i < ctx->engine->npeers; i++) {
        if (ctx->engine->peers[i])
            sendq_fail_items(ctx->engine->peers[i], ops, status);
    }
}

static int sendq_retry(struct rk_peer *peer)
{
    rank_status_t st = rk_likely(peer->state == RK_PEER_UP) ? RANK_OK : rk_peer_try_connect(peer);
    int n = 0;

    if (rk_unlikely(st)) /* waits for a connection, or that failed */
        return st == RK_AGAIN ? 0 : sendq_fail_items(peer, NULL, st);
    for (int c = 0; c < RK_SEND_CLASSES; c++) {
        struct rk_link *items = &peer->sendq.items[c];

        while (!rk_list_empty(items)) {
            struct rk_send_item *item = rk_list_entry(items->next, struct rk_send_item, link);

            rk_list_remove(&item->link);
            if (item->ops->send(item, peer) == RK_AGAIN) {
                rk_list_insert_before(items->next, &item->link);
                if (c == RK_SEND_CONTROL)
                    return n;
                break;
            }
            n++;
        }
    }
    sendq_settle(peer);
    return n;
}

int rk_sendq_progress(struct rk_ctx *ctx)
{
    struct rk_link *busy = &ctx->engine->busy, all;
    int n = 0;

    if (rk_list_empty(busy))
        return 0;
    sendq_move(busy, &all); /* any of these peers may leave the list meanwhile */
    while (!rk_list_empty(&all)) {
        struct rk_peer *peer = rk_container_of(all.next, struct rk_peer, sendq.on_busy);

        rk_list_remove(&peer->sendq.on_busy);
        rk_list_append(busy, &peer->sendq.on_busy);
        n += sendq_retry(peer);
    }
    return n;
}

/* ------------------------------------------------------------- control frames */

void rk_send_give_up(struct rk_peer *peer, rank_status_t why)
{
    if (!rk_is_lost(why))
        rk_peer_condemn(peer, "cannot answer it: %s", rank_status_string(why));
}

static void control_fail(struct rk_send_item *item, struct rk_peer *peer, rank_status_t status)
{
    rk_peer_keeps(peer, -(int64_t)sizeof(struct control));
    rk_slab_free(&peer->ctx->engine->controls, rk_container_of(item, struct control, item), CONTROL_LINK);
    if (rk_unlikely(status))
        rk_send_give_up(peer, status);
}

static rank_status_t control_send(struct rk_send_item *item, struct rk_peer *peer)
{
    struct control *c = rk_container_of(item, struct control, item);
    rank_status_t st = peer->channel->send(peer, &c->hdr, c->payload);

    if (st != RK_AGAIN)
        control_fail(item, peer, st);
    return st;
}

static const struct rk_send_ops control_ops = {control_send, control_fail};

void rk_send_control(struct rk_peer *peer, uint8_t kind, uint64_t tag, const void *payload, uint32_t len)
{
    struct rk_hdr hdr = {.kind = kind, .epoch = peer->epoch, .len = len, .tag = tag};
    rank_status_t st = RK_AGAIN;
    struct control *c;

    if (rk_likely(!rk_sendq_has(&peer->sendq, RK_SEND_CONTROL))) {
        st = rk_likely(peer->state == RK_PEER_UP) ? RANK_OK : rk_peer_try_connect(peer);
        if (!st)
            st = peer->channel->send(peer, &hdr, payload);
        if (rk_likely(!st))
            return;
    }
    if (rk_unlikely(!rk_peer_may_keep(peer)))
        return;
    c = st == RK_AGAIN ? rk_slab_alloc(&peer->ctx->engine->controls, CONTROL_LINK) : NULL;
    if (rk_unlikely(!c)) {
        rk_send_give_up(peer, st == RK_AGAIN ? RANK_ERR_NO_MEMORY : st);
        return;
    }
    rk_peer_keeps(peer, sizeof(*c));
    c->hdr = hdr;
    if (len)
        memcpy(c->payload, payload, len);
    rk_sendq_append(peer, RK_SEND_CONTROL, &c->item, &control_ops);
}
