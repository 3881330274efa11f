/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_internal.h: what the files of the agent share: its state and their calls.
 *
 * Used by the files of this room only.
 */
#ifndef XR_LAUNCHER_AGENT_AGENT_INTERNAL_H
#define XR_LAUNCHER_AGENT_AGENT_INTERNAL_H

#include "launcher/agent/agent_state.h"
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
#include "lib/topo/topo_machine.h"

#include <event2/event.h>
#include <sched.h>

/*
 * A rank of this host. Its flags are independent: a rank may exit connected or not, finalized or not, and a script may
 * run one client after another.
 */
struct xr_rank {
    uint32_t rank;
    pid_t pid; /* 0: not started */
    int pidfd; /* or -1 */
    uint64_t start_ns;
    bool exited;
    int status; /* wait status, once it has exited */
    uint64_t exit_ns;
    bool connected, finalized; /* its last PMIx client */
    int clients;               /* its PMIx clients that are connected */
    bool lost_sent;            /* the front end was sent that its client is lost */
    bool proxied;              /* proxy_client.c has done all it can */
    int proxy_tries;           /* proxies that were started for it */
};

struct xr_progress;

/* Variables of a rank, as NAME=value; or NULL. */
struct xr_rank_devices {
    char *gpus; /* CUDA_VISIBLE_DEVICES */
    char *nics; /* RANK_NICS */
    char *text; /* XRUN_DEVICES, see pair_text.h */
};

struct xr_agent {
    /* What is constant. */
    const struct xr_setup *setup;
    bool remote; /* its parent is on another host: a property of the connection */
    char host[256];
    uint32_t node; /* its number */
    pid_t supervisor;
    struct xr_direct *direct; /* direct standard output, or NULL */

    enum xr_agent_state state; /* changed by xr_agent_state_set only */
    struct event_base *base;
    struct event *on_exits, *on_child, *on_term, *on_grace, *on_quiet, *on_stop, *on_proxy;

    /* The tree. */
    struct xr_tree *tree;
    struct xr_conn *wire;         /* to the front end or the parent agent; NULL: it is gone */
    struct xr_launch *launch; /* starts the agents below; NULL: there are none */
    struct xr_liveness *liveness;
    struct xr_fence_table *fences;
    struct xr_dmodex_table *dmodex;
    struct xr_rpc_table *rpcs;

    /* The job, once it has been received. */
    struct xr_job job;
    uint32_t nlocal;       /* ranks of this host */
    uint32_t order, nused; /* its number among the hosts that have ranks; how many those are */
    struct xr_local_ranks local_ranks;
    cpu_set_t *sets; /* of each rank of this host, one after the other; NULL: none is bound */
    size_t set_size;
    struct xr_rank_devices *devices; /* of each rank of this host; NULL: no option gives any */
    bool gpu_numbers; /* CUDA_VISIBLE_DEVICES holds numbers in PCI order */
    void *topology; /* for the PMIx server, or NULL */
    struct rk_machine machine; /* of this host; zeroed while it is not loaded */

    /* The ranks: rank_start.c, rank_reap.c. */
    struct xr_rank *ranks; /* [nlocal], in the order of their numbers */
    uint32_t live;         /* started and not yet reaped */
    int exits;             /* epoll of the ranks' pidfds, which become ready in order of death */
    struct xr_progress *progress;

    /* PMIx and PMI-1: pmi_clients.c. */
    struct xr_server *server; /* NULL: --mpi none */
    struct xr_pmi1 *pmi1;
    struct xr_shm_cleanup *shm_cleanup;
    struct xr_singletons *singletons;
    uint32_t clients; /* connected to PMIx and not finalized */
    bool had_clients; /* of PMIx, ever: stays set when the last one ends, while the job still runs */
    bool *joined;     /* [programs]: JOINED was sent, once for each */

    /* proxy_client.c */
    pid_t proxy_pid; /* the proxy that runs now, or 0 */
    struct xr_rank *proxy_rank;
    bool proxy_probes; /* its end shows whether the PMIx server still answers; proxies for finalized ranks do not */

    /* Streams: rank_output.c, rank_input.c. */
    struct xr_local_io io;
    struct xr_rank_output *outputs;
    struct xr_rank_input *inputs;
    int terminal; /* master of --pty's terminal, or -1 */

    /* The end: agent_terminate.c. */
    int end_signal;          /* first signal, or 0: TERM */
    uint32_t term_ms;        /* rest of the grace period, after TERM has followed that signal */
    uint64_t drain_ns;       /* since then all processes have ended, but pipes are open; in any state but DONE */
};

