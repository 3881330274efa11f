/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stack_traces.h: run a debugger on each rank of this host and send what it prints.
 */
#ifndef XR_LAUNCHER_AGENT_STACK_TRACES_H
#define XR_LAUNCHER_AGENT_STACK_TRACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct xr_agent;
struct xr_traces;

/*
 * Trace all ranks within ms. Sends the front end the lines, and a message at the end. Returns NULL if out of memory,
 * and then sends nothing.
 */
struct xr_traces *xr_traces_start(struct xr_agent *agent, uint32_t ms);
/* No-op if NULL. */
void xr_traces_close(struct xr_traces *traces);
/* Handle the end of a child process. Returns true if it was a debugger. */
bool xr_traces_reaped(struct xr_traces *traces, pid_t pid);

#endif
