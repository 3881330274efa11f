/*
 * nameserver.h: what processes publish, so that others find it by a name.
 *
 * Kept by the first xrun for all its jobs. Who looks a name up can wait until
 * it is there. Jobs are numbered as in hub.h.
 */
#ifndef RK_LAUNCHER_DPM_NAMESERVER_H
#define RK_LAUNCHER_DPM_NAMESERVER_H

#include "launcher/util/pack.h"
#include "launcher/dpm/rpc.h"

#include <event2/event.h>

struct rk_names;

struct rk_names_who {
    uint32_t job, rank, app;
    const char *id;   /* of the job */
    const char *host; /* its name; must stay while it waits */
};

/* The answer to a look-up: a status, and what RK_ERRAND_LOOKUP lists after it. The packer is the callee's. */
typedef void (*rk_names_answer_fn)(void *arg, const struct rk_asker *asker, enum rk_errand_status status,
                                   struct rk_packer *found);

rank_status_t rk_names_open(struct event_base *base, rk_names_answer_fn answer, void *arg,
                            struct rk_names **out);
/* NULL is fine. Who waits gets no answer. */
void rk_names_close(struct rk_names *names);

/* Each takes what follows in the errand's payload. A key that is there for the same range already is an error, and then
 * nothing is published. */
enum rk_errand_status rk_names_publish(struct rk_names *names, const struct rk_names_who *who,
                                       struct rk_unpacker *u);
enum rk_errand_status rk_names_unpublish(struct rk_names *names, const struct rk_names_who *who,
                                         struct rk_unpacker *u);
/* Answered at once or later. */
void rk_names_look_up(struct rk_names *names, const struct rk_names_who *who, struct rk_unpacker *u,
                      const struct rk_asker *asker);

/* A process has ended: nobody waits for it any more, and its names go as they were meant to; all of them if it has
 * failed. */
void rk_names_ended(struct rk_names *names, uint32_t job, uint32_t rank, bool failed);
/* All of a program of a job has ended; RK_ALL_RANKS: of the job. */
void rk_names_app_ended(struct rk_names *names, uint32_t job, uint32_t app);

#endif
