/*
 * agent.h: the process that owns the ranks of one host.
 *
 * It runs the PMIx server, starts the ranks, carries their output, and cleans
 * up: it is their subreaper, and when the wire to the front end breaks it ends
 * everything. One libevent loop owns all its state.
 */
#ifndef RK_LAUNCHER_AGENT_AGENT_H
#define RK_LAUNCHER_AGENT_AGENT_H

#include "launcher/bootstrap/launch.h"
#include "launcher/iof/direct_out.h"
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
int rk_agent_main(int fd, const struct rk_setup *setup, bool remote, struct rk_direct *direct);
/* The same, started on another host: told by standard input whom to connect to. */
int rk_agent_remote_main(void);
#define RK_AGENT_PROCESS "--agent-process"

/* -------------------------------------------- what the agent's files share */

struct rk_rank {
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

enum rk_agent_phase {
    RK_AGENT_IDLE,    /* no job yet */
    RK_AGENT_RUNNING,
    RK_AGENT_TERM,    /* all have been told to end */
    RK_AGENT_KILL,    /* all are being killed */
    RK_AGENT_DONE     /* all is gone; the last message is on its way */
};

struct rk_agent {
    struct event_base *base;
    const struct rk_setup *setup;
    bool remote; /* its parent is on another host */
    struct rk_tree *tree;
    struct rk_wire *wire; /* to the front end, or to the agent above; NULL: it is gone */
    struct rk_branches *branches; /* agents below; NULL: there are none */
    struct rk_job job;
    struct rk_seats seats;
    cpu_set_t *sets; /* of each rank of this host, one after the other; NULL: nobody is bound */
    size_t set_size;
    void *topology; /* for the PMIx server, or NULL */
    struct rk_server *server; /* NULL: no rank can want one */
    struct rk_gone *gone;
    struct rk_fences *fences;
    struct rk_modexes *modexes;
    struct rk_errands *errands;
    struct rk_pmi1 *pmi1;
    bool plain; /* the programs are known to need none of it: non_mpi.h */
    struct rk_leftovers *leftovers;
    struct rk_singletons *singletons;
    bool *joined; /* [programs]: the front end knows that a rank of it here is a client */
    bool had_clients;  /* of PMIx */
    char host[256];
    uint32_t node, nlocal; /* its number; ranks of it */
    uint32_t order, nused; /* its number among the hosts that have ranks; how many those are */
    enum rk_agent_phase phase;

    /* rank_start.c, rank_reap.c */
    struct rk_rank *ranks; /* [nlocal], in the order of their numbers */
    uint32_t live;         /* started and not yet reaped */
    uint32_t clients;      /* connected to PMIx and not finalized */
    int exits;             /* epoll of the ranks' pidfds, which become ready in order of death */
    pid_t stand_in;        /* proxy_client.c: the one that runs now, or 0 */
    struct rk_rank *stood_for;
    bool probing;          /* and what becomes of it tells whether the PMIx server answers */

    /* rank_output.c, rank_input.c */
    struct rk_direct *direct; /* or NULL */
    struct rk_outputs *outputs;
    struct rk_inputs *inputs;
    int terminal; /* master of the one that --pty gives to a rank, or -1 */

    struct rk_watch *watch; /* rank_progress.h */
    int end_signal;         /* what the end begins with, if not TERM */
    uint64_t alone_ns;       /* since then no process of the job is left, but pipes are open */
    uint32_t second_half_ms; /* of the grace, after TERM has followed that signal */

