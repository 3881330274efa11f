/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener.h: accept connections of agents on other hosts.
 *
 * A peer must complete the handshake (handshake.h) within a few seconds. A peer
 * that does not is closed and counted. With too many pending connections the
 * oldest are closed first, so that agents always get in.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_LISTENER_H
#define XR_LAUNCHER_BOOTSTRAP_LISTENER_H

#include "launcher/bootstrap/setup.h"

#include <event2/event.h>

struct xr_listener;

struct xr_listener_ops {
    /* An agent proved the key of its node. Takes ownership of fd. */
    void (*on_agent)(void *arg, uint32_t node, int fd, const struct xr_seals *seals);
    /* An agent of another version proved its key. */
    void (*on_other_version)(void *arg, uint32_t node, const char *version);
};

/*
 * Listen for nodes of setup->shape below setup->secret_node. Keeps setup. setup->interface: a name, or a network as
 * 10.0.0.0/8, to listen on; NULL: all. *addresses: numeric, the likeliest first; caller frees with xr_strv_free. On
 * failure err holds a text.
 */
rank_status_t xr_listener_open(struct event_base *base, const struct xr_setup *setup, const struct xr_listener_ops *ops,
                               void *arg, struct xr_listener **out, char ***addresses, uint32_t *port, char *err,
                               size_t errlen);
/* No-op if NULL. */
void xr_listener_close(struct xr_listener *listener);
/* Return the number of peers that failed the handshake or have not completed it. */
uint32_t xr_listener_unauthenticated(const struct xr_listener *listener);

/*
 * The agent's side: connect to the parent named in setup, authenticate both ends and set setup->seals. Blocks for about
 * ms at most. Returns the socket, or -1 with a text in err.
 */
int xr_connect_parent(struct xr_setup *setup, int ms, char *err, size_t errlen);

#endif
