/*
 * hub.h: the first xrun, for all jobs that hang from it.
 *
 * A spawned job is an xrun of its own. Each front end, the first one's too,
 * says words upwards (RK_UP_) to the hub, which says words downwards (RK_DOWN_)
 * to it: the jobs are a star. The hub answers errands, knows which processes
 * have ended and which jobs are connected, and carries questions about one job
 * to another. What it knows of a job goes with the job's end.
 */
#ifndef RK_LAUNCHER_DPM_HUB_H
#define RK_LAUNCHER_DPM_HUB_H

#include "launcher/dpm/rpc.h"
#include "launcher/dpm/group_op.h"
#include "launcher/job/job.h"

#include <event2/event.h>

enum rk_word {
    RK_UP_OUTLINE = 1, /* job_info.h */
    RK_UP_STARTED,     /* nothing: all ranks run, of hosts that are not lost; once */
    RK_UP_ERRAND,      /* as RK_MSG_ERRAND */
    RK_UP_ENDED,       /* u32 rank, u32 it has failed, u32 by a signal */
    RK_UP_MODEX,       /* u32 id, u32 enum rk_found, bytes */
    RK_UP_FAILING,     /* u32 exit code: it has been told to end */
    RK_UP_BROKEN,      /* as RK_MSG_CLIENT_LOST */
    RK_UP_STILL,       /* u32 no rank of it makes progress, and it is to end when that holds for all jobs */
    RK_UP_NOTICE,      /* event.h: for other jobs, too */

    RK_DOWN_HELLO = 32, /* spawn_request.h: the first, to a spawned job */
    RK_DOWN_ANSWER,     /* u32 node, u32 its number for the errand, then the answer */
    RK_DOWN_MODEX,      /* u32 id, u32 rank, u32 time-out in s or 0 */
    RK_DOWN_DIED,       /* string job, u32 rank (RK_ALL_RANKS: the job is over), u32 by a signal, or RK_ONLY_FORGET */
    RK_DOWN_END,        /* u32 exit code of what failed, u32 ms between the signal and KILL, u32 signal */
    RK_DOWN_SIGNAL,     /* u32 signal for every rank */
    RK_DOWN_AGAIN,      /* nothing: a job has ended; say once more if no rank makes progress */
    RK_DOWN_HOPELESS,   /* nothing: no rank of any job makes progress */
    RK_DOWN_NOTICE      /* string job, then as RK_UP_NOTICE: one of its ranks has raised an event */
};

struct rk_hub;

struct rk_hub_ops {
    /* To the front end of a job; the packer is emptied. */
    void (*send)(void *arg, uint32_t job, enum rk_word word, struct rk_packer *payload);
    /* Start a job, which has this number, for a rank of another. False: it cannot be; nothing was said. */
    bool (*start)(void *arg, uint32_t job, const char *parent, uint32_t rank, struct rk_unpacker *request,
                  struct rk_packer *outline);
};

/* The first job is number 0; no other fails because of it if go_on. */
rank_status_t rk_hub_open(struct event_base *base, bool go_on, const struct rk_hub_ops *ops, void *arg,
                          struct rk_hub **out);
/* NULL is fine. */
void rk_hub_close(struct rk_hub *hub);

/* A job's front end says something. False: it makes no sense. */
bool rk_hub_take(struct rk_hub *hub, uint32_t job, enum rk_word word, struct rk_unpacker *u);
/* A job is over, with that exit code: all of it has ended. Jobs that are connected with a failed one are told to
 * end, and it is forgotten. False: it had never started. */
bool rk_hub_gone(struct rk_hub *hub, uint32_t job, int code);
/* End what is connected with a job (all: everything else). */
void rk_hub_end_others(struct rk_hub *hub, uint32_t job, bool all, int code, uint32_t ms, int sig);
/* How many jobs it knows of. */
uint32_t rk_hub_jobs(const struct rk_hub *hub);
/* The name of a job, or NULL if it is not known yet, or no more. */
const char *rk_hub_name(const struct rk_hub *hub, uint32_t job);
/* Its ranks; 0: that is not known yet, or no more. */
uint32_t rk_hub_size(const struct rk_hub *hub, uint32_t job);
/* Where ranks of all jobs run now, as words: "ranks host", in the order of the hosts' names. NULL: no memory. */
char **rk_hub_busy(const struct rk_hub *hub);

#endif
