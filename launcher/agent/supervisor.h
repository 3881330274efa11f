/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervisor.h: the process that outlives an agent.
 *
 * It is the agent's parent and a subreaper above it, and does nothing but wait.
 * When the agent is gone, however it went, all that came from it falls to the
 * keeper, who ends it. It has another name than xrun, so that killing "xrun"
 * does not kill it too.
 */
#ifndef XR_LAUNCHER_AGENT_SUPERVISOR_H
#define XR_LAUNCHER_AGENT_SUPERVISOR_H

#include "launcher/iof/direct_out.h"
#include "launcher/bootstrap/setup.h"

#include <sys/types.h>

/*
 * Start a keeper and under it an agent that speaks over fd; front_fd is the
 * other end, which stays here, as does link_fd, a spawned xrun's link to the first one, or -1. The caller closes fd. job: its name in rundir.h, for the end of a
 * job whose front end was killed. direct: the agent writes standard output itself; or NULL.
 * Returns the keeper's pid, or -1 with errno set.
 */
pid_t xr_keeper_start(int fd, int front_fd, int link_fd, const struct xr_setup *setup, const char *job,
                      struct xr_direct *direct);

/* Be the keeper of an agent of another host, whose wire is fd; returns the process's exit code. */
int xr_keeper_run(int fd, const struct xr_setup *setup);

/* In the agent: its loop does not run for a while, or does again (one on another host begins so). */
void xr_keeper_busy(bool busy);

/* In the agent: the job that it serves, so that its keeper can remove the job's files should the agent be killed. */
void xr_keeper_serves(const char *job);

#endif
