/*
 * liveness.h: who is gone, as far as this node of the tree was told.
 *
 * The one place where it is kept: which ranks have ended, on which hosts no rank
 * is left, which agents answer no more. Nobody comes back. Whoever has waits to
 * end by it (fence.h, dmodex.h) asks here, and is told what is new.
 */
#ifndef RK_LAUNCHER_OVERLAY_LIVENESS_H
#define RK_LAUNCHER_OVERLAY_LIVENESS_H

#include "launcher/job/job.h"
#include "lib/base/list.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>

enum rk_gone_what {
    RK_GONE_RANK, /* it has ended, well or not */
    RK_GONE_HOST, /* no rank is left on it */
    RK_GONE_AGENT /* of a host: it answers no more, and no rank is left there */
};

struct rk_gone;

/* job must have its map and stay. */
rank_status_t rk_gone_open(const struct rk_job *job, struct rk_gone **out);
/* NULL is fine. Nobody may watch any more. */
void rk_gone_close(struct rk_gone *gone);

/* Who is told what is new, once it is kept, in the order in which they began to watch. */
struct rk_gone_watcher {
    struct rk_link link;
    void (*told)(struct rk_gone_watcher *watcher, enum rk_gone_what what, uint32_t number);
};
void rk_gone_watch(struct rk_gone *gone, struct rk_gone_watcher *watcher);
void rk_gone_unwatch(struct rk_gone_watcher *watcher);

/* number: of a rank, or of a host. gone NULL, numbers that the job does not have and what is known are fine. */
void rk_gone_note(struct rk_gone *gone, enum rk_gone_what what, uint32_t number);
/* Also a rank of a host on which none is left. */
bool rk_gone(const struct rk_gone *gone, enum rk_gone_what what, uint32_t number);

#endif
