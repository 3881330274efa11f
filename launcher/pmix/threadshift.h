/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threadshift.h: how PMIx's thread hands work to the agent's loop.
 *
 * An upcall copies its arguments into a struct that begins with a xr_post,
 * posts it and returns; the loop runs posts in order.
 */
#ifndef XR_LAUNCHER_PMIX_THREADSHIFT_H
#define XR_LAUNCHER_PMIX_THREADSHIFT_H

#include "lib/base/list.h"
#include "lib/rank.h"

#include <event2/event.h>

struct xr_post {
    struct rk_link link;
    /* Called in the loop; frees the post. */
    void (*run)(struct xr_post *post, void *arg);
};

struct xr_threadshift;

/* arg is given to each post. */
rank_status_t xr_threadshift_open(struct event_base *base, void *arg, struct xr_threadshift **out);
/* NULL is fine. Posts that were not run are lost: only for the end of the process. */
void xr_threadshift_close(struct xr_threadshift *shift);

/* From any thread. */
void xr_threadshift_post(struct xr_threadshift *shift, struct xr_post *post);
/* In the loop: run what is there now. */
void xr_threadshift_run(struct xr_threadshift *shift);

#endif
