/*
 * direct_out.h: the agent of xrun's own host writes to the user's standard output by itself.
 *
 * Where all ranks are on that host and nothing is put before their lines, output need not take the way over
 * the front end, which would copy it twice more and wake a third process for each piece.
 */
#ifndef XR_LAUNCHER_IOF_DIRECT_OUT_H
#define XR_LAUNCHER_IOF_DIRECT_OUT_H

#include <stdatomic.h>
#include <stdint.h>

/* In memory that front end and agent share. The agent writes the numbers, the front end looks whether the reader moves. */
struct xr_direct {
    int fd;                           /* the user's standard output: the agent's own copy */
    _Atomic uint64_t written, queued; /* bytes */
};

/* Before the agent is forked. NULL: no memory, or there is no standard output. */
struct xr_direct *xr_direct_open(void);
/* Once it is forked: the descriptor is the agent's. NULL is fine. */
void xr_direct_leave_fd(struct xr_direct *direct);
/* NULL is fine. */
void xr_direct_close(struct xr_direct *direct);

#endif
