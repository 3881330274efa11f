/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_link_internal.h: what the two ends of the link between jobs share; see job_link.h.
 */
#ifndef XR_LAUNCHER_FRONTEND_JOB_LINK_INTERNAL_H
#define XR_LAUNCHER_FRONTEND_JOB_LINK_INTERNAL_H

#include "launcher/frontend/job_link.h"
#include "launcher/dpm/hub.h"
#include "launcher/overlay/dmodex.h"
#include "lib/base/list.h"

struct xr_front_jobs {
    struct xr_hub *hub; /* in the first xrun; else NULL */
    struct rk_link children;
    uint32_t nspawned;
    struct xr_wire *link; /* in a spawned one: to the first */
    bool obeying;       /* it was the first who ended this job */
    struct xr_modexes *modexes; /* what others ask of our ranks */
    bool up;            /* all ranks run, and the hub knows */
};

/* job_link.c: the hub says something to this front end. False: it makes no sense. */
bool xr_front_hear(struct front *f, uint32_t word, struct xr_unpacker *u);

/* child_jobs.c */
extern const struct xr_hub_ops xr_front_hub_ops;
/* Each has lost us, and ends its job; it is waited for, though not forever. */
void xr_front_wait_for_children(struct front *f);

#endif
