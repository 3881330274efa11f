/*
 * line_relay.h: what a spawned xrun writes, on its way to the user: in whole lines,
 * so that two jobs do not mix theirs, and no faster than it is taken.
 */
#ifndef XR_LAUNCHER_IOF_LINE_RELAY_H
#define XR_LAUNCHER_IOF_LINE_RELAY_H

#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

struct xr_relay;

struct xr_relay_ops {
    /* Whole lines; the last may have no end, where it is very long or there is no more. */
    void (*put)(void *arg, struct xr_relay *relay, const void *data, size_t len);
    /* Shall reading wait? Then xr_relay_wake goes on. */
    bool (*full)(void *arg);
    /* All of it has been put. */
    void (*over)(void *arg, struct xr_relay *relay);
};

/* Takes over the end of a pipe to read from. */
rank_status_t xr_relay_open(struct event_base *base, int fd, const struct xr_relay_ops *ops, void *arg,
                            struct xr_relay **out);
/* NULL is fine. What has come and not been put is put, a line without an end too. */
void xr_relay_close(struct xr_relay *relay);
void xr_relay_wake(struct xr_relay *relay);

#endif
