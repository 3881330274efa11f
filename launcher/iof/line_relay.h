/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line_relay.h: forward the output of a spawned xrun in whole lines.
 *
 * Lines of two jobs are never mixed. Reading is no faster than the user's reader.
 */
#ifndef XR_LAUNCHER_IOF_LINE_RELAY_H
#define XR_LAUNCHER_IOF_LINE_RELAY_H

#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

struct xr_relay;

struct xr_relay_ops {
    /* Whole lines. The last may be incomplete if it is very long or at the end. */
    void (*put)(void *arg, struct xr_relay *relay, const void *data, size_t len);
    /* Return true to stop reading until xr_relay_wake. */
    bool (*full)(void *arg);
    /* All output has been put. */
    void (*over)(void *arg, struct xr_relay *relay);
};

/* Takes ownership of fd, the reading end of a pipe. */
rank_status_t xr_relay_open(struct event_base *base, int fd, const struct xr_relay_ops *ops, void *arg,
                            struct xr_relay **out);
/* No-op if NULL. Puts what was read, an incomplete line too. */
void xr_relay_close(struct xr_relay *relay);
void xr_relay_wake(struct xr_relay *relay);

#endif
