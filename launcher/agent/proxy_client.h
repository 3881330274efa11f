/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy_client.h: connect to PMIx in the name of ranks that have ended.
 *
 * A rank that ends without ever being a PMIx client leaves the fences of the
 * others waiting for it: libpmix counts out only clients that it has seen go. So
 * a short-lived process connects in the rank's name and goes. Requests for the
 * rank's data are then answered with nothing.
 *
 * The same is done for a rank that finalized and ended while others go on,
 * because libpmix counts on it in later fences. It is done a second later, since
 * most ranks end together.
 *
 * The proxy also probes the server: libpmix 4.2.2 does not answer any more after
 * a client was killed at some moments of its connecting.
 */
#ifndef XR_LAUNCHER_AGENT_PROXY_CLIENT_H
#define XR_LAUNCHER_AGENT_PROXY_CLIENT_H

#include "lib/rank.h"

#include <stdbool.h>
#include <sys/types.h>

struct xr_agent;

/* Create the timer. */
rank_status_t xr_proxy_client_open(struct xr_agent *agent);
/* Start a proxy for the next rank that needs one. No-op while one runs, or outside the running state. */
void xr_proxy_client_check(struct xr_agent *agent);
/*
 * Handle the end of a child process. No-op if it is not the proxy. Returns false if the PMIx server is dead.
 */
bool xr_proxy_client_reaped(struct xr_agent *agent, pid_t pid, int status);

/* The proxy process itself. Returns its exit code. */
int xr_proxy_client_main(void);
#define XR_PROXY_CLIENT_NAME "xrun-stand-in"

#endif
