/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_hosts.h: wait until all agents have reported.
 *
 * Collects what the placement needs of their hosts.
 */
#ifndef XR_LAUNCHER_FRONTEND_WAIT_HOSTS_H
#define XR_LAUNCHER_FRONTEND_WAIT_HOSTS_H

#include "launcher/map/plan.h"
#include "launcher/overlay/tree.h"

struct xr_wait_hosts;

struct xr_wait_hosts_ops {
    void (*on_complete)(void *arg);
    /* It takes long; line names the missing hosts. At most once. */
    void (*on_slow)(void *arg, const char *line);
    /* The time limit has passed. No other call follows. */
    void (*on_failed)(void *arg, const char *line);
};

/* timeout_s: the time limit. plan is borrowed, and filled in. */
rank_status_t xr_wait_hosts_open(struct event_base *base, struct xr_tree *tree, struct xr_plan *plan,
                             double timeout_s, const struct xr_wait_hosts_ops *ops, void *arg,
                             struct xr_wait_hosts **out);
/* No-op if NULL. */
void xr_wait_hosts_close(struct xr_wait_hosts *wait_hosts);

/* Handle XR_MSG_READY, XR_MSG_TOPOLOGY or XR_MSG_MACHINE. Returns false if it is malformed. */
bool xr_wait_hosts_take(struct xr_wait_hosts *wait_hosts, uint32_t kind, struct xr_unpacker *u);

#endif
