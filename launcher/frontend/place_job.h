/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place_job.h: place the ranks of a job on its hosts.
 */
#ifndef XR_LAUNCHER_FRONTEND_PLACE_JOB_H
#define XR_LAUNCHER_FRONTEND_PLACE_JOB_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"
#include "launcher/map/plan.h"

/* Place the ranks, and print the map if that was requested. On failure err holds the reason. */
rank_status_t xr_place_ranks(const struct xr_options *options, struct xr_plan *plan, char *err, size_t errlen);

/* After placement: set the size of the job, and check the options that depend on it. */
rank_status_t xr_place_size(const struct xr_options *options, const struct xr_plan *plan, struct xr_job *job,
                            char *err, size_t errlen);

/*
 * Raise the limit of open files to what xrun needs for its agents, and for the output files of n ranks. Returns
 * false with the reason in err.
 */
bool xr_place_files(const struct xr_options *options, const struct xr_plan *plan, uint32_t n, char *err,
                    size_t errlen);

#endif
