/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub.h: serve the jobs of one xrun: spawn, connect, publish, modex, failures.
 *
 * Room: dynamic process management of several jobs of one xrun.
 * Callers: agent, frontend, pmix, pmi1.
 * Never: starts a process; includes a PMIx header.
 * Tests: tests/launcher/unit/{hub,nameserver}_test.c, tests/launcher/{dpm,dpm_hosts}.sh, tests/mp/rank_spawn.c.
 *
 * A spawned job is an xrun of its own. Jobs form a star: each front end, the
 * first one's too, sends messages up (XR_UP_) to the hub in the first xrun, and
 * the hub sends messages down (XR_DOWN_).
 *
 * The hub answers requests, keeps which processes have ended and which jobs are
 * connected, and forwards modex requests between jobs. It drops the record of a job
 * at the job's end.
 */
#ifndef XR_LAUNCHER_DPM_HUB_H
#define XR_LAUNCHER_DPM_HUB_H

#include "launcher/dpm/rpc.h"
#include "launcher/dpm/group_op.h"
#include "launcher/job/job.h"

#include <event2/event.h>

enum xr_hub_message {
    XR_UP_JOB_INFO = 1, /* job_info.h */
    XR_UP_STARTED,     /* nothing: all ranks on hosts that are not lost run; once */
    XR_UP_RPC,      /* as XR_MSG_RPC */
    XR_UP_ENDED,       /* u32 rank, u32 it has failed, u32 by a signal */
    XR_UP_DMODEX,       /* u32 id, u32 enum xr_found, bytes */
    XR_UP_FAILING,     /* u32 exit code: the job is being ended */
    XR_UP_BROKEN,      /* as XR_MSG_CLIENT_LOST */
    XR_UP_STALLED,       /* u32 1 if no rank makes progress; all jobs end when that holds for all */
    XR_UP_EVENT,      /* event.h: an event for other jobs, too */

    XR_DOWN_HELLO = 32, /* spawn_request.h: the first message to a spawned job */
    XR_DOWN_ANSWER,     /* u32 node, u32 id of its request, then the answer */
    XR_DOWN_DMODEX,      /* u32 id, u32 rank, u32 time-out in s or 0 */
    XR_DOWN_DIED,       /* string job, u32 rank (XR_ALL_RANKS: the job is over), u32 by a signal, or XR_ONLY_FORGET */
    XR_DOWN_END,        /* u32 exit code of the failure, u32 ms between the signal and KILL, u32 signal */
    XR_DOWN_SIGNAL,     /* u32 signal for every rank */
    XR_DOWN_AGAIN,      /* nothing: a job has ended; send XR_UP_STALLED again if no rank makes progress */
    XR_DOWN_ALL_STALLED,   /* nothing: no rank of any job makes progress */
    XR_DOWN_EVENT      /* string job, then as XR_UP_EVENT: an event of one of its ranks */
};

struct xr_hub;

struct xr_hub_ops {
    /* Send to the front end of a job. Empties the packer. */
    void (*send)(void *arg, uint32_t job, enum xr_hub_message word, struct xr_packer *payload);
    /* Start the job of that number for a rank of another one. Returns false if that fails; nothing was sent then. */
    bool (*start)(void *arg, uint32_t job, const char *parent, uint32_t rank, struct xr_unpacker *request,
                  struct xr_packer *info);
};

/* The first job is number 0. continue_on_failure: connected jobs do not end when one fails. */
rank_status_t xr_hub_open(struct event_base *base, bool continue_on_failure, const struct xr_hub_ops *ops, void *arg,
                          struct xr_hub **out);
/* No-op if NULL. */
void xr_hub_close(struct xr_hub *hub);

/* Handle a message of a job's front end. Returns false if it is malformed. */
bool xr_hub_handle(struct xr_hub *hub, uint32_t job, enum xr_hub_message word, struct xr_unpacker *u);
/* A job has ended with that exit code. Ends the jobs that are connected with a failed one. Returns false if the job never
 * started. */
bool xr_hub_job_ended(struct xr_hub *hub, uint32_t job, int code);
/* End the jobs that are connected with a job, or with all every other job. */
void xr_hub_end_others(struct xr_hub *hub, uint32_t job, bool all, int code, uint32_t ms, int sig);
/* The number of jobs. */
uint32_t xr_hub_jobs(const struct xr_hub *hub);
/* The name of a job. NULL before its job info has come, and after its end. */
const char *xr_hub_name(const struct xr_hub *hub, uint32_t job);
/* The ranks of a job; 0 where the name is NULL. */
uint32_t xr_hub_size(const struct xr_hub *hub, uint32_t job);
/* Running ranks of all jobs by host: "ranks host", sorted by host. NULL without memory. Caller frees. */
char **xr_hub_busy(const struct xr_hub *hub);

#endif
