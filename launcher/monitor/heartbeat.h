/*
 * heartbeat.h: the front end's part in signs of life: it prints who stalls and who
 * goes on, prints stack traces, and answers xrun --status from what the agents
 * see.
 */
#ifndef RK_LAUNCHER_MONITOR_HEARTBEAT_H
#define RK_LAUNCHER_MONITOR_HEARTBEAT_H

#include "launcher/overlay/fence.h"
#include "launcher/job/job.h"
#include "launcher/cli/options.h"
#include "launcher/iof/out_stream.h"

#include <event2/event.h>

struct rk_life;

struct rk_life_ops {
    /* Send to every agent; returns how many there are. The packer is emptied. */
    int (*send)(void *arg, uint32_t kind, struct rk_packer *payload);
    /* No rank makes progress, and the user wants the job to end then; or one does again. */
    void (*still)(void *arg, bool still);
    /* The front end's own; NULL: there are none. */
    const struct rk_fences *(*fences)(void *arg);
};

rank_status_t rk_life_open(struct event_base *base, const struct rk_options *options,
                           const struct rk_job *job, struct rk_stream *err,
                           const struct rk_life_ops *ops, void *arg, struct rk_life **out);
/* All ranks have ended: nobody asks any more. Removing a socket and its directory takes a millisecond on some file
 * systems, while agents end. NULL is fine. */
void rk_life_shut(struct rk_life *life);
/* NULL is fine. */
void rk_life_close(struct rk_life *life);

/* The ranks have been started. */
void rk_life_started(struct rk_life *life);
void rk_life_exited(struct rk_life *life, uint32_t rank);
/* Another job has ended, which ranks that stand still may have waited for. NULL is fine. */
void rk_life_again(struct rk_life *life);
/* A message of an agent: *mine says whether it was one for this file; false: it makes no sense. */
bool rk_life_message(struct rk_life *life, uint32_t kind, struct rk_unpacker *u, bool *mine);
/* Print stack traces of all ranks, then call done; in bounded time, whatever happens. */
void rk_life_trace(struct rk_life *life, void (*done)(void *arg), void *arg);

#endif
