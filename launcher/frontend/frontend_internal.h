/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontend_internal.h: what the files of the front end share; see frontend.h.
 */
#ifndef XR_LAUNCHER_FRONTEND_FRONTEND_INTERNAL_H
#define XR_LAUNCHER_FRONTEND_FRONTEND_INTERNAL_H

#include "launcher/bootstrap/launch.h"
#include "launcher/cli/options.h"
#include "launcher/iof/direct_out.h"
#include "launcher/iof/stdin_credit.h"
#include "launcher/overlay/fence.h"
#include "launcher/frontend/frontend.h"
#include "launcher/frontend/job_report.h"
#include "launcher/monitor/heartbeat.h"
#include "launcher/frontend/wait_hosts.h"
#include "launcher/iof/out_files.h"
#include "launcher/iof/stdin_reader.h"
#include "launcher/iof/out_stream.h"
#include "launcher/iof/user_tty.h"
#include "launcher/overlay/tree.h"

#include <event2/event.h>
#include <sys/types.h>

/* Of an agent on another host that stands still, and whose keeper does so, too. */
#define XR_LEFT_BEHIND "xrun: error: nothing shows that the agent on %s has ended; its ranks, if any, are left there"
#define XR_FAILURE_GRACE_MS 400 /* a failed job is gone within a second */

/* A host of the job. */
struct node {
    bool done, gone; /* all of it has ended well; its agent is no more */
    bool told_over;  /* the others know that it is done */
    bool joined;     /* its agent has come */
    bool started;    /* its ranks run */
    uint32_t heard;  /* of the times that it was told to end */
    uint32_t owed;   /* bytes of its output that have come, but not been passed on as far as it knows */
};

/* A program of the job: has a rank of it become a client, and if none has, what of MPI does it use? singleton.h */
struct front_app {
    bool joined;
    char *uses; /* or NULL */
};

/* How a rank failed. */
struct xr_failure {
    uint32_t rank, pid;
    int status;
    uint64_t lived_ns;
    bool unfinished;
};

struct xr_job_link;

struct front {
    const struct xr_options *options;
    struct xr_job *job;
    struct xr_plan *plan;
    struct xr_setup setup;
    struct event_base *base;
    struct xr_tree *tree;
    struct xr_branches *branches; /* NULL: no agents of other hosts */
    struct xr_muster *muster;     /* NULL: all are known */
    struct xr_gone *gone; /* once the job is told */
    struct xr_fences *fences;
    struct node *nodes; /* [nnodes] */
    uint32_t nnodes, ndone;
    struct xr_by_host of_host; /* once the job is told */
    uint32_t strangers; /* at the doors of agents */
    pid_t keeper;
    char host[256];
    struct xr_stream *out, *err;
    struct xr_direct *direct; /* NULL: all output comes through here */
    struct xr_output_dir *files; /* NULL: output goes to out and err */
    bool lost; /* not all output could be written into files */
    struct xr_reader *reader;
    struct xr_feed *feed; /* with a reader */
    struct xr_user_terminal *terminal; /* with --pty */
    struct xr_report *report; /* with --json */
    struct event *signals[12];
    int nsignals;
    struct xr_life *life;
    struct event *timeout, *silence, *linger, *blame, *over;
    struct event *insist;
    uint32_t ends, patience; /* how often agents were told to end; for how many ticks they may be silent */
    bool keeper_told; /* to kill an agent that stands still */
    bool hung_up;     /* the keepers of other hosts, too */
    struct event *stopping; /* xrun itself, soon */
    struct xr_failure failure; /* the one to be blamed, while blaming */
    bool blaming;
    int code;         /* what xrun exits with */
    bool judged;      /* code is final */
    bool ending;      /* the agents were told to end the job */
    bool told;        /* the agents know the job */
    bool forced;      /* by a time-out or a signal, not by the job itself */
    bool done;        /* all agents said so */
    struct front_app *joins; /* [programs] */
    bool alone;       /* that a program is many jobs of one has been said */
    bool given_up;    /* it takes too long; stack traces may still be made */
    bool orphans;     /* a spawned job may have left something */
    struct xr_job_link *link;
    int interrupts;
    uint64_t forked_ns, told_ns, seen_written;
};

