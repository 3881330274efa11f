/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h: the process that owns the ranks of one host.
 *
 * It runs the PMIx server, starts the ranks, carries their output, and cleans
 * up: it is their subreaper, and when the wire to the front end breaks it ends
 * everything. One libevent loop owns all its state.
 */
#ifndef XR_LAUNCHER_AGENT_AGENT_H
#define XR_LAUNCHER_AGENT_AGENT_H

#include "launcher/bootstrap/launch.h"
#include "launcher/iof/rank_input.h"
#include "launcher/iof/rank_output.h"
#include "launcher/dpm/rpc.h"
#include "launcher/overlay/fence.h"
#include "launcher/job/job.h"
#include "launcher/compat/shm_cleanup.h"
#include "launcher/pmi1/pmi1_server.h"
#include "launcher/overlay/dmodex.h"
#include "launcher/pmix/pmix_server.h"
#include "launcher/bootstrap/setup.h"
#include "launcher/compat/singleton.h"
#include "launcher/overlay/tree.h"

#include <event2/event.h>
#include <sched.h>

/*
 * Be an agent: serve one job over fd, then return the process's exit code.
 * remote: fd comes from another host. setup must stay. direct: write standard output to it; or NULL.
 */
int xr_agent_main(int fd, const struct xr_setup *setup, bool remote, struct xr_direct *direct);
/* The same, started on another host: told by standard input whom to connect to. */
int xr_agent_remote_main(void);
#define XR_AGENT_PROCESS "--agent-process"

/* -------------------------------------------- what the agent's files share */

struct xr_rank {
    uint32_t rank;
    pid_t pid;  /* 0: not started */
    int pidfd;  /* or -1 */
    uint64_t start_ns;
    bool exited, connected, finalized;
    int status; /* of the process, once it has exited */
    uint64_t exit_ns;
    bool stood_in; /* proxy_client.c has done what it can */
    int stood;     /* so often it has tried */
    bool told_lost; /* that its client is gone */
    int clients; /* PMIx clients that have come and not gone, one of which may follow another */
};

enum xr_agent_phase {
    XR_AGENT_IDLE,    /* no job yet */
    XR_AGENT_RUNNING,
    XR_AGENT_TERM,    /* all have been told to end */
    XR_AGENT_KILL,    /* all are being killed */
    XR_AGENT_DONE     /* all is gone; the last message is on its way */
};

struct xr_agent {
    struct event_base *base;
    const struct xr_setup *setup;
    bool remote; /* its parent is on another host */
    struct xr_tree *tree;
    struct xr_wire *wire; /* to the front end, or to the agent above; NULL: it is gone */
    struct xr_branches *branches; /* agents below; NULL: there are none */
    struct xr_job job;
    struct xr_seats seats;
    cpu_set_t *sets; /* of each rank of this host, one after the other; NULL: nobody is bound */
    size_t set_size;
    void *topology; /* for the PMIx server, or NULL */
    struct xr_server *server; /* NULL: no rank can want one */
    struct xr_gone *gone;
    struct xr_fences *fences;
    struct xr_modexes *modexes;
    struct xr_errands *errands;
    struct xr_pmi1 *pmi1;
    struct xr_leftovers *leftovers;
    struct xr_singletons *singletons;
    bool *joined; /* [programs]: the front end knows that a rank of it here is a client */
    bool had_clients;  /* of PMIx */
    char host[256];
    uint32_t node, nlocal; /* its number; ranks of it */
    uint32_t order, nused; /* its number among the hosts that have ranks; how many those are */
    enum xr_agent_phase phase;

    /* rank_start.c, rank_reap.c */
    struct xr_rank *ranks; /* [nlocal], in the order of their numbers */
    uint32_t live;         /* started and not yet reaped */
    uint32_t clients;      /* connected to PMIx and not finalized */
    int exits;             /* epoll of the ranks' pidfds, which become ready in order of death */
    pid_t stand_in;        /* proxy_client.c: the one that runs now, or 0 */
    struct xr_rank *stood_for;
    bool probing;          /* and what becomes of it tells whether the PMIx server answers */

