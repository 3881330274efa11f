/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place_job.h: from a plan to what agents are told.
 */
#ifndef XR_LAUNCHER_FRONTEND_PLACE_JOB_H
#define XR_LAUNCHER_FRONTEND_PLACE_JOB_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"
#include "launcher/map/plan.h"
#include "launcher/bootstrap/setup.h"

#define XR_FANOUT 32

/* Place the ranks, and show it where that was asked for. On failure err says why. */
rank_status_t xr_assign_place(const struct xr_options *options, struct xr_plan *plan, char *err,
                              size_t errlen);

/* Ranks are placed: tell the job how many, and check what could not be checked before. */
rank_status_t xr_assign_size(const struct xr_options *options, const struct xr_plan *plan, struct xr_job *job,
                             char *err, size_t errlen);

/* Let xrun open as many files as it may need for the agents, and for what n ranks write into files. False: err says
 * that it cannot. */
bool xr_assign_files(const struct xr_options *options, const struct xr_plan *plan, uint32_t n, char *err,
                     size_t errlen);

/* The command that starts agents on other hosts, with a path that holds wherever it is run. To be freed. NULL: err says that
 * it is not there. */
char *xr_assign_command(const struct xr_options *options, const struct xr_plan *plan, char *err, size_t errlen);

/* What agents of other hosts are told at first; this host's agent, too. Clear it in any case. */
rank_status_t xr_assign_setup(const struct xr_options *options, const struct xr_plan *plan,
                              struct xr_setup *out);

/* Put the placement into the job. */
rank_status_t xr_assign_map(const struct xr_plan *plan, uint32_t fanout, struct xr_job *job);
/* The seats of a host's ranks, packed. */
rank_status_t xr_assign_seats(const struct xr_plan *plan, uint32_t host,
                              const struct xr_by_host *ranks, struct xr_packer *p);

#endif
