/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontend.h: run a job, from the start of its agents to xrun's exit code.
 *
 * Room: launch, streams, signals, time limits, failures and the report of a job.
 * Called by: main.c.
 * Never: starts or signals a rank itself; the agents do.
 * Tests: tests/launcher/{xrun,job_end,job_report,hang,dpm}*.sh, job_state_test.c, tree_test.c (wait_hosts.h).
 */
#ifndef XR_LAUNCHER_FRONTEND_FRONTEND_H
#define XR_LAUNCHER_FRONTEND_FRONTEND_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"
#include "launcher/map/plan.h"

/*
 * Run the job to its end. Returns xrun's exit code. The order of a start is always the same:
 *
 *   1. Fork the agent of this host. It begins what does not depend on the placement.
 *   2. Connect the agents of other hosts.
 *   3. Place the ranks, when all hosts are known. A job without other hosts is placed before its agent is connected.
 *   4. Send the job to the agents.
 *
 * Errors of the placement are found while no rank runs. A dry run on this host alone starts no agent.
 */
int xr_front_run(const struct xr_options *options, struct xr_job *job, struct xr_plan *plan);

#endif
