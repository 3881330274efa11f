/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_out.h: let xrun's own agent write to the user's standard output.
 *
 * Used if all ranks are on that host and their lines have no label. The detour
 * over the front end costs two more copies and a wake-up for each piece.
 */
#ifndef XR_LAUNCHER_IOF_DIRECT_OUT_H
#define XR_LAUNCHER_IOF_DIRECT_OUT_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Shared memory of front end and agent. The agent writes the counters; the front end reads them to see whether
 * the reader progresses.
 */
struct xr_direct {
    int fd;                           /* the user's standard output: the agent's own copy */
    _Atomic uint64_t written, queued; /* bytes */
};

/* Call before the agent is forked. NULL: out of memory, or no standard output. */
struct xr_direct *xr_direct_open(void);
/* Call after the fork: the descriptor belongs to the agent. No-op if NULL. */
void xr_direct_leave_fd(struct xr_direct *direct);
/* No-op if NULL. */
void xr_direct_close(struct xr_direct *direct);

#endif
