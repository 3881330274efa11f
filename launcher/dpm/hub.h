/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub.h: the first xrun, for all jobs that hang from it.
 *
 * A spawned job is an xrun of its own. Each front end, the first one's too,
 * says words upwards (XR_UP_) to the hub, which says words downwards (XR_DOWN_)
 * to it: the jobs are a star. The hub answers errands, knows which processes
 * have ended and which jobs are connected, and carries modexes about one job
 * to another. What it knows of a job goes with the job's end.
 */
#ifndef XR_LAUNCHER_DPM_HUB_H
#define XR_LAUNCHER_DPM_HUB_H

#include "launcher/dpm/rpc.h"
#include "launcher/dpm/group_op.h"
#include "launcher/job/job.h"

#include <event2/event.h>

enum xr_word {
    XR_UP_OUTLINE = 1, /* job_info.h */
    XR_UP_STARTED,     /* nothing: all ranks run, of hosts that are not lost; once */
    XR_UP_ERRAND,      /* as XR_MSG_ERRAND */
    XR_UP_ENDED,       /* u32 rank, u32 it has failed, u32 by a signal */
    XR_UP_MODEX,       /* u32 id, u32 enum xr_found, bytes */
    XR_UP_FAILING,     /* u32 exit code: it has been told to end */
    XR_UP_BROKEN,      /* as XR_MSG_CLIENT_LOST */
    XR_UP_STILL,       /* u32 no rank of it makes progress, and it is to end when that holds for all jobs */
    XR_UP_NOTICE,      /* event.h: for other jobs, too */

    XR_DOWN_HELLO = 32, /* spawn_request.h: the first, to a spawned job */
    XR_DOWN_ANSWER,     /* u32 node, u32 its number for the errand, then the answer */
    XR_DOWN_MODEX,      /* u32 id, u32 rank, u32 time-out in s or 0 */
    XR_DOWN_DIED,       /* string job, u32 rank (XR_ALL_RANKS: the job is over), u32 by a signal, or XR_ONLY_FORGET */
    XR_DOWN_END,        /* u32 exit code of what failed, u32 ms between the signal and KILL, u32 signal */
    XR_DOWN_SIGNAL,     /* u32 signal for every rank */
    XR_DOWN_AGAIN,      /* nothing: a job has ended; say once more if no rank makes progress */
    XR_DOWN_HOPELESS,   /* nothing: no rank of any job makes progress */
    XR_DOWN_NOTICE      /* string job, then as XR_UP_NOTICE: one of its ranks has raised an event */
};

struct xr_hub;

struct xr_hub_ops {
    /* To the front end of a job; the packer is emptied. */
    void (*send)(void *arg, uint32_t job, enum xr_word word, struct xr_packer *payload);
    /* Start a job, which has this number, for a rank of another. False: it cannot be; nothing was said. */
    bool (*start)(void *arg, uint32_t job, const char *parent, uint32_t rank, struct xr_unpacker *request,
                  struct xr_packer *outline);
};

/* The first job is number 0; no other fails because of it if go_on. */
rank_status_t xr_hub_open(struct event_base *base, bool go_on, const struct xr_hub_ops *ops, void *arg,
                          struct xr_hub **out);
/* NULL is fine. */
void xr_hub_close(struct xr_hub *hub);

/* A job's front end says something. False: it makes no sense. */
bool xr_hub_take(struct xr_hub *hub, uint32_t job, enum xr_word word, struct xr_unpacker *u);
/* A job is over, with that exit code: all of it has ended. Jobs that are connected with a failed one are told to
 * end, and it is forgotten. False: it had never started. */
bool xr_hub_gone(struct xr_hub *hub, uint32_t job, int code);
/* End what is connected with a job (all: everything else). */
void xr_hub_end_others(struct xr_hub *hub, uint32_t job, bool all, int code, uint32_t ms, int sig);
/* How many jobs it knows of. */
uint32_t xr_hub_jobs(const struct xr_hub *hub);
/* The name of a job, or NULL if it is not known yet, or no more. */
const char *xr_hub_name(const struct xr_hub *hub, uint32_t job);
/* Its ranks; 0: that is not known yet, or no more. */
uint32_t xr_hub_size(const struct xr_hub *hub, uint32_t job);
/* Where ranks of all jobs run now, as words: "ranks host", in the order of the hosts' names. NULL: no memory. */
char **xr_hub_busy(const struct xr_hub *hub);

#endif