/* agent.c's parts. Each _open creates the timers of its file. */

/* agent_inbox.c. Return false if the message is malformed. */
bool xr_agent_receive(void *agent, uint32_t kind, struct xr_unpacker *u);
/* From a neighbour of the tree. */
bool xr_agent_receive_step(void *agent, uint32_t from, uint32_t kind, struct xr_unpacker *u);
/* The agent of node top is lost, and all below it. */
void xr_agent_note_lost(struct xr_agent *agent, uint32_t top);
rank_status_t xr_agent_inbox_open(struct xr_agent *agent);

/* agent_terminate.c: end all processes. grace_ms: between the first signal and SIGKILL; 0: SIGKILL at once. */
void xr_agent_end(struct xr_agent *agent, uint32_t grace_ms);
/* End the job on this host if all is done. Call when something has ended. */
void xr_agent_check_done(struct xr_agent *agent);
/* Collect children that have ended. Starts proxies, and ends the job if it must end or is done. */
void xr_agent_reap(struct xr_agent *agent);
/* Leave the loop once all agents below have left and all data are sent. */
void xr_agent_leave_if_sent(struct xr_agent *agent);
/* Signal all descendants. The commands that started the agents below are left out: they end with their agents. */
void xr_agent_signal_ranks(struct xr_agent *agent, int sig);
/* Report n further unauthenticated peers. No-op if 0. */
void xr_agent_send_unauthenticated(struct xr_agent *agent, uint32_t n);
rank_status_t xr_agent_terminate_open(struct xr_agent *agent);

/*
 * rank_program.c: find the programs whose paths the hosts must find. On failure *code is the exit code and text the
 * reason.
 */
rank_status_t xr_rank_programs_find(struct xr_agent *agent, int *code, char *text, size_t len);
/* rank_devices.c: choose GPUs and NICs of all ranks, if options give any. On failure as above. */
rank_status_t xr_rank_devices_choose(struct xr_agent *agent, int *code, char *text, size_t len);
/* rank_start.c: start all ranks. On failure as above; those that were started still run. */
rank_status_t xr_ranks_start(struct xr_agent *agent, int *code, char *text, size_t len);

/*
 * rank_reap.c: collect children that have ended, the ranks in order of death. Returns false if the PMIx server is
 * dead.
 */
bool xr_ranks_reap(struct xr_agent *agent);
/* Return whether no descendant is left. The commands that started the agents below do not count. */
bool xr_ranks_all_ended(const struct xr_agent *agent);

/* local_ranks.c: the rank of this host with this number in the job, or NULL. */
struct xr_rank *xr_agent_rank(const struct xr_agent *agent, uint32_t rank);
/* Unpack the job, and this host's part of it. Return false if the message is malformed. */
bool xr_agent_unpack_job(struct xr_agent *agent, struct xr_unpacker *u);
bool xr_agent_unpack_local_ranks(struct xr_agent *agent, struct xr_unpacker *u);
/* The cpuset of the local-th rank; NULL: it is not bound. */
const cpu_set_t *xr_agent_cpus(const struct xr_agent *agent, uint32_t local);

/* host_report.c: send xrun the properties of this host. */
void xr_agent_send_ready(struct xr_agent *agent);
void xr_agent_send_topology(struct xr_agent *agent);
void xr_agent_send_machine(struct xr_agent *agent);
/* Load agent->machine, unless it is. On failure writes one line into err. */
rank_status_t xr_agent_load_machine(struct xr_agent *agent, char *err, size_t errlen);

/* pmi_clients.c: callbacks of the servers for PMIx and PMI-1 clients. */
extern const struct xr_server_events xr_clients_server_events;
extern const struct xr_dmodex_ops xr_clients_dmodex_ops;
extern const struct xr_pmi1_ops xr_clients_pmi1_ops[2]; /* [1]: with other hosts */
void xr_clients_fence_done(void *arg, void *token, int status, const void *data, size_t len);

/* job_start.c: prepare what does not need the job. No-op if setup has no early part. */
void xr_agent_prepare(struct xr_agent *agent);
/* Start the job, which has been received. */
void xr_agent_start_job(struct xr_agent *agent);

/* usage.c, no-ops without --json. Send where the ranks run, once all have started; send what one has used. */
struct rusage;
void xr_usage_send_placed(struct xr_agent *agent);
void xr_usage_send(struct xr_agent *agent, uint32_t rank, const struct rusage *usage);

#endif
