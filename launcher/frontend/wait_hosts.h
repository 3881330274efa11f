/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_hosts.h: wait until all agents of other hosts are there and their hosts are
 * known well enough to place ranks on them.
 */
#ifndef XR_LAUNCHER_FRONTEND_WAIT_HOSTS_H
#define XR_LAUNCHER_FRONTEND_WAIT_HOSTS_H

#include "launcher/map/plan.h"
#include "launcher/overlay/tree.h"

struct xr_muster;

struct xr_muster_ops {
    void (*on_complete)(void *arg);
    /* It takes long: a line that says who is missing. Once, and once more when time is up, which ends it. */
    void (*on_slow)(void *arg, const char *line);
    void (*on_failed)(void *arg, const char *line);
};

/* timeout_s: how long to wait for all. */
rank_status_t xr_muster_open(struct event_base *base, struct xr_tree *tree, struct xr_plan *plan,
                             double timeout_s, const struct xr_muster_ops *ops, void *arg,
                             struct xr_muster **out);
/* NULL is fine. */
void xr_muster_close(struct xr_muster *muster);

/* XR_MSG_READY or XR_MSG_TOPOLOGY. False: it makes no sense. */
bool xr_muster_take(struct xr_muster *muster, uint32_t kind, struct xr_unpacker *u);

#endif
