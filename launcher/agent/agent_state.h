/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_state.h: name the states of an agent's life and its legal transitions.
 *
 * | from        | to          | when                                                       |
 * | ----------- | ----------- | ---------------------------------------------------------- |
 * | CONNECTED   | STARTING    | JOB has been received                                      |
 * | CONNECTED   | RUNNING     | END came before JOB: nothing runs here                     |
 * | STARTING    | RUNNING     | all ranks have been started                                |
 * | STARTING    | KILLING     | the job cannot start here                                  |
 * | RUNNING     | TERMINATING | END, the parent or the supervisor is gone, or all ranks    |
 * |             |             | have ended and left processes behind                       |
 * | RUNNING     | KILLING     | END without a grace period                                 |
 * | RUNNING     | DONE        | all processes have ended, and all output was sent          |
 * | TERMINATING | KILLING     | the grace period is over                                   |
 * | TERMINATING | DONE        | as from RUNNING                                            |
 * | KILLING     | KILLING     | another round: a killed process may just have forked       |
 * | KILLING     | DONE        | as from RUNNING                                            |
 */
#ifndef XR_LAUNCHER_AGENT_AGENT_STATE_H
#define XR_LAUNCHER_AGENT_AGENT_STATE_H

#include <stdbool.h>

enum xr_agent_state {
    XR_AGENT_CONNECTED,   /* to its parent; it has no job yet */
    XR_AGENT_STARTING,    /* prepares the job and starts the ranks; the loop does not run */
    XR_AGENT_RUNNING,     /* ranks run */
    XR_AGENT_TERMINATING, /* all processes have got the signal to end; the grace period runs */
    XR_AGENT_KILLING,     /* all processes get SIGKILL, in rounds */
    XR_AGENT_DONE,        /* all is gone; the last messages are on their way */
    XR_AGENT_STATES
};

/* Return "running". */
const char *xr_agent_state_name(enum xr_agent_state state);

/* Return whether the table above has this transition. */
bool xr_agent_state_legal(enum xr_agent_state from, enum xr_agent_state to);

/* Set *state, and log the transition at debug level. An illegal one is logged as a bug, and made all the same. */
void xr_agent_state_set(enum xr_agent_state *state, enum xr_agent_state to);

#endif
