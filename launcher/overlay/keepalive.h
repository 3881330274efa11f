/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keepalive.h: let the kernel detect a host that was cut off.
 */
#ifndef XR_LAUNCHER_OVERLAY_KEEPALIVE_H
#define XR_LAUNCHER_OVERLAY_KEEPALIVE_H

#include <stdbool.h>

/* Enable TCP keepalive and a time-out for unacknowledged data on a socket. */
void xr_keepalive_enable(int fd);

/*
 * Suspend the time-out while all data wait for room at a peer whose host answers (a stopped parent); else resume
 * it. suspended: the result of the last call. Returns whether it is suspended now.
 */
bool xr_keepalive_suspend(int fd, bool suspended);

#endif
