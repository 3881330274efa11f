/*
 * liveness.h: who is gone, as far as this node of the tree was told.
 *
 * The one place where it is kept: which ranks have ended, on which hosts no rank
 * is left, which agents answer no more. Nobody comes back. Whoever has waits to
 * end by it (fence.h, dmodex.h) asks here, and is told what is new.
 */
#ifndef XR_LAUNCHER_OVERLAY_LIVENESS_H
#define XR_LAUNCHER_OVERLAY_LIVENESS_H

#include "launcher/job/job.h"
#include "lib/base/list.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>

enum xr_gone_what {
    XR_GONE_RANK, /* it has ended, well or not */
    XR_GONE_HOST, /* no rank is left on it */
    XR_GONE_AGENT /* of a host: it answers no more, and no rank is left there */
};

struct xr_gone;

/* job must have its map and stay. */
rank_status_t xr_gone_open(const struct xr_job *job, struct xr_gone **out);
/* NULL is fine. Nobody may watch any more. */
void xr_gone_close(struct xr_gone *gone);

/* Who is told what is new, once it is kept, in the order in which they began to watch. */
struct xr_gone_watcher {
    struct rk_link link;
    void (*told)(struct xr_gone_watcher *watcher, enum xr_gone_what what, uint32_t number);
};
void xr_gone_watch(struct xr_gone *gone, struct xr_gone_watcher *watcher);
void xr_gone_unwatch(struct xr_gone_watcher *watcher);

/* number: of a rank, or of a host. gone NULL, numbers that the job does not have and what is known are fine. */
void xr_gone_note(struct xr_gone *gone, enum xr_gone_what what, uint32_t number);
/* Also a rank of a host on which none is left. */
bool xr_gone(const struct xr_gone *gone, enum xr_gone_what what, uint32_t number);

#endif