static inline uint32_t xr_front_grace(const struct front *f, uint32_t dflt_ms)
{
    return f->options->kill_grace < 0 ? dflt_ms : (uint32_t)(f->options->kill_grace * 1000);
}

/* terminate.c: how a job ends. */
void xr_front_on_linger(evutil_socket_t fd, short what, void *arg);
void xr_front_on_over(evutil_socket_t fd, short what, void *arg);
void xr_front_leave_if_over(struct front *f);
void xr_front_end_job_by(struct front *f, int sig, uint32_t grace_ms);
void xr_front_end_job(struct front *f);
void xr_front_judge(struct front *f, int code);
void xr_front_on_silence(evutil_socket_t fd, short what, void *arg);
void xr_front_force(struct front *f, int code, int sig, uint32_t grace_ms);
void xr_front_give_up(struct front *f);
void xr_front_on_timeout(evutil_socket_t fd, short what, void *arg);

/* An agent has answered that the job is to end. */
void xr_front_heard_end(struct front *f, uint32_t node);
void xr_front_on_insist(evutil_socket_t fd, short what, void *arg);

/* failure.c: a rank has failed. Sooner or later the job ends by that, unless it is to go on. */
void xr_front_failed(struct front *f, const struct xr_failure *failure);
/* Nothing more will be heard: say now whose fault it was, if that has not been said. */
void xr_front_blame(struct front *f);
/* A host is lost: a rank elsewhere that has just exited badly did so by that. */
void xr_front_blame_host(struct front *f);
void xr_front_end_connected(struct front *f, int code);
void xr_front_on_blame(evutil_socket_t fd, short what, void *arg);
void xr_front_on_branch_failed(void *arg, uint32_t node, const char *text);
bool xr_front_on_refused(struct front *f, struct xr_unpacker *u);
bool xr_front_on_exited(struct front *f, struct xr_unpacker *u);
bool xr_front_on_abort(struct front *f, struct xr_unpacker *u);
/* An agent is gone, and so is all below it. */
void xr_front_lose_agent(struct front *f, uint32_t top, const char *why);
bool xr_front_on_node_text(struct front *f, uint32_t kind, struct xr_unpacker *u);

/* signals.c */
rank_status_t xr_front_watch_signals(struct front *f);
void xr_front_forward(struct front *f, int sig);
/* XR_MSG_CONTROL. False: it makes no sense. */
bool xr_front_control(struct front *f, struct xr_unpacker *u);
void xr_front_on_stopping(evutil_socket_t fd, short what, void *arg);

/* No rank of any job makes progress, and the user wants them to end then. */
void xr_front_hopeless(struct front *f);

/* nodes.c */
/* The host that a rank runs on, or NULL. */
struct node *xr_front_node_of(struct front *f, uint32_t rank);
void xr_front_check_started(struct front *f);
const char *xr_front_host_of(const struct front *f, uint32_t rank);
struct xr_label xr_front_label_of(struct front *f);

/* singleton_warning.c: XR_MSG_ALONE, XR_MSG_JOINED. */
bool xr_front_on_singleton(struct front *f, struct xr_unpacker *u);
bool xr_front_on_joined(struct front *f, struct xr_unpacker *u);
void xr_front_warn_singleton(struct front *f, uint32_t app);

/* agent_messages.c */
extern const struct xr_life_ops xr_front_life_ops;
extern const struct xr_tree_ops xr_front_tree_ops;

/* stdio.c: what the user writes and reads. */
bool xr_front_on_output(struct front *f, struct xr_unpacker *u);
bool xr_front_on_output_broken(struct front *f, struct xr_unpacker *u);
bool xr_front_on_log(struct front *f, struct xr_unpacker *u);
void xr_front_on_input_closed(struct front *f, uint32_t host);
void xr_front_on_lost(void *arg, const char *file, int error);
rank_status_t xr_front_open_input(struct front *f);
extern const struct xr_stream_ops xr_front_stream_ops;

/* launch_job.c: the agents come, and are told the job. */
bool xr_front_open_report(struct front *f);
rank_status_t xr_front_open_tree(struct front *f, int fd);

#endif
