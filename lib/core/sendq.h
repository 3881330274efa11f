/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sendq.h: queue what finds no room in a peer's channel.
 *
 * Each class of a peer is in order. Progress retries the control class first, and no other class while a control
 * frame waits: replies never wait behind data. Requests of one-sided calls are a class of their own, since they may
 * also wait for the owner's replies, and messages must not wait for these.
 *
 * rk_sendq_is_idle (engine.h) covers the queues of all peers, and frames that channels defer. A channel keeps in its
 * own lists what is not a frame in line: streams of shm, pulled sends and open packets of ucx. The first two stop while
 * control frames wait.
 */
#ifndef RK_CORE_SENDQ_H
#define RK_CORE_SENDQ_H

#include "lib/base/list.h"
#include "lib/rank.h"

#include <stdbool.h>

struct rk_ctx;
struct rk_engine;
struct rk_peer;
struct rk_send_item;

enum rk_send_class {
    RK_SEND_CONTROL, /* replies and the channels' own frames */
    RK_SEND_DATA,    /* messages and announcements of p2p */
    RK_SEND_RMA,     /* requests of one-sided calls */
    RK_SEND_CLASSES
};

/* Of the room that queues items. Both calls get an item that is out of the queue. */
struct rk_send_ops {
    /* Send it. RK_AGAIN: no room, it returns to its place. Else it is finished, and may be freed. */
    rank_status_t (*send)(struct rk_send_item *item, struct rk_peer *peer);
    /* The peer is dead, or cannot be reached: finish the item with this status. */
    void (*fail)(struct rk_send_item *item, struct rk_peer *peer, rank_status_t status);
};

/* Embedded in what waits. */
struct rk_send_item {
    struct rk_link link;
    const struct rk_send_ops *ops;
};

struct rk_sendq {
    struct rk_link items[RK_SEND_CLASSES];
    struct rk_link on_busy; /* in the engine's list of peers with items */
};

/* Initialize the engine's part; the queue of a peer. */
void rk_sendq_open(struct rk_engine *e);
void rk_sendq_init(struct rk_sendq *q);
/* Give memory of control frames back. */
void rk_sendq_trim(struct rk_engine *e);

/* True if an item of this class waits: then others of the class must be queued, too. */
RK_INLINE bool rk_sendq_has(const struct rk_sendq *q, enum rk_send_class class)
{
    return !rk_list_empty(&q->items[class]);
}

/* Queue an item; a new peer is connected by progress. The peer must not be dead. */
void rk_sendq_append(struct rk_peer *peer, enum rk_send_class class, struct rk_send_item *item,
                     const struct rk_send_ops *ops);
/* Take an item out of the queue. */
void rk_sendq_remove(struct rk_peer *peer, struct rk_send_item *item);
/* Fail all items of a peer in order: control frames, messages, requests. */
void rk_sendq_fail(struct rk_peer *peer, rank_status_t status);
/* Fail the items with these ops, of all peers: their room closes. */
void rk_sendq_fail_ops(struct rk_ctx *ctx, const struct rk_send_ops *ops, rank_status_t status);
/* Retry all peers with items. Returns the number of items that are finished. Not from within itself. */
int rk_sendq_progress(struct rk_ctx *ctx);

enum { RK_CONTROL_MAX = 80 }; /* payload bytes of a control frame */

/*
 * Send a control frame, now or from the queue. Connects a new peer. Without memory or connection the peer is
 * disconnected. Dropped if the peer is dead.
 */
void rk_send_control(struct rk_peer *peer, uint8_t kind, uint64_t tag, const void *payload, uint32_t len);
/* A reply cannot be sent: disconnect the peer, which would wait for it forever. No-op if the peer is dead. */
RK_COLD void rk_send_give_up(struct rk_peer *peer, rank_status_t why);

#endif
