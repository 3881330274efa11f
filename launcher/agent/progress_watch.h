/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_watch.h: the agent's eye on its ranks: who makes no progress, and what for.
 *
 * It makes the status board, looks at the ranks when asked or, with a heartbeat,
 * by itself, and tells the front end of stalls that begin and end. It has no
 * part in the job: without it all goes on as before.
 */
#ifndef XR_LAUNCHER_AGENT_PROGRESS_WATCH_H
#define XR_LAUNCHER_AGENT_PROGRESS_WATCH_H

#include "launcher/util/pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xr_agent;
struct xr_watch;

/* Before the ranks are started; NULL without memory. */
struct xr_watch *xr_watch_open(struct xr_agent *agent);
/* NULL is fine. */
void xr_watch_close(struct xr_watch *watch);

/* The rank's variable that says where its slot is, as NAME=value; false: there is no board. */
bool xr_watch_variable(const struct xr_watch *watch, uint32_t slot, char *out, size_t len);

/* A message of XR_MSG_WATCH, _LOOK or _TRACE; false: it is none, or makes no sense. */
bool xr_watch_message(struct xr_watch *watch, uint32_t kind, struct xr_unpacker *u);
/* This signal goes to all ranks: those that it stops are not stalled. */
void xr_watch_signal(struct xr_watch *watch, int sig);
/* A child of the agent that is no rank has ended; true: it was one of ours. */
bool xr_watch_reaped(struct xr_watch *watch, pid_t pid);

#endif
