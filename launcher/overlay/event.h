/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h: carry a PMIx event from one rank to other hosts and jobs.
 *
 * The agent of the rank sends it to the front end, which sends it to all agents.
 * Each agent delivers it to those of its ranks that registered for it. An event
 * whose range exceeds the job also goes to the hub, and from there to the front
 * ends of all other jobs. The event's info is opaque here: only the PMIx server
 * reads it and checks a range of named processes.
 */
#ifndef XR_LAUNCHER_OVERLAY_EVENT_H
#define XR_LAUNCHER_OVERLAY_EVENT_H

#include "launcher/util/pack.h"

/* Largest info of one event. Messages between hosts have to stay short. */
#define XR_EVENT_MAX (1u << 20)

struct xr_event {
    uint32_t rank;  /* source of the event */
    uint32_t range; /* as PMIx numbers them */
    bool wide;      /* exceeds the job */
    int code;
    const void *info;
    size_t len;
};

void xr_event_pack(const struct xr_event *notice, struct xr_packer *p);
/*
 * info points into the message. Returns false if the message is malformed in a job of size ranks (another job:
 * UINT32_MAX).
 */
bool xr_event_unpack(struct xr_unpacker *u, uint32_t size, struct xr_event *out);

#endif
