/*
 * conn.h: a connection between front end and agent, or two agents, that carries messages.
 *
 * Runs in a libevent loop. Sending never blocks and never fails for the
 * caller; a wire that broke says so once through on_close.
 */
#ifndef XR_LAUNCHER_OVERLAY_CONN_H
#define XR_LAUNCHER_OVERLAY_CONN_H

#include "launcher/util/pack.h"
#include "lib/rank.h"

#include <event2/event.h>

/* Whom a message is for, besides the agents, which are numbered as their hosts. */
#define XR_NODE_ALL UINT32_MAX         /* every agent */
#define XR_NODE_FRONT (UINT32_MAX - 1) /* xrun */
#define XR_NODE_NEXT (UINT32_MAX - 2)  /* whoever is at the other end */

struct xr_wire;

struct xr_wire_ops {
    /* One whole message, for a node or one of XR_NODE_. Returning false says that it makes no sense; the wire is
     * then closed. */
    bool (*on_message)(void *arg, uint32_t node, uint32_t kind, struct xr_unpacker *payload);
    /* The other end is gone, or spoke nonsense; why is a text, or NULL for a plain end. */
    void (*on_close)(void *arg, const char *why);
    /* Of what was queued, little is left. May be NULL. */
    void (*on_drained)(void *arg);
    /* Bytes have come, of a message that may not be whole yet. May be NULL. */
    void (*on_bytes)(void *arg);
};

/* Takes fd over. */
rank_status_t xr_wire_open(struct event_base *base, int fd, const struct xr_wire_ops *ops,
                           void *arg, struct xr_wire **out);
/* NULL is fine. What is queued is dropped. */
void xr_wire_close(struct xr_wire *wire);

/* Queue a message; the packer is emptied. */
void xr_wire_send_to(struct xr_wire *wire, uint32_t node, uint32_t kind, struct xr_packer *payload);
/* The same, for the front end. */
void xr_wire_send(struct xr_wire *wire, uint32_t kind, struct xr_packer *payload);
/* Queue what came in by another wire. */
void xr_wire_forward(struct xr_wire *wire, uint32_t node, uint32_t kind, const void *data,
                     size_t len);
/* Send of what is queued as much as the kernel takes at once: the loop, which does that else, will not run for a while. */
void xr_wire_flush(struct xr_wire *wire);
/* All has been sent: say so, and leave it to the other end to close. A socket of TCP that is closed with something
 * still to be read takes back what the other has not read yet. */
void xr_wire_finish(struct xr_wire *wire);
int xr_wire_fd(const struct xr_wire *wire);
/* Bytes queued and not yet with the kernel. */
size_t xr_wire_backlog(const struct xr_wire *wire);

#endif
