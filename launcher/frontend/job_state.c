/* SPDX-License-Identifier: BSD-3-Clause */
/* job_state.c: the table of a job's states. See job_state.h. */
#include "launcher/frontend/job_state.h"

#include <stdint.h>

#define TO(state) (1u << XR_JOB_##state)

static const struct {
    const char *name;
    uint32_t next; /* bits */
} states[XR_JOB_STATES] = {
    [XR_JOB_ALLOCATING] = {"allocating", TO(LAUNCHING) | TO(ENDING) | TO(FORCED) | TO(DONE)},
    [XR_JOB_LAUNCHING] = {"launching", TO(RUNNING) | TO(EXPIRED) | TO(ENDING) | TO(FORCED) | TO(DONE)},
    [XR_JOB_RUNNING] = {"running", TO(EXPIRED) | TO(ENDING) | TO(FORCED) | TO(DONE)},
    [XR_JOB_EXPIRED] = {"expired", TO(ENDING) | TO(FORCED) | TO(DONE)},
    [XR_JOB_ENDING] = {"ending", TO(FORCED) | TO(DONE_ENDED)},
    [XR_JOB_FORCED] = {"forced", TO(DONE_FORCED)},
    [XR_JOB_DONE] = {"done", TO(DONE_FORCED)},
    [XR_JOB_DONE_ENDED] = {"done after an end", TO(DONE_FORCED)},
    [XR_JOB_DONE_FORCED] = {"done by force", 0},
};

const char *xr_job_state_name(enum xr_job_state state)
{
    return states[state].name;
}

bool xr_job_state_follows(enum xr_job_state from, enum xr_job_state to)
{
    return states[from].next >> to & 1;
}

enum xr_job_state xr_job_state_when_done(enum xr_job_state state)
{
    return xr_job_is_forced(state) ? XR_JOB_DONE_FORCED : xr_job_is_ending(state) ? XR_JOB_DONE_ENDED : XR_JOB_DONE;
}

enum xr_job_state xr_job_state_when_forced(enum xr_job_state state)
{
    return xr_job_is_done(state) ? XR_JOB_DONE_FORCED : XR_JOB_FORCED;
}