    /* rank_output.c, rank_input.c */
    struct xr_direct *direct; /* or NULL */
    struct xr_local_io io;
    struct xr_outputs *outputs;
    struct xr_inputs *inputs;
    int terminal; /* master of the one that --pty gives to a rank, or -1 */

    struct xr_watch *watch; /* progress_watch.h */
    int end_signal;         /* what the end begins with, if not TERM */
    uint64_t alone_ns;       /* since then no process of the job is left, but pipes are open */
    uint32_t second_half_ms; /* of the grace, after TERM has followed that signal */

    struct event *on_exits, *on_child, *on_term, *on_grace, *on_quiet, *on_stop, *on_stand_in;
};

/* rank_start.c: programs that the front end has left to the hosts to find. On failure *code and text say why. */
rank_status_t xr_ranks_find(struct xr_agent *agent, int *code, char *text, size_t len);
/* rank_start.c: start all ranks. On failure *code and text say why; what was started is killed. */
rank_status_t xr_ranks_start(struct xr_agent *agent, int *code, char *text, size_t len);

/* rank_reap.c: collect who has exited. */
void xr_ranks_reap(struct xr_agent *agent);
/* Is any descendant left? */
bool xr_ranks_gone(const struct xr_agent *agent);

/* A rank of this host by its number in the job, or NULL. */
struct xr_rank *xr_agent_rank(const struct xr_agent *agent, uint32_t rank);

/* local_ranks.c: who sits where. False: what came makes no sense. */
bool xr_agent_take_job(struct xr_agent *agent, struct xr_unpacker *u);
bool xr_agent_take_seats(struct xr_agent *agent, struct xr_unpacker *u);
const cpu_set_t *xr_agent_cpus(const struct xr_agent *agent, uint32_t local);

/* host_report.c: tell xrun what this host is like. */
void xr_agent_report(struct xr_agent *agent);
void xr_agent_report_topology(struct xr_agent *agent);

/* pmi_clients.c: what PMIx's and PMI-1's clients among the ranks do. */
extern const struct xr_server_events xr_clients_server_events;
extern const struct xr_modex_ops xr_clients_modex_ops;
extern const struct xr_pmi1_ops xr_clients_pmi1_ops[2]; /* [1]: with other hosts */
void xr_clients_fence_done(void *arg, void *token, int status, const void *data, size_t len);

/* job_start.c: what can be done before this agent is told its job; nothing where setup does not say enough. */
void xr_agent_begin(struct xr_agent *agent);
/* The agent has been told its seats and its job. */
void xr_agent_run_job(struct xr_agent *agent);

/* agent.c: told by the others. */
void xr_agent_end(struct xr_agent *agent, uint32_t grace_ms);
/* Something ended; see whether all is done. */
void xr_agent_check_done(struct xr_agent *agent);

/* usage.c: for --json, else they say nothing: once ranks have started, and when one has ended. */
struct rusage;
void xr_account_placed(struct xr_agent *agent);
void xr_account_usage(struct xr_agent *agent, uint32_t rank, const struct rusage *usage);

/*
 * proxy_client.c: a rank that ended without ever having been a PMIx client leaves
 * fences of the others waiting for it. PMIx counts out only clients that it has
 * seen go; so a short-lived process connects in the rank's name and goes. And
 * who asks for what the rank has committed is told that it is nothing.
 * The same is done for a rank that finalized and ended while others go on: the
 * library counts on it in the fences that come after (those in which others are
 * when it finalizes it fails). Not at once, for as a rule all end together.
 * It also shows whether the PMIx server still answers: libpmix 4.2.2's does not
 * after a client was killed at some moments of its connecting.
 */
void xr_stand_in_check(struct xr_agent *agent);
bool xr_stand_in_reaped(struct xr_agent *agent, pid_t pid, int status);
int xr_stand_in_main(void);
#define XR_STAND_IN_NAME "xrun-stand-in"

#endif
