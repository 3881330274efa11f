/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_state.h: name the states of a job's life and the legal transitions.
 *
 *   from          to
 *   ALLOCATING    LAUNCHING, ENDING, FORCED, DONE
 *   LAUNCHING     RUNNING, EXPIRED, ENDING, FORCED, DONE
 *   RUNNING       EXPIRED, ENDING, FORCED, DONE
 *   EXPIRED       ENDING, FORCED, DONE
 *   ENDING        FORCED, DONE_ENDED
 *   FORCED        DONE_FORCED
 *   DONE          DONE_FORCED
 *   DONE_ENDED    DONE_FORCED
 *   DONE_FORCED   -
 *
 * "Done" means that every host is done. Spawned jobs, queued output and launcher commands may keep xrun running.
 */
#ifndef XR_LAUNCHER_FRONTEND_JOB_STATE_H
#define XR_LAUNCHER_FRONTEND_JOB_STATE_H

#include <stdbool.h>

enum xr_job_state {
    XR_JOB_ALLOCATING,  /* agents connect; the ranks have no hosts yet */
    XR_JOB_LAUNCHING,   /* the agents have the job and start its ranks */
    XR_JOB_RUNNING,     /* all ranks were started, except those of lost hosts */
    XR_JOB_EXPIRED,     /* a time limit passed: stack traces are taken before the end */
    XR_JOB_ENDING,      /* the agents end the job, for a part of it failed */
    XR_JOB_FORCED,      /* a signal or a time limit ends the job and all jobs that it spawned */
    XR_JOB_DONE,        /* all hosts are done; the job ended by itself */
    XR_JOB_DONE_ENDED,  /* all hosts are done, after ENDING */
    XR_JOB_DONE_FORCED, /* all hosts are done; a signal or a time limit ends what is left of spawned jobs */
    XR_JOB_STATES
};

/* Return the name of the state. */
const char *xr_job_state_name(enum xr_job_state state);
/* Return whether the table has this transition. A state is no successor of itself. */
bool xr_job_state_follows(enum xr_job_state from, enum xr_job_state to);
/* Return the state of a job whose hosts are all done. */
enum xr_job_state xr_job_state_when_done(enum xr_job_state state);
/* Return the state of a job that a signal or a time limit ends. */
enum xr_job_state xr_job_state_when_forced(enum xr_job_state state);

/* No end was requested, and the job has not ended by itself. */
static inline bool xr_job_is_active(enum xr_job_state state)
{
    return state <= XR_JOB_RUNNING;
}

static inline bool xr_job_is_done(enum xr_job_state state)
{
    return state >= XR_JOB_DONE;
}

static inline bool xr_job_is_forced(enum xr_job_state state)
{
    return state == XR_JOB_FORCED || state == XR_JOB_DONE_FORCED;
}

/* The end was requested: what fails now is a consequence, and is not reported. */
static inline bool xr_job_is_ending(enum xr_job_state state)
{
    return state == XR_JOB_ENDING || state == XR_JOB_DONE_ENDED || xr_job_is_forced(state);
}

#endif
