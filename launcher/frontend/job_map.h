/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_map.h: put the placement of ranks into the job.
 */
#ifndef XR_LAUNCHER_FRONTEND_JOB_MAP_H
#define XR_LAUNCHER_FRONTEND_JOB_MAP_H

#include "launcher/job/job.h"
#include "launcher/map/plan.h"

/* Fill in the hosts of the job and of each rank. All ranks are placed. */
rank_status_t xr_map_job(const struct xr_plan *plan, uint32_t fanout, struct xr_job *job);

/* Pack the CPUs of a host's ranks: the payload of XR_MSG_LOCAL_RANKS. */
rank_status_t xr_map_local_ranks(const struct xr_plan *plan, uint32_t host, const struct xr_by_host *ranks,
                               struct xr_packer *p);

#endif
