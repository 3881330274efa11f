/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heartbeat.h: report ranks without progress, and answer status clients.
 *
 * The front end's part: it prints which ranks stall and which make progress again,
 * prints stack traces, and answers xrun --status with the agents' reports.
 */
#ifndef XR_LAUNCHER_MONITOR_HEARTBEAT_H
#define XR_LAUNCHER_MONITOR_HEARTBEAT_H

#include "launcher/overlay/fence.h"
#include "launcher/job/job.h"
#include "launcher/iof/out_stream.h"

#include <event2/event.h>

struct xr_heartbeat;

struct xr_heartbeat_ops {
    /* Send to every agent. Returns their number. Empties the packer. */
    int (*send)(void *arg, uint32_t kind, struct xr_packer *payload);
    /* No rank makes progress, or one does again. */
    void (*all_stalled)(void *arg, bool all_stalled);
    /* Return the front end's fences, or NULL. */
    const struct xr_fence_table *(*fences)(void *arg);
};

struct xr_heartbeat_options {
    double heartbeat;    /* report ranks after so many seconds without progress; 0: none; < 0: a job that waits as a whole */
    bool heartbeat_kill; /* end the job when no rank makes progress */
    bool verbose;
};

rank_status_t xr_heartbeat_open(struct event_base *base, const struct xr_heartbeat_options *options,
                           const struct xr_job *job, struct xr_stream *err,
                           const struct xr_heartbeat_ops *ops, void *arg, struct xr_heartbeat **out);
/*
 * All ranks have ended: remove the status socket, unless a client is connected. That takes a millisecond on some file
 * systems, while agents end. No-op if NULL.
 */
void xr_heartbeat_shut(struct xr_heartbeat *heartbeat);
/* No-op if NULL. */
void xr_heartbeat_close(struct xr_heartbeat *heartbeat);

/* The ranks have been started. */
void xr_heartbeat_started(struct xr_heartbeat *heartbeat);
void xr_heartbeat_exited(struct xr_heartbeat *heartbeat, uint32_t rank);
/* Another job has ended, for which stalled ranks may have waited. No-op if NULL. */
void xr_heartbeat_again(struct xr_heartbeat *heartbeat);
/*
 * No job of this xrun makes progress: print the ranks' waits once, unless each was printed, and the cycle of waits.
 * No-op if NULL.
 */
void xr_heartbeat_explain(struct xr_heartbeat *heartbeat);
/*
 * The job is to end: if all ranks wait in librank, print their waits, unless that was done. Then call done, within
 * XR_LAST_REPORT_MS; at once if heartbeat is NULL.
 */
void xr_heartbeat_explain_last(struct xr_heartbeat *heartbeat, void (*done)(void *arg), void *arg);
/* Handle a message of an agent. *mine: whether it is of a kind for this file. Returns false if it is malformed. */
bool xr_heartbeat_message(struct xr_heartbeat *heartbeat, uint32_t kind, struct xr_unpacker *u, bool *mine);
/* Print stack traces of all ranks. Calls done when all agents are through, or after XR_TRACE_MS. */
void xr_heartbeat_trace(struct xr_heartbeat *heartbeat, void (*done)(void *arg), void *arg);

#endif
