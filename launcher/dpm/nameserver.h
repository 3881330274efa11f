/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nameserver.h: what processes publish, so that others find it by a name.
 *
 * Kept by the first xrun for all its jobs. Who looks a name up can wait until
 * it is there. Jobs are numbered as in hub.h.
 */
#ifndef XR_LAUNCHER_DPM_NAMESERVER_H
#define XR_LAUNCHER_DPM_NAMESERVER_H

#include "launcher/util/pack.h"
#include "launcher/dpm/rpc.h"

#include <event2/event.h>

struct xr_names;

struct xr_names_who {
    uint32_t job, rank, app;
    const char *id;   /* of the job */
    const char *host; /* its name; must stay while it waits */
};

/* The answer to a look-up: a status, and what XR_ERRAND_LOOKUP lists after it. The packer is the callee's. */
typedef void (*xr_names_answer_fn)(void *arg, const struct xr_asker *asker, enum xr_errand_status status,
                                   struct xr_packer *found);

rank_status_t xr_names_open(struct event_base *base, xr_names_answer_fn answer, void *arg,
                            struct xr_names **out);
/* NULL is fine. Who waits gets no answer. */
void xr_names_close(struct xr_names *names);

/* Each takes what follows in the errand's payload. A key that is there for the same range already is an error, and then
 * nothing is published. */
enum xr_errand_status xr_names_publish(struct xr_names *names, const struct xr_names_who *who,
                                       struct xr_unpacker *u);
enum xr_errand_status xr_names_unpublish(struct xr_names *names, const struct xr_names_who *who,
                                         struct xr_unpacker *u);
/* Answered at once or later. */
void xr_names_look_up(struct xr_names *names, const struct xr_names_who *who, struct xr_unpacker *u,
                      const struct xr_asker *asker);

/* A process has ended: nobody waits for it any more, and its names go as they were meant to; all of them if it has
 * failed. */
void xr_names_ended(struct xr_names *names, uint32_t job, uint32_t rank, bool failed);
/* All of a program of a job has ended; XR_ALL_RANKS: of the job. */
void xr_names_app_ended(struct xr_names *names, uint32_t job, uint32_t app);

#endif
