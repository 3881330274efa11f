/*
 * front.h: the front end: what the user sees of a job.
 *
 * It starts the agents, hands them the job, carries input and output, and decides
 * what a failure, a signal or a time-out means for the job.
 */
#ifndef RK_LAUNCHER_FRONT_H
#define RK_LAUNCHER_FRONT_H

#include "launcher/job.h"
#include "launcher/options.h"
#include "launcher/plan.h"

/* Runs the job to its end and returns xrun's exit code. */
int rk_front_run(const struct rk_options *options, struct rk_job *job, struct rk_plan *plan);

#endif
