/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nameserver.h: publish values under names, and look them up.
 *
 * Runs in the first xrun for all its jobs. A lookup can wait until a name is
 * published. Jobs are numbered as in hub.h.
 *
 * A name has a key and a range: all, a job, a host or a process. In one range of one
 * key there is at most one name that a process can see.
 */
#ifndef XR_LAUNCHER_DPM_NAMESERVER_H
#define XR_LAUNCHER_DPM_NAMESERVER_H

#include "launcher/util/pack.h"
#include "launcher/dpm/rpc.h"

#include <event2/event.h>

struct xr_nameserver;

struct xr_process {
    uint32_t job, rank, app;
    const char *id;   /* of the job */
    const char *host; /* its name; valid while a lookup waits */
};

/* The answer to a lookup: a status, and what XR_RPC_LOOKUP lists after it. The callee frees the packer. */
typedef void (*xr_nameserver_answer_fn)(void *arg, const struct xr_rpc_origin *asker, enum xr_rpc_status status,
                                   struct xr_packer *found);

rank_status_t xr_nameserver_open(struct event_base *base, xr_nameserver_answer_fn answer, void *arg,
                            struct xr_nameserver **out);
/* No-op if NULL. Waiting lookups get no answer. */
void xr_nameserver_close(struct xr_nameserver *names);

/* Each unpacks the rest of the request. A key that exists in the same range is an error; then nothing is published. */
enum xr_rpc_status xr_nameserver_publish(struct xr_nameserver *names, const struct xr_process *process,
                                       struct xr_unpacker *u);
enum xr_rpc_status xr_nameserver_unpublish(struct xr_nameserver *names, const struct xr_process *process,
                                         struct xr_unpacker *u);
/* The answer comes before this returns, or later. */
void xr_nameserver_lookup(struct xr_nameserver *names, const struct xr_process *process, struct xr_unpacker *u,
                      const struct xr_rpc_origin *asker);

/* A process has ended: its waiting lookups are answered XR_PARTICIPANT_LOST, and its names with XR_KEEP_PROCESS are dropped, or
 * all of them if it has failed. */
void xr_nameserver_ended(struct xr_nameserver *names, uint32_t job, uint32_t rank, bool failed);
/* All ranks of a program of a job have ended, or with XR_ALL_RANKS of the job: drop names but XR_KEEP_ALWAYS. */
void xr_nameserver_app_ended(struct xr_nameserver *names, uint32_t job, uint32_t app);

#endif
