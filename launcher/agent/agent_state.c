/* SPDX-License-Identifier: BSD-3-Clause */
/* agent_state.c: check and log an agent's transitions. See agent_state.h. */
#include "launcher/agent/agent_state.h"
#include "lib/base/log.h"

#define TO(state) (1u << XR_AGENT_##state)

/* By the state that is left: a bit for each that may follow. */
static const unsigned legal_next[XR_AGENT_STATES] = {
    [XR_AGENT_CONNECTED] = TO(STARTING) | TO(RUNNING),
    [XR_AGENT_STARTING] = TO(RUNNING) | TO(KILLING),
    [XR_AGENT_RUNNING] = TO(TERMINATING) | TO(KILLING) | TO(DONE),
    [XR_AGENT_TERMINATING] = TO(KILLING) | TO(DONE),
    [XR_AGENT_KILLING] = TO(KILLING) | TO(DONE),
    [XR_AGENT_DONE] = 0,
};

const char *xr_agent_state_name(enum xr_agent_state state)
{
    static const char *const names[XR_AGENT_STATES] = {
        [XR_AGENT_CONNECTED] = "connected", [XR_AGENT_STARTING] = "starting",
        [XR_AGENT_RUNNING] = "running",     [XR_AGENT_TERMINATING] = "terminating",
        [XR_AGENT_KILLING] = "killing",     [XR_AGENT_DONE] = "done",
    };

    return state < XR_AGENT_STATES ? names[state] : "?";
}

bool xr_agent_state_legal(enum xr_agent_state from, enum xr_agent_state to)
{
    return from < XR_AGENT_STATES && to < XR_AGENT_STATES && (legal_next[from] >> to & 1u);
}

void xr_agent_state_set(enum xr_agent_state *state, enum xr_agent_state to)
{
    if (!xr_agent_state_legal(*state, to))
        rk_error("bug: an agent goes from %s to %s", xr_agent_state_name(*state), xr_agent_state_name(to));
    else
        rk_debug("agent: %s, was %s", xr_agent_state_name(to), xr_agent_state_name(*state));
    *state = to;
}
