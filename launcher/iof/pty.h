/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pty.h: open a terminal for one rank (--pty).
 */
#ifndef XR_LAUNCHER_IOF_PTY_H
#define XR_LAUNCHER_IOF_PTY_H

#include "launcher/job/job.h"

/* Open a terminal: the master's descriptor, and the rank's. Returns 0, or -1 with errno. */
int xr_pty_open(const struct xr_window *window, int *master, int *slave);
void xr_pty_resize(int master, const struct xr_window *window);

#endif
