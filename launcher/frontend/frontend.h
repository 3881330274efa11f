/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontend.h: run a job as the user sees it, from the start of its agents to xrun's exit code.
 *
 * Room: launch, streams, signals, time limits, failures and the report of a job.
 * Callers: main.c.
 * Never: starts a rank, that is the agent's task; reads the command line or the environment.
 * Tests: tests/launcher/{xrun,job_end,job_report,hang,dpm}*.sh, job_state_test.c, tree_test.c (wait_hosts.h).
 */
#ifndef XR_LAUNCHER_FRONTEND_FRONTEND_H
#define XR_LAUNCHER_FRONTEND_FRONTEND_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"
#include "launcher/map/plan.h"

/* What is left to do before the job can be sent. Returns 0, or xrun's exit code after an error message. */
typedef int (*xr_front_late_fn)(const struct xr_options *options, struct xr_plan *plan, struct xr_job *job);

/*
 * Run the job to its end. Returns xrun's exit code. late: done while this host's agent, the only one, begins with
 * what it can; or NULL.
 */
int xr_front_run(const struct xr_options *options, struct xr_job *job, struct xr_plan *plan, xr_front_late_fn late);

#endif