    struct event *on_exits, *on_child, *on_term, *on_grace, *on_quiet, *on_stop, *on_stand_in;
};

/* rank_start.c: programs that the front end has left to the hosts to find. On failure *code and text say why. */
rank_status_t rk_ranks_find(struct rk_agent *agent, int *code, char *text, size_t len);
/* rank_start.c: start all ranks. On failure *code and text say why; what was started is killed. */
rank_status_t rk_ranks_start(struct rk_agent *agent, int *code, char *text, size_t len);

/* rank_reap.c: collect who has exited. */
void rk_ranks_reap(struct rk_agent *agent);
/* Is any descendant left? */
bool rk_ranks_gone(const struct rk_agent *agent);

/* A rank of this host by its number in the job, or NULL. */
struct rk_rank *rk_agent_rank(const struct rk_agent *agent, uint32_t rank);

/* local_ranks.c: who sits where. False: what came makes no sense. */
bool rk_agent_take_job(struct rk_agent *agent, struct rk_unpacker *u);
bool rk_agent_take_seats(struct rk_agent *agent, struct rk_unpacker *u);
const cpu_set_t *rk_agent_cpus(const struct rk_agent *agent, uint32_t local);

/* host_report.c: tell xrun what this host is like. */
void rk_agent_report(struct rk_agent *agent);
void rk_agent_report_topology(struct rk_agent *agent);

/* pmi_clients.c: what PMIx's and PMI-1's clients among the ranks do. */
extern const struct rk_server_events rk_clients_server_events;
extern const struct rk_modex_ops rk_clients_modex_ops;
extern const struct rk_pmi1_ops rk_clients_pmi1_ops[2]; /* [1]: with other hosts */
void rk_clients_fence_done(void *arg, void *token, int status, const void *data, size_t len);

/* job_start.c: what can be done before this agent is told its job; nothing where setup does not say enough. */
void rk_agent_begin(struct rk_agent *agent);
/* The agent has been told its seats and its job. */
void rk_agent_run_job(struct rk_agent *agent);

/* agent.c: told by the others. */
void rk_agent_end(struct rk_agent *agent, uint32_t grace_ms);
/* Something ended; see whether all is done. */
void rk_agent_check_done(struct rk_agent *agent);

/* usage.c: for --json, else they say nothing: once ranks have started, and when one has ended. */
struct rusage;
void rk_account_placed(struct rk_agent *agent);
void rk_account_usage(struct rk_agent *agent, uint32_t rank, const struct rusage *usage);

/* rank_output.c: the pipes that ranks write to. */
rank_status_t rk_outputs_open(struct rk_agent *agent, struct rk_outputs **out);
void rk_outputs_close(struct rk_outputs *outputs);
/* A pipe for a stream (1 or 2) of the local-th rank: *fd is the end for the rank. */
rank_status_t rk_outputs_add(struct rk_outputs *outputs, uint32_t local, int stream, int *fd);
/* Its terminal instead, for both streams; the master is taken over. */
rank_status_t rk_outputs_add_terminal(struct rk_outputs *outputs, uint32_t local, int master);
/* Take what its pipes hold now. */
void rk_outputs_drain(struct rk_outputs *outputs, uint32_t local);
/* All processes of the job are gone: what the pipes hold now is the last that counts. */
void rk_outputs_note_last(struct rk_outputs *outputs);
/* Those outside who write on have had their time: no more is read from pipes that have brought that. */
void rk_outputs_cut(struct rk_outputs *outputs);
/* Pipes that may still bring something. */
uint32_t rk_outputs_open_count(const struct rk_outputs *outputs);
/* Is reading stopped, or something still to be written, because the user does not keep up? */
bool rk_outputs_stalled(const struct rk_outputs *outputs);
/* Others will write to standard output, too: leave all of it to the front end from now on. */
void rk_outputs_share(struct rk_outputs *outputs);
/* What a rank has logged, if it is ours to write. */
bool rk_outputs_log(struct rk_outputs *outputs, uint32_t rank, int stream, const char *text);
/* The front end has passed bytes on. */
void rk_outputs_taken(struct rk_outputs *outputs, uint32_t bytes);
/* Nobody takes them any more: they go nowhere. */
void rk_outputs_let_go(struct rk_outputs *outputs);

/* rank_input.c: standard input of the ranks that shall have it. */
bool rk_inputs_wanted(const struct rk_job *job, uint32_t rank);
rank_status_t rk_inputs_open(struct rk_agent *agent, struct rk_inputs **out);
/* A pipe for one more of them: *fd is the end for the rank. */
rank_status_t rk_inputs_add(struct rk_inputs *inputs, int *fd);
/* One that has a terminal; its master is taken over. */
rank_status_t rk_inputs_add_terminal(struct rk_inputs *inputs, int master);
void rk_inputs_close(struct rk_inputs *inputs);
void rk_inputs_put(struct rk_inputs *inputs, const void *data, size_t len);

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
void rk_stand_in_check(struct rk_agent *agent);
bool rk_stand_in_reaped(struct rk_agent *agent, pid_t pid, int status);
int rk_stand_in_main(void);
#define RK_STAND_IN_NAME "xrun-stand-in"

#endif
