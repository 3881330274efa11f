/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_internal.h: the state that progress_watch.c and progress_probe.c share.
 */
#ifndef XR_LAUNCHER_AGENT_PROGRESS_INTERNAL_H
#define XR_LAUNCHER_AGENT_PROGRESS_INTERNAL_H

#include "launcher/agent/agent_internal.h"
#include "launcher/monitor/proc_state.h"
#include "launcher/monitor/status_board.h"

/* A rank under watch. Its flags are independent of each other. */
struct xr_watched_rank {
    struct xr_proc_state_past past;
    struct xr_proc_state look; /* the latest probe */
    bool stalled;        /* a stall was reported and has not ended */
    bool halted;         /* it was also reported that the rank is stopped */
    bool changed;        /* its change is to be sent in this round */
    uint64_t stalled_ns; /* no progress since then */
    uint64_t begun_ns;   /* start of the wait that was seen last */
    uint64_t still_ns;   /* that wait has made no progress since then */
    bool recent;         /* the last probe found very recent progress */
    const struct xr_fence *fence; /* the fence that its text names, in this probe */
    uint32_t unnamed;    /* 1 + the fence's space if the front end is to name its absent ranks, or 0 */
};

struct xr_progress {
    struct xr_agent *agent;
    struct xr_agent_board board;
    struct xr_watched_rank *ranks; /* as agent->ranks */
    uint32_t n;
    uint64_t stall_ns; /* the heartbeat; 0: none */
    uint64_t held_ns;     /* the user stopped all ranks then; 0: they are not stopped */
    uint64_t fresh_ns;    /* no stall began before that */
    bool quiet;           /* report only ranks that wait in librank, and no progress */
    uint64_t period_ns;
    uint64_t timer_ns;    /* when on_time ran last; 0: never */
    struct event *on_time;
    struct xr_traces *traces;
};

/* Return whether the i-th rank of this host has started and not ended. */
bool xr_progress_runs(const struct xr_progress *w, uint32_t i);
/* Probe all ranks that run. */
void xr_progress_probe(struct xr_progress *w, uint64_t now);
/* Return the process that this rank is, which may be below a script. */
pid_t xr_progress_process(const struct xr_progress *w, uint32_t i);

#endif
