/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc_state.h: probe what a rank does, from /proc and the status board.
 */
#ifndef XR_LAUNCHER_MONITOR_PROC_STATE_H
#define XR_LAUNCHER_MONITOR_PROC_STATE_H

#include "lib/base/status_page.h"

#include <sys/types.h>

enum xr_proc_doing {
    XR_DOING_GONE,
    XR_DOING_WORK,    /* runs, or used CPU time since the last probe */
    XR_DOING_WAIT,    /* in a blocking call of librank */
    XR_DOING_SLEEP,   /* in the kernel, outside librank */
    XR_DOING_STOPPED, /* by a signal */
    XR_DOING_HELD     /* by a debugger */
};

/* Return "computes" and the like. */
const char *xr_proc_doing_text(enum xr_proc_doing doing);

/* The state of a rank between probes. Zeroed: none yet. */
struct xr_proc_state_past {
    uint64_t looked_ns; /* time of the last probe; 0: none */
    uint64_t cpu_ns;    /* CPU time then */
    uint64_t idle_ns;   /* begin of its sleep; 0: it does not sleep */
    uint64_t halted_ns; /* begin of its stop; 0: it is not stopped */
};

struct xr_proc_state {
    enum xr_proc_doing doing;
    bool joining;        /* WAIT: in rank_init */
    bool on_board;       /* runs librank */
    uint64_t since_ns;   /* time of its last progress */
    uint64_t begun_ns;   /* WAIT: begin of the wait; 0: unknown */
    uint64_t cpu_ns;     /* used by its processes */
    pid_t pid;           /* the process that was probed */
    uint64_t refused;    /* frames that librank refused: malformed, or not allowed to their sender */
    struct rk_wait_for what; /* WAIT */
    char text[320];
};

/* Format its state, with the number of refused frames. */
void xr_proc_state_text(const struct xr_proc_state *look, char *out, size_t len);

/* Probe the rank that was started as pid. slot: its slot of the status board, or NULL. */
void xr_proc_state_read(pid_t pid, const struct rk_board_slot *slot, uint64_t now,
                struct xr_proc_state_past *past, struct xr_proc_state *out);

#endif
