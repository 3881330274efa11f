/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontend_internal.h: what the files of the front end share; see frontend.h.
 *
 * The files form a ladder. Each calls only those below it: frontend, launch_job, agent_messages, {signals, stdio,
 * failure, singleton_warning}, terminate, job_link, child_jobs, nodes. Calls upwards go through ops structs.
 */
#ifndef XR_LAUNCHER_FRONTEND_FRONTEND_INTERNAL_H
#define XR_LAUNCHER_FRONTEND_FRONTEND_INTERNAL_H

#include "launcher/bootstrap/launch.h"
#include "launcher/cli/options.h"
#include "launcher/frontend/frontend.h"
#include "launcher/frontend/job_report.h"
#include "launcher/frontend/job_state.h"
#include "launcher/frontend/wait_hosts.h"
#include "launcher/iof/direct_out.h"
#include "launcher/iof/out_files.h"
#include "launcher/iof/out_stream.h"
#include "launcher/iof/stdin_credit.h"
#include "launcher/iof/stdin_reader.h"
#include "launcher/iof/user_tty.h"
#include "launcher/job/timeouts.h"
#include "launcher/monitor/heartbeat.h"
#include "launcher/overlay/fence.h"
#include "launcher/overlay/tree.h"

#include <event2/event.h>
#include <sys/types.h>

/* For an agent on another host that does not end, nor does its supervisor. */
#define XR_LEFT_BEHIND "xrun: error: nothing shows that the agent on %s has ended; its ranks, if any, are left there"

/* A host of the job. */
struct node {
    bool joined;         /* its agent is connected */
    bool started;        /* its ranks run */
    bool done;           /* its ranks have ended, and its agent reported that */
    bool gone;           /* its agent is lost or has left */
    bool done_announced; /* the other agents know that it is done */
    uint32_t ends_acked; /* of the end orders that it received */
    uint32_t unacked;    /* bytes of its output that the front end received and did not acknowledge */
};

/* A program of the job, for singleton_warning.c. */
struct front_app {
    bool joined; /* a rank of it is a client */
    char *uses;  /* the MPI library that it uses; NULL: not known */
};

/* How a rank failed. */
struct xr_failure {
    uint32_t rank, pid;
    int status;
    uint64_t lived_ns;
    bool unfinished; /* it was a client and exited before it finalized */
};

/* What was done about agents that do not confirm an end order; see terminate.c. */
enum xr_escalation {
    XR_ESCALATION_NONE,
    XR_ESCALATION_KILL,       /* the supervisor of this host has to kill its agent */
    XR_ESCALATION_DISCONNECT, /* other hosts are disconnected, so that their supervisors do the same */
};

struct xr_job_link;

struct front {
    const struct xr_options *options;
    struct xr_job *job;
    struct xr_plan *plan;
    struct xr_setup setup;
    struct event_base *base;
    char host[256];

    enum xr_job_state state; /* set by xr_front_enter only */
    int code;                /* xrun's exit code */
    /* Independent of the state: */
    bool judged;           /* code is final; with --on-failure continue the job goes on */
    bool cause_pending;    /* a rank failed, and its cause is awaited; the job goes on meanwhile */
    bool orphans;          /* a spawned job may have left processes, in any state */
    bool output_lost;      /* a file could not be written; the job goes on */
    bool singleton_warned; /* once a job */
    uint64_t forked_ns;
    uint64_t launched_ns; /* when the agents got the job; 0: not yet. An end may come before or after it. */

    /* agents and hosts */
    pid_t supervisor; /* of the agent on this host; 0: it has ended, or there is none */
    struct xr_tree *tree;
    struct xr_launch *launch; /* NULL: no agents on other hosts */
    struct xr_wait_hosts *wait_hosts;     /* NULL: no agents on other hosts */
    struct node *nodes;           /* [nnodes] */
    uint32_t nnodes, ndone;
    uint32_t unauthenticated; /* unauthenticated peers at the listeners of agents */
    /* NULL or empty until the job is launched: */
    struct xr_by_host of_host;
    struct xr_liveness *liveness;
    struct xr_fence_table *fences;
    struct xr_heartbeat *heartbeat;

    /* streams */
    struct xr_stream *out, *err;
    struct xr_direct *direct;    /* NULL: all output passes through here */
    struct xr_out_files *files; /* NULL: output goes to out and err */
    struct xr_reader *reader;
    struct xr_stdin_credit *credit; /* with a reader */
    struct xr_user_tty *terminal; /* with --pty */

    /* signals and timers */
    struct event *signals[12];
    int nsignals, interrupts, end_signal; /* end_signal: the first of the interrupts */
    struct event *timeout;        /* --timeout */
    struct event *stalled_output; /* after a forced end: the reader of our output is checked */
    struct event *launcher_wait;         /* for launcher commands to end */
    struct event *announce_done;  /* done hosts are announced together */
    struct event *cause_timer;          /* with cause_pending */
    struct event *escalate;       /* agents did not confirm an end order */
    struct event *stop_self;      /* xrun stops, a moment after its ranks */
    struct xr_failure failure;    /* with cause_pending */
    uint64_t seen_written;        /* output at the last check of its reader */
    uint32_t ends_sent;           /* end orders that agents have to confirm */
    uint32_t grace;            /* ticks until the next escalation */
    enum xr_escalation escalation;

    struct front_app *joins; /* [job->napps] */
    struct xr_report *report; /* with --json */
    struct xr_job_link *link;
};

