/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_op.h: what processes of several jobs do together: fence, connect, disconnect.
 *
 * Kept by the first xrun. Each agent comes once, when all its own processes that
 * take part have come to it, and says how many they are; with the last all are
 * answered. One process that has ended is the end of it for all, and so is the
 * time-out of one that has come; who comes after a time-out begins anew.
 */
#ifndef XR_LAUNCHER_DPM_GROUP_OP_H
#define XR_LAUNCHER_DPM_GROUP_OP_H

#include "launcher/util/pack.h"
#include "launcher/dpm/rpc.h"

#include <event2/event.h>

struct xr_group_ops;

/* BROKEN: its client is gone, but another may follow. */
enum xr_presence { XR_PRESENT, XR_BROKEN, XR_ENDED };

struct xr_group_ops_upcalls {
    /* The number of a job, or XR_NO_JOB. */
    uint32_t (*job)(void *arg, const char *id);
    /* Was there such a job? */
    bool (*past)(void *arg, const char *id);
    uint32_t (*size)(void *arg, uint32_t job);
    /* Of a rank; XR_ALL_RANKS: of that of the job's of which least is left. */
    enum xr_presence (*presence)(void *arg, uint32_t job, uint32_t rank);
    /* All of the jobs have come. */
    void (*together)(void *arg, enum xr_errand what, const uint32_t *jobs, uint32_t njobs);
    void (*answer)(void *arg, const struct xr_asker *who, enum xr_errand_status status,
                   const void *data, size_t len, const uint32_t *jobs, uint32_t njobs);
};

rank_status_t xr_group_ops_open(struct event_base *base, const struct xr_group_ops_upcalls *ops, void *arg, struct xr_group_ops **out);
/* NULL is fine. Nobody is answered. */
void xr_group_ops_close(struct xr_group_ops *group_ops);

/* An agent comes; u is the errand's payload. */
void xr_group_ops_join(struct xr_group_ops *group_ops, enum xr_errand what, const struct xr_asker *who,
                     struct xr_unpacker *u);
/* A rank (XR_ALL_RANKS: all of the job) has ended, or is broken. */
void xr_group_ops_rank_ended(struct xr_group_ops *group_ops, uint32_t job, uint32_t rank);
void xr_group_ops_client_lost(struct xr_group_ops *group_ops, uint32_t job, uint32_t rank);

#endif
