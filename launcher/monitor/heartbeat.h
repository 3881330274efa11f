/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heartbeat.h: the front end's part in signs of life: it prints who stalls and who
 * goes on, prints stack traces, and answers xrun --status from what the agents
 * see.
 */
#ifndef XR_LAUNCHER_MONITOR_HEARTBEAT_H
#define XR_LAUNCHER_MONITOR_HEARTBEAT_H

#include "launcher/overlay/fence.h"
#include "launcher/job/job.h"
#include "launcher/iof/out_stream.h"

#include <event2/event.h>

struct xr_life;

struct xr_life_ops {
    /* Send to every agent; returns how many there are. The packer is emptied. */
    int (*send)(void *arg, uint32_t kind, struct xr_packer *payload);
    /* No rank makes progress; or one does again. */
    void (*still)(void *arg, bool still);
    /* The front end's own; NULL: there are none. */
    const struct xr_fences *(*fences)(void *arg);
};

/* What the user has asked for. */
struct xr_life_options {
    double heartbeat;    /* seconds without progress that are reported; 0: none are; less: a job that waits as a whole is */
    bool heartbeat_kill; /* end the job when all ranks make none */
    bool verbose;
};

rank_status_t xr_life_open(struct event_base *base, const struct xr_life_options *options,
                           const struct xr_job *job, struct xr_stream *err,
                           const struct xr_life_ops *ops, void *arg, struct xr_life **out);
/* All ranks have ended: nobody asks any more. Removing a socket and its directory takes a millisecond on some file
 * systems, while agents end. NULL is fine. */
void xr_life_shut(struct xr_life *life);
/* NULL is fine. */
void xr_life_close(struct xr_life *life);

/* The ranks have been started. */
void xr_life_started(struct xr_life *life);
void xr_life_exited(struct xr_life *life, uint32_t rank);
/* Another job has ended, which ranks that stand still may have waited for. NULL is fine. */
void xr_life_again(struct xr_life *life);
/* No job of this xrun makes progress: print once what the ranks wait for, unless that was printed for each, and the
 * cycle of waits. No-op if NULL. */
void xr_life_explain(struct xr_life *life);
/* The job is to end: if all ranks wait in librank, print what for, unless that was done. Then call done, within 0.5 s;
 * at once if life is NULL. */
void xr_life_explain_last(struct xr_life *life, void (*done)(void *arg), void *arg);
/* A message of an agent: *mine says whether it was one for this file; false: it makes no sense. */
bool xr_life_message(struct xr_life *life, uint32_t kind, struct xr_unpacker *u, bool *mine);
/* Print stack traces of all ranks, then call done; in bounded time, whatever happens. */
void xr_life_trace(struct xr_life *life, void (*done)(void *arg), void *arg);

#endif
