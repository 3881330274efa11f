/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc_state.h: look at a rank from outside: what the kernel tells of its processes,
 * and, if it runs librank, what it has written on the status board.
 */
#ifndef XR_LAUNCHER_MONITOR_PROC_STATE_H
#define XR_LAUNCHER_MONITOR_PROC_STATE_H

#include "lib/base/status_page.h"

#include <sys/types.h>

enum xr_doing {
    XR_DOING_GONE,
    XR_DOING_WORK,    /* runs, or used cpu time since the last look */
    XR_DOING_WAIT,    /* in a call of librank that waits */
    XR_DOING_SLEEP,   /* in the kernel, outside librank */
    XR_DOING_STOPPED, /* by a signal */
    XR_DOING_HELD     /* by a debugger */
};

/* One word of it: "computes". */
const char *xr_doing_word(enum xr_doing doing);

/* What is kept of a rank from look to look. All zero: nothing yet. */
struct xr_look_past {
    uint64_t looked_ns; /* when cpu_ns was so much; 0: never */
    uint64_t cpu_ns;
    uint64_t idle_ns;   /* it has slept since then; 0: it does not */
    uint64_t halted_ns; /* it has been stopped since then; 0: it is not */
};

struct xr_look {
    enum xr_doing doing;
    bool joining;        /* WAIT: in rank_init */
    bool on_board;       /* runs librank */
    uint64_t since_ns;   /* it has made no progress since then */
    uint64_t begun_ns;   /* WAIT: the wait began then; 0: not known */
    uint64_t cpu_ns;     /* used by its processes */
    pid_t pid;           /* the process that the rest is about */
    uint64_t refused;    /* frames that librank took for broken, or for not what their sender may say */
    struct rk_wait_for what; /* WAIT */
    char text[320];
};

/* What there is to say of it: its text, and the frames that it has refused. */
void xr_look_text(const struct xr_look *look, char *out, size_t len);

/* Look at the rank that was started as pid; slot: its own, or NULL. */
void xr_look_at(pid_t pid, const struct rk_board_slot *slot, uint64_t now,
                struct xr_look_past *past, struct xr_look *out);

#endif
