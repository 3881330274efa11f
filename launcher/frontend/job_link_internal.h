/* SPDX-License-Identifier: BSD-3-Clause */
/* job_link_internal.h: what job_link.c and child_jobs.c share; see job_link.h. */
#ifndef XR_LAUNCHER_FRONTEND_JOB_LINK_INTERNAL_H
#define XR_LAUNCHER_FRONTEND_JOB_LINK_INTERNAL_H

#include "launcher/frontend/job_link.h"
#include "launcher/dpm/hub.h"
#include "launcher/overlay/dmodex.h"
#include "lib/base/list.h"

struct xr_job_link {
    const struct xr_job_link_ops *ops;
    struct xr_hub *hub;        /* the first xrun's; else NULL */
    struct rk_link children;   /* spawned xruns of the first one */
    uint32_t nspawned;
    struct xr_conn *conn;      /* of a spawned xrun: to the first one */
    struct xr_dmodex_table *dmodex; /* requests of other jobs for data of our ranks */
    bool end_requested;        /* the first xrun ends this job: it needs no report of that */
    bool up;                   /* the hub knows that the job runs */
};

#endif
