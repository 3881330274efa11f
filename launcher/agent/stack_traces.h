/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stack_traces.h: run a debugger on each rank and send its output.
 */
#ifndef XR_LAUNCHER_AGENT_STACK_TRACES_H
#define XR_LAUNCHER_AGENT_STACK_TRACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct xr_traces;
struct xr_conn;

struct xr_trace_target {
    uint32_t rank;
    pid_t pid; /* of the process to trace, which may be below a script */
};

/*
 * Trace n ranks within ms. Sends the front end the lines, and a message at the end. Returns NULL if out of memory, and
 * then sends nothing. *wire: the connection to the front end, or NULL after its end; wire must outlive the object.
 */
struct xr_traces *xr_traces_start(struct event_base *base, struct xr_conn *const *wire,
                                  const struct xr_trace_target *ranks, uint32_t n, uint32_t ms);
/* No-op if NULL. */
void xr_traces_close(struct xr_traces *traces);
/* Handle the end of a child process. Returns true if it was a debugger. */
bool xr_traces_reaped(struct xr_traces *traces, pid_t pid);

#endif
