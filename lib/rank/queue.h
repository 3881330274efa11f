/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.h: declare queues of device streams. Part of rank.h. */
#ifndef RANK_QUEUE_H
#define RANK_QUEUE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- rank_queue: operations in the order of a stream */

typedef struct rank_queue *rank_queue_t; /* starts operations in the order of a stream */
#define RANK_QUEUE_NULL ((rank_queue_t)0)

typedef struct rank_queue_opts {
    size_t size;     /* set by RANK_QUEUE_OPTS_INIT; fields beyond it have their defaults */
    int32_t depth;   /* starts that may be outstanding, at most 65,536; 0: 256 */
    int32_t threads; /* 0 */
    void *stream;    /* a CUstream or cudaStream_t */
} rank_queue_opts_t;
#define RANK_QUEUE_OPTS_INIT {sizeof(rank_queue_opts_t), 0, 0, 0}

/*
 * Create a queue for a CUDA stream of the program. Local. team is RANK_TEAM_NULL. The stream is none of the default
 * streams, belongs to the primary context of its device, and exists until rank_queue_free. Its priority is not the
 * greatest one. Several queues may have one stream.
 *
 * A thread of the library runs the operations. rank_finalize closes queues that are left: their streams go on.
 * RANK_ERR_NOT_SUPPORTED: team is not RANK_TEAM_NULL, threads is not 0, or the stream is NULL, a default one, capturing, or of
 *   another context. Or this process uses no CUDA (RANK_CUDA), or driver or device have no 64-bit memory operations for
 *   streams.
 * RANK_ERR_ARG: stream is no stream of CUDA.
 * RANK_ERR_STATE: the thread level is not RANK_THREAD_MULTIPLE, and RANK_PROGRESS_THREAD is not set.
 * RANK_ERR_COUNT: depth is out of range.
 */
RANK_API rank_status_t rank_queue_create(rank_team_t team, const rank_queue_opts_t *opts, rank_queue_t *queue);

/*
 * Wait until all starts of the queue have ended, free it, and set *queue to RANK_QUEUE_NULL. The stream must reach the
 * starts without this thread. Returns the status of the first start that failed, also if a wait has returned it.
 */
RANK_API rank_status_t rank_queue_free(rank_queue_t *queue);

/*
 * Start a persistent operation in the order of the queue's stream: after what was put into the stream before this call, and
 * before what is put there later. Returns at once. The operation may be of any kind that rank_start takes, with
 * buffers in host or device memory.
 *
 * The request may be started again before the host has waited for it, also on another queue. Each start begins when
 * the earlier one has ended. A test or wait call completes all of them. Its status is that of the first that failed,
 * its envelope that of the last. rank_cancel does not affect them.
 *
 * A start that fails does not stop the stream. With several queues, give each one a team.
 *
 * While a start is outstanding, calls do not wait for work of the program's default streams: complete what that writes before
 * a call uses it. Do not allocate or free device memory by the library then, nor free a team that has reduced such memory.
 * RANK_ERR_AGAIN: depth starts are outstanding. Nothing is started.
 * RANK_ERR_STATE: rank_start has started the request, the request has a callback, or the call is in a callback.
 * RANK_ERR_NOT_SUPPORTED: the stream is capturing.
 * RANK_ERR_DEVICE: the stream has failed.
 */
RANK_API rank_status_t rank_start_on(rank_request_t *req, rank_queue_t queue);

#ifdef __cplusplus
}
#endif

#endif
