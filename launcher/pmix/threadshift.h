/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threadshift.h: pass work from PMIx's thread to the agent's loop.
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
    /* Runs in the loop. Frees the post. */
    void (*run)(struct xr_post *post, void *arg);
};

struct xr_threadshift;

/* arg is passed to each post. */
rank_status_t xr_threadshift_open(struct event_base *base, void *arg, struct xr_threadshift **out);
/* No-op if NULL. Pending posts are lost: only for the end of the process. */
void xr_threadshift_close(struct xr_threadshift *shift);

/* Thread-safe. */
void xr_threadshift_post(struct xr_threadshift *shift, struct xr_post *post);
/* Run the posts that are pending now. Runs in the loop. */
void xr_threadshift_run(struct xr_threadshift *shift);

#endif
