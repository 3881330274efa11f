/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h: run the daemon that owns the ranks of one host.
 *
 * Room: one agent a host, and the supervisor that outlives it.
 * Callers: main.c and frontend.
 * Never: maps ranks, decides that a job fails, prints what the user reads.
 * Tests: tests/launcher/{job_end,hang,xrun,heartbeat}.sh, job_end_hosts.sh, agent_state_test.c.
 *
 * An agent runs the PMIx server, starts the ranks, carries their output and ends
 * them. It is their subreaper. When the connection to its parent breaks it ends
 * everything. One libevent loop owns all its state.
 */
#ifndef XR_LAUNCHER_AGENT_AGENT_H
#define XR_LAUNCHER_AGENT_AGENT_H

#include "launcher/bootstrap/setup.h"
#include "launcher/iof/direct_out.h"

#include <stdbool.h>

/*
 * Serve one job over fd. Returns the process's exit code. remote: fd comes from another host. setup must outlive the
 * call. direct: where it writes standard output itself, or NULL.
 */
int xr_agent_main(int fd, const struct xr_setup *setup, bool remote, struct xr_direct *direct);

/* The same on another host: standard input holds the launch parameters (setup.h). */
int xr_agent_remote_main(void);
#define XR_AGENT_PROCESS "--agent-process"

#endif
