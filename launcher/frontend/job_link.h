/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_link.h: connect the front ends of a job and of the jobs that it spawned.
 *
 * The first xrun starts the spawned xruns and runs the hub. A spawned xrun has a connection to the first one. The
 * messages between them are in hub.h.
 */
#ifndef XR_LAUNCHER_FRONTEND_JOB_LINK_H
#define XR_LAUNCHER_FRONTEND_JOB_LINK_H

#include "launcher/frontend/frontend_internal.h"
#include "launcher/overlay/event.h"

/* What other jobs want of this one. */
struct xr_job_link_ops {
    /* A connected job failed with that exit code: end this one. */
    void (*end)(struct front *f, int code);
    /* End the job by a signal, for the first xrun ends. */
    void (*force)(struct front *f, int code, int sig, uint32_t grace_ms);
    /* Send a signal to all ranks. */
    void (*signal)(struct front *f, int sig);
    /* No rank of any job makes progress. */
    void (*stalled)(struct front *f);
    /* A job or a connection ended: leave the loop if nothing else remains. */
    void (*leave)(struct front *f);
};

/* Needs the loop. ops is borrowed. */
rank_status_t xr_job_link_open(struct front *f, const struct xr_job_link_ops *ops);
/* Kills spawned jobs that still run, and waits for them. */
void xr_job_link_close(struct front *f);

/* Send the job's description to the hub. The agents are connected. */
rank_status_t xr_job_link_describe(struct front *f);

/* Reports to the hub. */
/* A host has started or is lost. Once all others have started, the job runs; the hub gets one report of that. */
void xr_job_link_check_started(struct front *f);
void xr_job_link_rank_ended(struct front *f, uint32_t rank, bool failed, bool by_signal);
/* All ranks of a host count as killed. */
void xr_job_link_host_lost(struct front *f, uint32_t node);
/* No rank of the job makes progress, or one makes progress again. */
void xr_job_link_stalled(struct front *f, bool stalled);
/* Forward XR_MSG_CLIENT_LOST. */
void xr_job_link_client_lost(struct front *f, struct xr_unpacker *u);
/* An event whose range is wider than the job. */
void xr_job_link_event(struct front *f, const struct xr_event *event);
/* All of this job has ended. */
void xr_job_link_ended(struct front *f);

/* Return whether data for the first xrun is queued. */
bool xr_job_link_sending(const struct front *f);
/* Handle XR_MSG_RPC or XR_MSG_DMODEX_REPLY. Returns false if it is malformed. */
bool xr_job_link_take(struct front *f, uint32_t kind, struct xr_unpacker *u);

/* This job ends: end the connected jobs too, or all others if xrun itself ends. */
void xr_job_link_end(struct front *f, int sig, uint32_t grace_ms);

#endif
