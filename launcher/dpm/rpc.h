/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpc.h: what an agent cannot answer alone, and asks the front end of the
 * first xrun: names that are published, what processes of several jobs do
 * together, and jobs that are to be started.
 *
 * The agent gives an errand a number and sends it up; the front end answers it
 * itself or passes it on to the first xrun (hub.h). Each is answered once.
 */
#ifndef XR_LAUNCHER_DPM_RPC_H
#define XR_LAUNCHER_DPM_RPC_H

#include "launcher/overlay/tree.h"

/* A process in a request: of which job, and which rank, or all. */
#define XR_ALL_RANKS UINT32_MAX

enum xr_errand {
    /* u32 range, u32 keep, u32 n, then for each: string key, bytes value. Answered by u32 status. */
    XR_ERRAND_PUBLISH = 1,
    /* u32 range, u32 how many are waited for (XR_LOOKUP_NOW, XR_LOOKUP_ALL), u32 ms (0: for ever), strings.
     * Answered by u32 status, u32 n, then for each: string key, string job, u32 rank, bytes value. */
    XR_ERRAND_LOOKUP,
    /* u32 range (XR_RANGE_ANY: whichever), strings: keys; none: all that the asker has published. Answered by u32 status. */
    XR_ERRAND_UNPUBLISH,
    /* What many do together. u32 whether one is lost, u32 how many of them are of this host, u32 ms (0: for ever), u32 n,
     * then for each: string job, u32 rank; bytes data. Answered by u32 status, bytes data of all, u32 n, then for each
     * other job: u32 0 or 1, its outline (job_info.h) if the agent has not been told it. */
    XR_ERRAND_FENCE,
    XR_ERRAND_CONNECT,
    XR_ERRAND_DISCONNECT,
    /* string job, u32 rank, u32 time-out in s or 0. Answered by u32 status, bytes data, u32 0 or 1, the outline of the
     * job if the agent has not been told it. */
    XR_ERRAND_MODEX,
    /* A request (spawn_request.h). Answered by u32 status, bytes, u32 0 or 1, the outline of the new job. */
    XR_ERRAND_SPAWN
};

#define XR_LOOKUP_NOW UINT32_MAX
#define XR_LOOKUP_ALL 0

enum xr_errand_status {
    XR_DONE,
    XR_DONE_PARTLY,  /* some of the names */
    XR_NOT_FOUND,
    XR_TOO_LATE,     /* the time is over */
    XR_THERE_ALREADY, /* the name */
    XR_NO_ROOM,
    XR_SOMEBODY_LOST, /* one that takes part has ended */
    XR_NO_PROGRAM,
    XR_CANNOT_START,
    XR_REFUSED       /* not understood, or not possible */
};

/* Who can find what is published. */
enum xr_range { XR_RANGE_ALL, XR_RANGE_JOB, XR_RANGE_HOST, XR_RANGE_PROCESS, XR_RANGE_ANY };
/* And for how long. */
enum xr_keep { XR_KEEP_ALWAYS, XR_KEEP_APP, XR_KEEP_PROCESS, XR_KEEP_ONE_READ };

/* The first byte of a value: what the rest is. */
enum { XR_VALUE_TEXT = 't', XR_VALUE_PMIX = 'p' };

#define XR_NO_JOB UINT32_MAX
/* Of a job that is over, to those who know it but have nothing to do with it any more: no news for their clients. */
#define XR_ONLY_FORGET 2

/* To the first xrun: an agent's errand. Jobs are numbered as in hub.h. */
struct xr_asker {
    uint32_t job, node, id;
};

struct xr_errands;

/* The answer; NULL: there will be none. */
typedef void (*xr_errand_done_fn)(void *arg, void *token, struct xr_unpacker *answer);

rank_status_t xr_errands_open(struct xr_tree *tree, uint32_t self, struct xr_errands **out);
/* NULL is fine. */
void xr_errands_close(struct xr_errands *errands);
/* rank: who asks, or XR_ALL_RANKS. The packer is emptied. done may be called before this returns. */
void xr_errands_send(struct xr_errands *errands, enum xr_errand what, uint32_t rank,
                     struct xr_packer *payload, xr_errand_done_fn done, void *arg, void *token);
/* XR_MSG_ERRAND_DONE. False: it makes no sense. */
bool xr_errands_take(struct xr_errands *errands, struct xr_unpacker *u);

#endif
