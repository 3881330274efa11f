/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervisor.h: run the process that outlives an agent and ends what it leaves.
 *
 * It is the agent's parent and a subreaper above it, and only waits. When the
 * agent has ended, for whatever reason, all its descendants become children of
 * the supervisor, which kills them. It has another name than xrun, so that
 * killing "xrun" does not kill it too.
 */
#ifndef XR_LAUNCHER_AGENT_SUPERVISOR_H
#define XR_LAUNCHER_AGENT_SUPERVISOR_H

#include "launcher/iof/direct_out.h"
#include "launcher/bootstrap/setup.h"

#include <sys/types.h>

/*
 * Fork a supervisor, and below it an agent that serves fd. Returns the supervisor's pid, or -1 with errno set. The
 * caller closes fd.
 *
 * front_fd  the other end of fd, which stays with the caller
 * link_fd   a spawned xrun's link to the first one, which stays with the caller too; or -1
 * job       its name in rundir.h: the supervisor removes the job's socket if the front end was killed
 * direct    the agent writes standard output itself; or NULL
 */
pid_t xr_supervisor_start(int fd, int front_fd, int link_fd, const struct xr_setup *setup, const char *job,
                      struct xr_direct *direct);

/* Supervise an agent of another host, connected by fd, until it has ended. Returns the process's exit code. */
int xr_supervisor_run(int fd, const struct xr_setup *setup);

#endif
