/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervisor_page.h: share the agent's job and its busy flag with the supervisor.
 *
 * The page is created before the supervisor forks the agent. The agent writes it
 * and the supervisor reads it. Without the page all calls are no-ops.
 */
#ifndef XR_LAUNCHER_AGENT_SUPERVISOR_PAGE_H
#define XR_LAUNCHER_AGENT_SUPERVISOR_PAGE_H

#include <stdbool.h>

/* In the supervisor. Busy is the initial flag: an agent of another host begins so. */
void xr_supervisor_page_open(bool busy);
bool xr_supervisor_page_busy(void);
/* Return the agent's job, or NULL if it has none. */
const char *xr_supervisor_page_job(void);

/* In the agent: its loop does not run for a while, or runs again. */
void xr_supervisor_page_set_busy(bool busy);
/* In the agent: the job that it serves. If the agent is killed, the supervisor removes the job's files. */
void xr_supervisor_page_set_job(const char *job);

#endif
