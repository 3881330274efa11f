/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_link.h: a front end as one of several jobs: the first one starts the
 * spawned and has the hub; a spawned one has a link to it. See hub.h.
 */
#ifndef XR_LAUNCHER_FRONTEND_JOB_LINK_H
#define XR_LAUNCHER_FRONTEND_JOB_LINK_H

#include "launcher/frontend/frontend_internal.h"
#include "launcher/overlay/event.h"

/* Once there is a loop. */
rank_status_t xr_front_jobs_open(struct front *f);
/* When all is over; spawned jobs that still run are killed. */
void xr_front_jobs_close(struct front *f);

/* Is there a spawned job that has not ended? */
bool xr_front_jobs_running(const struct front *f);
/* The tree and the job are there. */
rank_status_t xr_front_jobs_told(struct front *f);
/* The ranks of one more host run. */
void xr_front_jobs_started(struct front *f, uint32_t node);
void xr_front_jobs_ended(struct front *f, uint32_t rank, bool failed, bool by_signal);
/* No rank of the job makes progress, or one does again. */
void xr_front_jobs_still(struct front *f, bool still);
/* XR_MSG_CLIENT_LOST */
void xr_front_jobs_broken(struct front *f, struct xr_unpacker *u);
/* An event whose range goes beyond the job. */
void xr_front_jobs_notice(struct front *f, const struct xr_notice *notice);
/* A host is lost. */
void xr_front_jobs_lost(struct front *f, uint32_t node);
/* All of the job here has ended. */
void xr_front_jobs_over(struct front *f);
/* Is there something left to be said to the first xrun? */
bool xr_front_jobs_speaking(const struct front *f);
/* XR_MSG_ERRAND, XR_MSG_MODEX_ANSWER. False: it makes no sense. */
bool xr_front_jobs_take(struct front *f, uint32_t kind, struct xr_unpacker *u);

/* The job is told to end: so are those that are connected with it, or all if xrun shall end. */
void xr_front_jobs_end(struct front *f, int sig, uint32_t ms);
void xr_front_jobs_signal(struct front *f, int sig);
/* Little output waits for the user. */
void xr_front_jobs_drained(struct front *f);
/* A child of this process ended. */
void xr_front_jobs_reap(struct front *f);

#endif
