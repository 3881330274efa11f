/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h: send and receive messages between xrun and agents over a socket.
 *
 * Runs in a libevent loop. A send never blocks and never fails for the caller. A
 * broken connection is reported once, through on_close.
 *
 * A connection between hosts is sealed: each frame ends with a mac, see lib/base/auth.h.
 * A frame that its sender did not send at this place ends the connection.
 */
#ifndef XR_LAUNCHER_OVERLAY_CONN_H
#define XR_LAUNCHER_OVERLAY_CONN_H

#include "launcher/util/pack.h"
#include "lib/base/auth.h"
#include "lib/rank.h"

#include <event2/event.h>

/* Destination of a message. Other numbers are agents, numbered as their hosts. */
#define XR_NODE_ALL UINT32_MAX         /* every agent */
#define XR_NODE_FRONT (UINT32_MAX - 1) /* xrun */
#define XR_NODE_NEXT (UINT32_MAX - 2)  /* the peer of this connection */

struct xr_conn;

/* Both directions of a connection between hosts; of this side. */
struct xr_seals {
    struct rk_seal out, in;
};

struct xr_conn_ops {
    /*
     * One whole message, for a node or one of XR_NODE_. Return false if it is malformed; the connection is then
     * closed.
     */
    bool (*on_message)(void *arg, uint32_t node, uint32_t kind, struct xr_unpacker *payload);
    /* The peer closed the connection or sent a malformed message. why: a text, or NULL for an orderly end. */
    void (*on_close)(void *arg, const char *why);
    /* Little of the queued data is left. May be NULL. */
    void (*on_drained)(void *arg);
    /* Bytes arrived, perhaps of an incomplete message. May be NULL. */
    void (*on_bytes)(void *arg);
};

/* Takes ownership of fd. seals: copied; NULL: frames are not sealed, as both ends are on this host. */
rank_status_t xr_conn_open(struct event_base *base, int fd, const struct xr_seals *seals, const struct xr_conn_ops *ops,
                           void *arg, struct xr_conn **out);
/* No-op if NULL. Drops queued data. */
void xr_conn_close(struct xr_conn *wire);

/* Queue a message. Empties the packer. */
void xr_conn_send_to(struct xr_conn *wire, uint32_t node, uint32_t kind, struct xr_packer *payload);
/* The same, for the front end. */
void xr_conn_send(struct xr_conn *wire, uint32_t kind, struct xr_packer *payload);
/* Queue a message that arrived on another connection. */
void xr_conn_forward(struct xr_conn *wire, uint32_t node, uint32_t kind, const void *data,
                     size_t len);
/* Send as much queued data as the kernel accepts now. Call before the loop stops for a while. */
void xr_conn_flush(struct xr_conn *wire);
/*
 * Shut down writing after the last message; the peer closes. A TCP socket closed with unread input resets the
 * connection and discards data in flight.
 */
void xr_conn_shutdown_write(struct xr_conn *wire);
int xr_conn_fd(const struct xr_conn *wire);
/* Return the bytes that are queued and not yet accepted by the kernel. */
size_t xr_conn_backlog(const struct xr_conn *wire);

#endif
