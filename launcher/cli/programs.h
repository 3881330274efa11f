/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * programs.h: make the programs of a job from their options.
 */
#ifndef XR_LAUNCHER_CLI_PROGRAMS_H
#define XR_LAUNCHER_CLI_PROGRAMS_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"

/*
 * Fill job's size, apps and env. Removes the variables of other launchers from xrun's environment, finds programs and
 * directories, and checks the RANK_ variables of each program. here: this host may get ranks; else programs and
 * directories that are missing here are left to the hosts. Returns 0 or xrun's exit code; then err holds one line, or
 * nothing if the cause has been logged. Caller clears job in any case.
 */
int xr_programs_make(const struct xr_options *options, bool here, struct xr_job *job, char *err, size_t errlen);

/* Do the first part of that: size and env of job and programs, without program and directory. */
int xr_programs_make_env(const struct xr_options *options, struct xr_job *job, char *err, size_t errlen);

#endif
