/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.h: keep which ranks, hosts and agents have ended.
 *
 * The only place for this state, as far as this node was notified. An entry is
 * never cleared. Objects that wait for a remote rank (fence.h, dmodex.h) query it
 * and register for changes.
 */
#ifndef XR_LAUNCHER_OVERLAY_LIVENESS_H
#define XR_LAUNCHER_OVERLAY_LIVENESS_H

#include "launcher/job/job.h"
#include "lib/base/list.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>

enum xr_liveness_what {
    XR_FAILED_RANK, /* it has ended, normally or not */
    XR_FAILED_HOST, /* no rank is left on this host */
    XR_FAILED_AGENT /* the agent of a host is dead, and no rank is left there */
};

struct xr_liveness;

/* job must have its map and outlive the object. */
rank_status_t xr_liveness_open(const struct xr_job *job, struct xr_liveness **out);
/* No-op if NULL. Call after all watchers are removed. */
void xr_liveness_close(struct xr_liveness *liveness);

/* Called for each change, after it is stored, in the order of registration. */
struct xr_liveness_watcher {
    struct rk_link link;
    void (*on_gone)(struct xr_liveness_watcher *watcher, enum xr_liveness_what what, uint32_t number);
};
void xr_liveness_watch(struct xr_liveness *liveness, struct xr_liveness_watcher *watcher);
void xr_liveness_unwatch(struct xr_liveness_watcher *watcher);

/* number: of a rank, or of a host. No-op if liveness is NULL, the number is out of range or the entry is set. */
void xr_liveness_note(struct xr_liveness *liveness, enum xr_liveness_what what, uint32_t number);
/* Also true for a rank of a host on which no rank is left. */
bool xr_liveness(const struct xr_liveness *liveness, enum xr_liveness_what what, uint32_t number);

#endif
