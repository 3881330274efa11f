/*
 * conn.h: a connection between front end and agent, or two agents, that carries messages.
 *
 * Runs in a libevent loop. Sending never blocks and never fails for the
 * caller; a wire that broke says so once through on_close.
 */
#ifndef RK_LAUNCHER_OVERLAY_CONN_H
#define RK_LAUNCHER_OVERLAY_CONN_H

#include "launcher/util/pack.h"
#include "lib/rank.h"

#include <event2/event.h>

/* Whom a message is for, besides the agents, which are numbered as their hosts. */
#define RK_NODE_ALL UINT32_MAX         /* every agent */
#define RK_NODE_FRONT (UINT32_MAX - 1) /* xrun */
#define RK_NODE_NEXT (UINT32_MAX - 2)  /* whoever is at the other end */

struct rk_wire;

struct rk_wire_ops {
    /* One whole message, for a node or one of RK_NODE_. Returning false says that it makes no sense; the wire is
     * then closed. */
    bool (*on_message)(void *arg, uint32_t node, uint32_t kind, struct rk_unpacker *payload);
    /* The other end is gone, or spoke nonsense; why is a text, or NULL for a plain end. */
    void (*on_close)(void *arg, const char *why);
    /* Of what was queued, little is left. May be NULL. */
    void (*on_drained)(void *arg);
    /* Bytes have come, of a message that may not be whole yet. May be NULL. */
    void (*on_bytes)(void *arg);
};

/* Takes fd over. */
rank_status_t rk_wire_open(struct event_base *base, int fd, const struct rk_wire_ops *ops,
                           void *arg, struct rk_wire **out);
/* NULL is fine. What is queued is dropped. */
void rk_wire_close(struct rk_wire *wire);

/* Queue a message; the packer is emptied. */
void rk_wire_send_to(struct rk_wire *wire, uint32_t node, uint32_t kind, struct rk_packer *payload);
/* The same, for the front end. */
void rk_wire_send(struct rk_wire *wire, uint32_t kind, struct rk_packer *payload);
/* Queue what came in by another wire. */
void rk_wire_forward(struct rk_wire *wire, uint32_t node, uint32_t kind, const void *data,
                     size_t len);
/* Send of what is queued as much as the kernel takes at once: the loop, which does that else, will not run for a while. */
void rk_wire_flush(struct rk_wire *wire);
/* All has been sent: say so, and leave it to the other end to close. A socket of TCP that is closed with something
 * still to be read takes back what the other has not read yet. */
void rk_wire_finish(struct rk_wire *wire);
int rk_wire_fd(const struct rk_wire *wire);
/* Bytes queued and not yet with the kernel. */
size_t rk_wire_backlog(const struct rk_wire *wire);

#endif
