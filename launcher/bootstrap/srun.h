/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun.h: start the agents of other hosts as one step of a Slurm job.
 *
 * One srun starts an agent on each host, and passes its input to all of them. So
 * all get one setup, in which each finds itself by its node's name. srun runs as
 * long as any agent.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_SRUN_H
#define XR_LAUNCHER_BOOTSTRAP_SRUN_H

#include "launcher/bootstrap/setup.h"

#include <event2/event.h>
#include <sys/types.h>

struct xr_srun;

struct xr_srun_ops {
    /* srun ended before all agents connected; text is a line. */
    void (*on_failed)(void *arg, const char *text);
    /* A line of output of srun or an agent. */
    void (*on_output)(void *arg, const char *line);
};

/*
 * Start the agents of all hosts in setup except skip (XR_NODE_FRONT: none). setup must outlive it. Close
 * it also if this fails; err holds a text.
 */
rank_status_t xr_srun_open(struct event_base *base, const struct xr_setup *setup, uint32_t skip,
                           const struct xr_srun_ops *ops, void *arg, struct xr_srun **out, char *err,
                           size_t errlen);
/* No-op if NULL. Kills srun, and with it the agents, if it still runs. */
void xr_srun_close(struct xr_srun *srun);

/* The agent of a node connected. No-op if NULL. */
void xr_srun_connected(struct xr_srun *srun, uint32_t node);
/* No more agents are expected: if some are missing, srun and all agents must end. No-op if NULL. */
void xr_srun_shut(struct xr_srun *srun);
/* Handle the end of a child process. Returns true if it was srun. NULL is accepted. */
bool xr_srun_reaped(struct xr_srun *srun, pid_t pid, int status);
/* Return srun's pid, or 0 if it does not run or is NULL. */
pid_t xr_srun_pid(const struct xr_srun *srun);

/* Return the line of srun that best explains its end, or "". NULL is accepted. */
const char *xr_srun_reason(struct xr_srun *srun);

/* Return the text that srun was killed, or "". Slurm may then end the agents, or not. NULL is accepted. */
const char *xr_srun_killed(const struct xr_srun *srun);


#endif
