/*
 * srun.h: start the agents of other hosts as one step of a Slurm job.
 *
 * One srun starts an agent on each host, and passes what it reads to all of
 * them. So they all get one setup, in which each finds itself by its node's
 * name. srun stays as long as an agent does.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_SRUN_H
#define XR_LAUNCHER_BOOTSTRAP_SRUN_H

#include "launcher/bootstrap/setup.h"

#include <event2/event.h>
#include <sys/types.h>

struct xr_step;

struct xr_step_ops {
    /* srun ended before all agents were connected; text is a line. */
    void (*on_failed)(void *arg, const char *text);
    /* A line that srun or an agent wrote. */
    void (*on_said)(void *arg, const char *line);
};

/* Start the agents of all hosts in setup but skip (XR_NODE_FRONT: none). Clear setup only after it. Close the step
 * also when this fails; err says why. */
rank_status_t xr_step_open(struct event_base *base, const struct xr_setup *setup, uint32_t skip,
                           const struct xr_step_ops *ops, void *arg, struct xr_step **out, char *err,
                           size_t errlen);
/* NULL is fine. Kills srun if it still runs, and with it the agents. */
void xr_step_close(struct xr_step *step);

/* The agent of a node is there. NULL is fine. */
void xr_step_connected(struct xr_step *step, uint32_t node);
/* No more agents are expected: if some have not come, srun shall end, and all that it has started. NULL is fine. */
void xr_step_shut(struct xr_step *step);
/* A child has ended; true if it was srun. NULL is fine. */
bool xr_step_reaped(struct xr_step *step, pid_t pid, int status);
/* srun's, or 0. NULL is fine. */
pid_t xr_step_pid(const struct xr_step *step);

/* The line in which srun has said best why it ends, or "". NULL is fine. */
const char *xr_step_words(struct xr_step *step);

/* That it was killed, or "". Slurm may end the agents then, and may let them go on. NULL is fine. */
const char *xr_step_killed(const struct xr_step *step);


#endif
