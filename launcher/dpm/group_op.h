/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_op.h: complete fence, connect and disconnect of processes of several jobs.
 *
 * Runs in the first xrun. An agent joins once, when all its participants have
 * called, and states how many they are. When all participants are in, all
 * agents are answered.
 *
 * The operation fails for all when a participant has ended, or when the time-out
 * of an agent that has joined is over. An agent that joins later begins a new one.
 */
#ifndef XR_LAUNCHER_DPM_GROUP_OP_H
#define XR_LAUNCHER_DPM_GROUP_OP_H

#include "launcher/util/pack.h"
#include "launcher/dpm/rpc.h"

#include <event2/event.h>

struct xr_group_ops;

/* XR_BROKEN: the client is lost, but the rank may start another. */
enum xr_presence { XR_PRESENT, XR_BROKEN, XR_ENDED };

struct xr_group_ops_upcalls {
    /* Return the number of a job, or XR_NO_JOB. */
    uint32_t (*job)(void *arg, const char *id);
    /* Is it the name of a job that has ended? */
    bool (*past)(void *arg, const char *id);
    uint32_t (*size)(void *arg, uint32_t job);
    /* Return the state of a rank, or with XR_ALL_RANKS the worst of the job. */
    enum xr_presence (*presence)(void *arg, uint32_t job, uint32_t rank);
    /* The operation has succeeded; called before the answers. */
    void (*completed)(void *arg, enum xr_rpc what, const uint32_t *jobs, uint32_t njobs);
    void (*answer)(void *arg, const struct xr_rpc_origin *from, enum xr_rpc_status status,
                   const void *data, size_t len, const uint32_t *jobs, uint32_t njobs);
};

rank_status_t xr_group_ops_open(struct event_base *base, const struct xr_group_ops_upcalls *ops, void *arg,
                                struct xr_group_ops **out);
/* No-op if NULL. Agents get no answer. */
void xr_group_ops_close(struct xr_group_ops *group_ops);

/* An agent joins; u is the payload of its request. */
void xr_group_ops_join(struct xr_group_ops *group_ops, enum xr_rpc what, const struct xr_rpc_origin *from,
                       struct xr_unpacker *u);
/* A rank, or with XR_ALL_RANKS the job, has ended, or a client is lost. */
void xr_group_ops_rank_ended(struct xr_group_ops *group_ops, uint32_t job, uint32_t rank);
void xr_group_ops_client_lost(struct xr_group_ops *group_ops, uint32_t job, uint32_t rank);

#endif
