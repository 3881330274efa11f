/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_setup.h: make what agents receive before the job.
 */
#ifndef XR_LAUNCHER_FRONTEND_AGENT_SETUP_H
#define XR_LAUNCHER_FRONTEND_AGENT_SETUP_H

#include "launcher/bootstrap/setup.h"
#include "launcher/cli/options.h"
#include "launcher/map/plan.h"

#define XR_FANOUT 32 /* child agents of an agent, without --fanout */

/* The number of child agents that a node of the tree may have. */
uint32_t xr_setup_fanout(const struct xr_options *options);

/*
 * The command that starts agents on other hosts. Its path is valid in any working directory. Caller frees.
 * Returns NULL with the reason in err if there is no such program.
 */
char *xr_setup_command(const struct xr_options *options, const struct xr_plan *plan, char *err, size_t errlen);

/* Fill in the setup of all agents, this host's too. Clear it whatever is returned. */
rank_status_t xr_setup_make(const struct xr_options *options, const struct xr_plan *plan, struct xr_setup *out);

#endif
