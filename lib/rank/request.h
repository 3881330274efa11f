/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h: declare requests, envelopes, progress. Part of rank.h. */
#ifndef RANK_REQUEST_H
#define RANK_REQUEST_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ rank_request: complete nonblocking operations */

/* The result of a receive or a probe. It has 64 bytes in every version, so that arrays of it work. The library writes all
 * of it. The reserved fields are 0. */
typedef struct rank_envelope {
    int32_t source;       /* rank in the team */
    rank_status_t status; /* result of this operation */
    int64_t tag;
    int64_t count;        /* whole elements received; a probe: bytes waiting */
    int64_t bytes;        /* bytes received; a probe: bytes waiting */
    int64_t sent_bytes;   /* bytes that the sender sent; larger than bytes if truncated */
    int64_t reserved[3];
} rank_envelope_t;

/*
 * A test or wait call returns the status of the operation. It frees a complete request and sets it to RANK_REQUEST_NULL.
 * A persistent request stays, and can be started again. A null request, and a persistent request that is not
 * started, are complete. Envelopes may be NULL.
 */

/* Test one request, or wait for it. *done is 1 if it is complete, else 0. */
RANK_API rank_status_t rank_test(rank_request_t *req, int *done, rank_envelope_t *envelope);
RANK_API rank_status_t rank_wait(rank_request_t *req, rank_envelope_t *envelope);

/* Wait for all requests.
 * Returns the first error in array order. */
RANK_API rank_status_t rank_waitall(int64_t n, rank_request_t *reqs, rank_envelope_t *envelopes);

/* Wait for one request. *index is its place, or RANK_UNDEFINED if all are null. */
RANK_API rank_status_t rank_waitany(int64_t n, rank_request_t *reqs, int64_t *index,
                                    rank_envelope_t *envelope);

/* Test all requests. If all are complete, *done is 1 and they end as in rank_waitall. Otherwise none ends. */
RANK_API rank_status_t rank_testall(int64_t n, rank_request_t *reqs, int *done,
                                    rank_envelope_t *envelopes);

/* Test for one complete request. If there is one, or all are null, *done is 1 and it ends as in rank_waitany. Else
 * *index is RANK_UNDEFINED. */
RANK_API rank_status_t rank_testany(int64_t n, rank_request_t *reqs, int64_t *index, int *done,
                                    rank_envelope_t *envelope);

/* Wait for one request, and end all that are complete then. Allocates no memory. *ndone is their number, or
 * RANK_UNDEFINED if all are null. indices has room for n places.
 * Returns the first error in array order. */
RANK_API rank_status_t rank_waitsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                                     rank_envelope_t *envelopes);

/*
 * As rank_wait, rank_waitall and rank_waitsome, for timeout_ns at most.
 * RANK_ERR_TIMED_OUT: not complete by then. No request has ended, and all go on. Of rank_waitsome_timed: none is complete,
 *   and *ndone is 0.
 */
RANK_API rank_status_t rank_wait_timed(rank_request_t *req, int64_t timeout_ns, rank_envelope_t *envelope);
RANK_API rank_status_t rank_waitall_timed(int64_t n, rank_request_t *reqs, int64_t timeout_ns,
                                          rank_envelope_t *envelopes);
RANK_API rank_status_t rank_waitsome_timed(int64_t n, rank_request_t *reqs, int64_t timeout_ns, int64_t *ndone,
                                           int64_t *indices, rank_envelope_t *envelopes);

/*
 * For bindings, which wait in slices: 1 begins a wait of this thread, of which the timed waits that follow are slices, and 0
 * ends it. xrun's reports of hangs then show the wait with its whole time.
 */
RANK_API void rank_wait_slices(int on);

/* As rank_waitsome, without waiting. *ndone may be 0. */
RANK_API rank_status_t rank_testsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                                     rank_envelope_t *envelopes);

/*
 * Cancel an operation that has not begun: a receive without a match, or a send that is still queued here. It
 * completes with RANK_ERR_CANCELED. A test or wait call is still needed. Any other operation ends as without the
 * call. Local: it makes no progress.
 * RANK_ERR_NOT_SUPPORTED: the request is a collective.
 */
RANK_API rank_status_t rank_cancel(rank_request_t *req);

/*
 * Call fn exactly once, when the request is complete. *req becomes RANK_REQUEST_NULL. A persistent request stays
 * with the caller, and can be started again in fn. If the request is already complete, fn may run before
 * rank_on_done returns. Otherwise a call that makes progress runs fn.
 *
 * Callbacks run one at a time, never nested, in the order of completion. fn may start operations, give them callbacks,
 * test, and make progress. fn must not finalize; a wait for an incomplete request is RANK_ERR_STATE there. A request
 * that is not complete when rank_finalize returns gets no call.
 */
typedef void (*rank_done_fn)(const rank_envelope_t *envelope, void *arg);
RANK_API rank_status_t rank_on_done(rank_request_t *req, rank_done_fn fn, void *arg);

/* Release a request and set *req to RANK_REQUEST_NULL. A pending operation continues, without notice of its
 * completion. Its buffer belongs to the library until then.
 * RANK_ERR_NOT_SUPPORTED: the request is a pending collective. */
RANK_API rank_status_t rank_request_free(rank_request_t *req);

/* --------------------------------------------------------- rank_progress: make progress and wait in an event loop */

/* Make progress on all operations, without waiting. */
RANK_API rank_status_t rank_progress(void);

/*
 * Get a descriptor for an event loop, as of epoll. The library owns it; the caller must not read it. Call
 * rank_progress_arm before each wait on it, and again after any other call of the library. RANK_OK means that no
 * work is left, and that the descriptor becomes readable when there is some: then call rank_progress. It may be
 * readable without work, and when another thread makes progress. Only the thread that armed the descriptor last may
 * use it.
 * RANK_ERR_AGAIN: there was work. Test the requests and arm again.
 * RANK_ERR_STATE: rank_progress_arm was called before rank_progress_fd.
 * RANK_ERR_SYSTEM: no file descriptor is available.
 */
RANK_API rank_status_t rank_progress_fd(int *fd);
RANK_API rank_status_t rank_progress_arm(void);

#ifdef __cplusplus
}
#endif

#endif
