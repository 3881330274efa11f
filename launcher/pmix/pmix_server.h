/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_server.h: serve PMIx to the ranks of a host.
 *
 * Room: the PMIx server of an agent; one file an upcall, workarounds in quirks/.
 * Callers: agent.
 * Never: starts a process; sends a message to another host itself.
 * Tests: tests/launcher/{pmix_requests,dpm,long_name}.sh, tests/launcher/{pmix_hosts,dpm_hosts}.sh.
 *
 * Only this folder, lib/boot and agent/proxy_client.c include pmix.h. Calls of clients
 * come back through xr_server_events, always in the agent's loop.
 */
#ifndef XR_LAUNCHER_PMIX_PMIX_SERVER_H
#define XR_LAUNCHER_PMIX_PMIX_SERVER_H

#include "launcher/dpm/rpc.h"
#include "launcher/job/job.h"
#include "launcher/overlay/dmodex.h"
#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xr_server;
struct xr_event;

/* The process of a rank of this host. */
struct xr_server_process {
    const char *host, *program;
    pid_t pid;       /* 0: not started */
    bool connected;  /* it is or was a client */
    bool ended;      /* only then the next two hold */
    bool unfinished; /* it ended without PMIx_Finalize */
    int status;      /* of wait() */
};

struct xr_server_events {
    void (*connected)(void *arg, uint32_t rank);
    void (*finalized)(void *arg, uint32_t rank);
    /* The rank's client has ended without PMIx_Finalize. The rank may live, if it is a wrapper script. No other client can
     * connect in its name later. */
    void (*lost)(void *arg, uint32_t rank);
    /* The rank waits in PMIx_Abort until this has returned. */
    void (*aborted)(void *arg, uint32_t rank, int code, const char *text);
    /* stream: 1 or 2 */
    void (*log)(void *arg, uint32_t rank, int stream, const char *text);
    /* All local participants have called a fence with other hosts; nranks 0: all ranks of the job. Answer it by
     * xr_server_fence_done. broken: local participants were lost. */
    void (*fence)(void *arg, const uint32_t *ranks, uint32_t nranks, bool broken, const void *data,
                  size_t len, void *token);
    /* The time-out of a fence is over: do not answer it. */
    void (*fence_late)(void *arg, void *token);
    /* A request for the committed data of a rank of another host. Answer it by xr_server_dmodex_done, within timeout_s
     * unless that is 0. */
    void (*modex)(void *arg, uint32_t rank, uint32_t timeout_s, void *token);
    /* A rank of this host has raised an event for other hosts. */
    void (*raised)(void *arg, const struct xr_event *event);
    /* The answer to xr_server_lookup. */
    void (*looked_up)(void *arg, uint32_t id, bool found, const void *data, size_t len);
    /* A request for the first xrun. Empties the packer. Answer it by xr_server_rpc_done. */
    void (*rpc)(void *arg, enum xr_rpc what, uint32_t rank, struct xr_packer *payload, void *token);
    /* Signal ranks of the job on any host; n 0: all. */
    void (*control)(void *arg, int sig, const uint32_t *ranks, uint32_t n);
    /* Fill in the state of a local rank. */
    void (*process)(void *arg, uint32_t rank, struct xr_server_process *out);
    /* Has a rank of this host ended? */
    bool (*ended)(void *arg, uint32_t rank);
    /* The present call will take seconds: suspend the keepalive. */
    void (*busy)(void *arg);
};

struct xr_server_app {
    uint32_t first, n; /* ranks */
};

struct xr_server_job {
    const char *id;   /* namespace */
    const char *host; /* this one */
    uint32_t size;    /* ranks */
    uint32_t universe; /* slots of the hosts */
    const struct xr_server_app *apps; /* if there are several programs, or NULL */
    uint32_t napps;
    const char *folder; /* for files of clients, which make it; or NULL */
    uint32_t nhosts;  /* hosts with ranks */
    const char *const *hosts;      /* their names */
    const char *const *ranks_of;   /* of each host, "0,1,2" */
    bool runs;        /* the ranks of each host are consecutive */
    const uint32_t *local, nlocal; /* ranks of this host */
    bool oversubscribed;
    const struct xr_origin *origin;
    void *topology;   /* a loaded hwloc_topology_t, or NULL */
};

/* Initialize the server early, in parallel with other work. xr_server_open returns the status; call it with the same id and
 * host. */
void xr_server_begin(const char *id, const char *host);
/*
 * Initialize the server if needed, and register the job. *init_ns and *register_ns:
 * the time that took. One server a process. *out is valid even on failure, once set.
 */
rank_status_t xr_server_open(struct event_base *base, const struct xr_server_job *job,
                             const struct xr_server_events *events, void *arg,
                             struct xr_server **out, uint64_t *init_ns, uint64_t *register_ns);

/* The variables by which a rank finds this server: a NULL-terminated array of NAME=value. NULL without memory, or if PMIx
 * refuses. Caller frees with xr_strv_free. */
char **xr_server_rank_env(struct xr_server *server, uint32_t rank);

/* All local ranks have ended: deregister the job, which removes files that clients have registered. No-op if NULL. */
void xr_server_end_job(struct xr_server *server);

/* The number of connections of other users that the server has rejected. */
unsigned xr_server_rejected(void);

/* The version of libpmix, as "4.2.2". */
const char *xr_server_version(void);

/* Handle all pending calls of clients; before the end of a rank is handled. */
void xr_server_run_posts(struct xr_server *server);

/* Answer calls of clients. Frees token. status: not 0 if the fence has failed. */
void xr_server_fence_done(struct xr_server *server, void *token, int status, const void *data,
                          size_t len);
void xr_server_dmodex_done(struct xr_server *server, void *token, enum xr_found found, const void *data,
                          size_t len);
/* answer: as in rpc.h, or NULL. */
void xr_server_rpc_done(struct xr_server *server, void *token, struct xr_unpacker *answer);
/* Request the committed data of a local rank. events->looked_up is called once there is data, which may be never. */
void xr_server_lookup(struct xr_server *server, uint32_t rank, uint32_t id);
/* The rank has ended: events->looked_up is called soon in any case, possibly a second time. */
void xr_server_settle(struct xr_server *server, uint32_t id);

/* Deliver an event of a rank of another host or job to the clients of this host. job: its name, or NULL for the own one. */
void xr_server_deliver_event(struct xr_server *server, const char *job, const struct xr_event *event);

/* The job ends: do not deregister clients that die from now on. */
void xr_server_ending(struct xr_server *server);

/* Deliver the death of a rank to all clients of this host. */
void xr_server_deliver_death(struct xr_server *server, uint32_t rank, bool by_signal);
/* The same for a rank of another job; XR_ALL_RANKS: that job has ended. */
void xr_server_deliver_other_death(struct xr_server *server, const char *job, uint32_t rank, bool by_signal);
/* A job has ended. Beyond XR_SERVER_PAST ended jobs the oldest is deregistered. */
void xr_server_job_ended(struct xr_server *server, const char *id);

#endif
