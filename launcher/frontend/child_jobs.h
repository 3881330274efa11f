/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child_jobs.h: start, serve and reap the spawned xruns of the first xrun.
 */
#ifndef XR_LAUNCHER_FRONTEND_CHILD_JOBS_H
#define XR_LAUNCHER_FRONTEND_CHILD_JOBS_H

#include "launcher/dpm/hub.h"
#include "launcher/frontend/frontend_internal.h"

/* As start in struct xr_hub_ops; arg is the front end. */
bool xr_child_jobs_start(void *arg, uint32_t job, const char *parent, uint32_t rank, struct xr_unpacker *request,
                         struct xr_packer *job_info);
/* Send to the front end of a spawned job. Empties the packer. */
void xr_child_jobs_send(struct front *f, uint32_t job, enum xr_hub_message word, struct xr_packer *p);

/* Return whether a spawned job has not ended yet. */
bool xr_child_jobs_running(const struct front *f);
/* Send a signal to all ranks of all spawned jobs. */
void xr_child_jobs_signal(struct front *f, int sig);
/* The user has read most of the output: read more of it from spawned jobs. */
void xr_child_jobs_wake(struct front *f);
/* A child of this process ended. */
void xr_child_jobs_reap(struct front *f);
/* Close all connections, which ends the spawned jobs, and wait for them. Kills those that take too long. */
void xr_child_jobs_wait(struct front *f);

#endif
