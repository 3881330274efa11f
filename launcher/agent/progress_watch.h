/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_watch.h: watch the progress of this host's ranks and report stalls.
 *
 * It creates the status board, and probes the ranks on request or by a heartbeat.
 * The front end is sent the beginning and the end of each stall. The job does not
 * depend on it. All calls are no-ops if progress is NULL.
 */
#ifndef XR_LAUNCHER_AGENT_PROGRESS_WATCH_H
#define XR_LAUNCHER_AGENT_PROGRESS_WATCH_H

#include "launcher/util/pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xr_agent;
struct xr_progress;

/* Call before the ranks are started. Returns NULL if out of memory. */
struct xr_progress *xr_progress_open(struct xr_agent *agent);
void xr_progress_close(struct xr_progress *progress);

/* Write the rank's variable with the place of its slot, as NAME=value. Returns false if there is no board. */
bool xr_progress_variable(const struct xr_progress *progress, uint32_t slot, char *out, size_t len);

/* Handle XR_MSG_WATCH, _LOOK or _TRACE. Returns false for another kind, or if it is malformed. */
bool xr_progress_message(struct xr_progress *progress, uint32_t kind, struct xr_unpacker *u);
/* All ranks get this signal: ranks that it stops are not stalled. */
void xr_progress_signal(struct xr_progress *progress, int sig);
/* Handle the end of a child process. Returns true if it was a debugger. */
bool xr_progress_reaped(struct xr_progress *progress, pid_t pid);

#endif
