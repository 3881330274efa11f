/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpc.h: send an agent's requests to the first xrun: names, connect, spawn.
 *
 * The agent numbers a request and sends it to its front end, which passes it on to
 * the hub in the first xrun (hub.h). Each request is answered once.
 */
#ifndef XR_LAUNCHER_DPM_RPC_H
#define XR_LAUNCHER_DPM_RPC_H

#include "launcher/overlay/tree.h"

/* In place of a rank: all ranks of the job. */
#define XR_ALL_RANKS UINT32_MAX

enum xr_rpc {
    /* u32 range, u32 keep, u32 n, then for each: string key, bytes value. Answered by u32 status. */
    XR_RPC_PUBLISH = 1,
    /* u32 range, u32 number of keys to wait for (XR_LOOKUP_NOW, XR_LOOKUP_ALL), u32 ms (0: for ever), strings.
     * Answered by u32 status, u32 n, then for each: string key, string job, u32 rank, bytes value. */
    XR_RPC_LOOKUP,
    /* u32 range (XR_RANGE_ANY: each), strings: keys; none: all that the process has published. Answered by u32 status. */
    XR_RPC_UNPUBLISH,
    /* Group operations. u32 1 if a participant is lost, u32 participants of this host, u32 ms (0: for ever), u32 n, then
     * for each: string job, u32 rank; bytes data. Answered by u32 status, bytes data of all, u32 n, then for each
     * other job: u32 0 or 1, its job info (job_info.h) if the agent does not have it. */
    XR_RPC_FENCE,
    XR_RPC_CONNECT,
    XR_RPC_DISCONNECT,
    /* string job, u32 rank, u32 time-out in s or 0. Answered by u32 status, bytes data, u32 0 or 1, the job info if the
     * agent does not have it. */
    XR_RPC_MODEX,
    /* A request (spawn_request.h). Answered by u32 status, bytes, u32 0 or 1, the job info of the new job. */
    XR_RPC_SPAWN
};

#define XR_LOOKUP_NOW UINT32_MAX
#define XR_LOOKUP_ALL 0

enum xr_rpc_status {
    XR_DONE,
    XR_DONE_PARTLY,  /* some of the names */
    XR_NOT_FOUND,
    XR_TOO_LATE,     /* time-out */
    XR_EXISTS_ALREADY, /* the name exists */
    XR_NO_ROOM,
    XR_PARTICIPANT_LOST, /* a participant has ended */
    XR_NO_PROGRAM,
    XR_CANNOT_START,
    XR_REFUSED       /* malformed, or not supported */
};

/* The processes that can find a name. */
enum xr_range { XR_RANGE_ALL, XR_RANGE_JOB, XR_RANGE_HOST, XR_RANGE_PROCESS, XR_RANGE_ANY };
/* How long a name is kept. */
enum xr_keep { XR_KEEP_ALWAYS, XR_KEEP_APP, XR_KEEP_PROCESS, XR_KEEP_ONE_READ };

/* The first byte of a value: what the rest is. */
enum { XR_VALUE_TEXT = 't', XR_VALUE_PMIX = 'p' };

#define XR_NO_JOB UINT32_MAX
/* In XR_DOWN_DIED: drop the job info of an ended job, without an event for clients. */
#define XR_ONLY_FORGET 2

/* The origin of a request: an agent, and its id there. Jobs are numbered as in hub.h. */
struct xr_rpc_origin {
    uint32_t job, node, id;
};

struct xr_rpc_table;

/* Called with the answer, or with NULL if there will be none. */
typedef void (*xr_rpc_done_fn)(void *arg, void *token, struct xr_unpacker *answer);

rank_status_t xr_rpc_table_open(struct xr_tree *tree, uint32_t self, struct xr_rpc_table **out);
/* rank: the requester, or XR_ALL_RANKS. Empties the packer. done may be called before this returns. */
void xr_rpc_table_send(struct xr_rpc_table *rpcs, enum xr_rpc what, uint32_t rank,
                     struct xr_packer *payload, xr_rpc_done_fn done, void *arg, void *token);
/* Handle XR_MSG_RPC_DONE. Returns false if it is malformed. */
bool xr_rpc_table_take(struct xr_rpc_table *rpcs, struct xr_unpacker *u);

#endif