/* Return whether the agents have the job. */
static inline bool xr_front_launched(const struct front *f)
{
    return f->launched_ns != 0;
}

/* The time between TERM and KILL: --kill-grace, or dflt_ms. */
static inline uint32_t xr_front_grace(const struct front *f, uint32_t dflt_ms)
{
    return f->options->kill_grace < 0 ? dflt_ms : (uint32_t)(f->options->kill_grace * 1000);
}

/* nodes.c: */
/* Enter the state. A transition that is not in the table of job_state.h is a bug. */
void xr_front_enter(struct front *f, enum xr_job_state state);
/* Set the exit code, unless it is final. */
void xr_front_set_exit_code(struct front *f, int code);
/* The host of a rank. NULL: the job is not launched, or has no such rank. */
struct node *xr_front_node_of(struct front *f, uint32_t rank);
const char *xr_front_host_of(const struct front *f, uint32_t rank);
struct xr_label xr_front_label_of(struct front *f);

/* terminate.c: */
/* Order all agents to end the job. sig is what the ranks get first. */
void xr_front_end_job_by(struct front *f, int sig, uint32_t grace_ms);
/* The same after a failure. */
void xr_front_end_job(struct front *f);
/* End this job and all spawned jobs, by a signal or a time limit. */
void xr_front_force(struct front *f, int code, int sig, uint32_t grace_ms);
/* The job is too slow: end it, after stack traces if they are wanted. */
void xr_front_expire(struct front *f);
/* No rank of any job makes progress. Ends the job if the user wants that. */
void xr_front_stalled(struct front *f);
/* An agent confirms an end order. */
void xr_front_end_acked(struct front *f, uint32_t node);
/* Leave the loop if all agents are disconnected and all output is written. */
void xr_front_leave_if_over(struct front *f);
/* Timers. */
void xr_front_on_timeout(evutil_socket_t fd, short what, void *arg);
void xr_front_on_stalled_output(evutil_socket_t fd, short what, void *arg);
void xr_front_on_launcher_wait(evutil_socket_t fd, short what, void *arg);
void xr_front_on_escalate(evutil_socket_t fd, short what, void *arg);

/* failure.c: */
/* Report a pending failure now, for no better cause can follow. */
void xr_front_report_cause(struct front *f);
void xr_front_on_root_cause(evutil_socket_t fd, short what, void *arg);
/* Report a line and end the job before it runs. No-op if it is ending. */
void xr_front_refuse(struct front *f, int code, const char *text);
/* A job that is connected with this one failed with that exit code. */
void xr_front_end_connected(struct front *f, int code);
/* As on_failed in struct xr_launch_ops. */
void xr_front_on_launch_failed(void *arg, uint32_t node, const char *text);
/* An agent is lost with all agents below it. why: NULL or empty if it ended in order. */
void xr_front_lose_agent(struct front *f, uint32_t top, const char *why);
/* Messages of agents. Each returns false if the message is malformed. */
bool xr_front_on_refused(struct front *f, struct xr_unpacker *u);
bool xr_front_on_exited(struct front *f, struct xr_unpacker *u);
bool xr_front_on_abort(struct front *f, struct xr_unpacker *u);
bool xr_front_on_unsupervised(struct front *f, struct xr_unpacker *u);
bool xr_front_on_node_text(struct front *f, uint32_t kind, struct xr_unpacker *u);

/* singleton_warning.c: */
bool xr_front_on_singleton(struct front *f, struct xr_unpacker *u);
bool xr_front_on_joined(struct front *f, struct xr_unpacker *u);
/* Warn if no rank of the program joined the job although it uses MPI. One warning a job. */
void xr_front_warn_singleton(struct front *f, uint32_t app);

/* signals.c: */
rank_status_t xr_front_watch_signals(struct front *f);
/* Send a signal to all ranks, of spawned jobs too. */
void xr_front_forward(struct front *f, int sig);
/* XR_MSG_CONTROL. Returns false if it is malformed. */
bool xr_front_control(struct front *f, struct xr_unpacker *u);
void xr_front_on_stop_self(evutil_socket_t fd, short what, void *arg);

/* stdio.c: */
rank_status_t xr_front_open_input(struct front *f);
/* The ranks of a host read no more input. */
void xr_front_close_input(struct front *f, uint32_t node);
/* As on_lost of xr_out_files_open. */
void xr_front_on_output_lost(void *arg, const char *file, int error);
/* Messages of agents. Each returns false if the message is malformed. */
bool xr_front_on_output(struct front *f, struct xr_unpacker *u);
bool xr_front_on_output_broken(struct front *f, struct xr_unpacker *u);
bool xr_front_on_log(struct front *f, struct xr_unpacker *u);
bool xr_front_on_input_taken(struct front *f, struct xr_unpacker *u);
bool xr_front_on_input_closed(struct front *f, struct xr_unpacker *u);
extern const struct xr_stream_ops xr_front_stream_ops;

/* agent_messages.c: */
extern const struct xr_heartbeat_ops xr_front_heartbeat_ops;
extern const struct xr_tree_ops xr_front_tree_ops;
void xr_front_on_announce_done(evutil_socket_t fd, short what, void *arg);

/* launch_job.c: */
/* Place the ranks of a job that has no other hosts. Returns 0, or xrun's exit code after an error message. */
int xr_front_place(struct front *f);
/* Connect the agents and launch the job. fd: the connection to the agent of this host, or -1. */
rank_status_t xr_front_open_tree(struct front *f, int fd);

#endif
