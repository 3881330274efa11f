/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontend.h: the front end: what the user sees of a job.
 *
 * It starts the agents, hands them the job, carries input and output, and decides
 * what a failure, a signal or a time-out means for the job.
 */
#ifndef XR_LAUNCHER_FRONTEND_FRONTEND_H
#define XR_LAUNCHER_FRONTEND_FRONTEND_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"
#include "launcher/map/plan.h"

/* What is left to do before the job can be told: 0, or xrun's exit code, and it has said why. */
typedef int (*xr_front_late_fn)(const struct xr_options *options, struct xr_plan *plan, struct xr_job *job);

/*
 * Runs the job to its end and returns xrun's exit code. late: done while this host's agent, the only one, begins with
 * what it can; or NULL.
 */
int xr_front_run(const struct xr_options *options, struct xr_job *job, struct xr_plan *plan, xr_front_late_fn late);

#endif
