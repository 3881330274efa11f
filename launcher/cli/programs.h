/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * programs.h: the programs of a job, made of what the user said about each.
 */
#ifndef XR_LAUNCHER_CLI_PROGRAMS_H
#define XR_LAUNCHER_CLI_PROGRAMS_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"

/*
 * Fills job's size, apps and env. Takes out of xrun's own environment what is another launcher's, finds
 * every program and directory, and checks what the environment of each says to the library. 0, or xrun's exit code: err holds a line
 * that says why, or is empty if that has been logged. here: this host may have ranks; where it has none programs and
 * directories that are not here are left to the hosts. Clear the job in any case.
 */
int xr_apps_make(const struct xr_options *options, bool here, struct xr_job *job, char *err, size_t errlen);

#endif
