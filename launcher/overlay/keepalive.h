/*
 * keepalive.h: have the kernel detect a host that was cut off.
 */
#ifndef XR_LAUNCHER_OVERLAY_KEEPALIVE_H
#define XR_LAUNCHER_OVERLAY_KEEPALIVE_H

#include <stdbool.h>

#define XR_LOST_AFTER_S 6 /* a host that answers nothing for so long is lost */

/* Enable TCP keepalive and a time-out for unacknowledged data on a socket. */
void xr_keepalive_enable(int fd);

/*
 * Suspend the time-out while all data wait for room at the other end and its host answers, as with a parent that is
 * stopped; resume it otherwise. suspended: what the last call returned. Returns whether it is suspended now.
 */
bool xr_keepalive_suspend(int fd, bool suspended);

#endif
