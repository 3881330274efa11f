/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_server.h: the PMIx server of an agent.
 *
 * A thin boundary round PMIx: nothing of the launcher outside this folder
 * includes pmix.h. One file per upcall. What clients do comes back through
 * xr_server_events, always in the agent's loop.
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
struct xr_notice;

/* The process of a rank of this host. */
struct xr_server_process {
    const char *host, *program;
    pid_t pid;       /* 0: not started */
    bool connected;  /* is or was a client */
    bool ended;      /* then: */
    bool unfinished; /* without finalizing */
    int status;      /* as wait() gives it */
};

struct xr_server_events {
    void (*connected)(void *arg, uint32_t rank);
    void (*finalized)(void *arg, uint32_t rank);
    /* The rank's client has ended without that; the rank itself may live, if it is a wrapper script. PMIx lets no other
     * client connect in its name, if none has yet. */
    void (*lost)(void *arg, uint32_t rank);
    /* The rank waits in PMIx_Abort until this has returned. */
    void (*aborted)(void *arg, uint32_t rank, int code, const char *text);
    /* stream: 1 or 2 */
    void (*log)(void *arg, uint32_t rank, int stream, const char *text);
    /* All ranks of this host that take part have come to a fence with others, nranks 0 being all of the job; to be
     * answered with xr_server_fence_done. broken: not all of them have, for clients have ended meanwhile. */
    void (*fence)(void *arg, const uint32_t *ranks, uint32_t nranks, bool broken, const void *data,
                  size_t len, void *token);
    /* That is to be answered no more: its clients wait no longer. */
    void (*fence_late)(void *arg, void *token);
    /* What has a rank of another host committed? To be answered with xr_server_modex_done, after timeout_s at the
     * latest (0: whenever). */
    void (*modex)(void *arg, uint32_t rank, uint32_t timeout_s, void *token);
    /* A rank of this host has raised an event that is meant for other hosts too. */
    void (*raised)(void *arg, const struct xr_notice *notice);
    /* The answer to xr_server_look_up. */
    void (*looked_up)(void *arg, uint32_t id, bool found, const void *data, size_t len);
    /* To be answered with xr_server_errand_done; the packer is emptied. */
    void (*errand)(void *arg, enum xr_errand what, uint32_t rank, struct xr_packer *payload, void *token);
    /* A signal for ranks of the job, on whichever host; n 0: for all. */
    void (*control)(void *arg, int sig, const uint32_t *ranks, uint32_t n);
    void (*process)(void *arg, uint32_t rank, struct xr_server_process *out);
    /* Has a rank of this host ended? */
    bool (*ended)(void *arg, uint32_t rank);
    /* The call under way will take long. */
    void (*busy)(void *arg);
};

struct xr_server_app {
    uint32_t first, n; /* ranks */
};

struct xr_server_job {
    const char *id;   /* namespace */
    const char *host; /* this one */
    uint32_t size;    /* ranks */
    uint32_t universe; /* as many as the hosts take */
    const struct xr_server_app *apps; /* of several programs, or NULL */
    uint32_t napps;
    const char *folder; /* for clients' files, made and filled by them; or NULL */
    uint32_t nhosts;  /* that have ranks */
    const char *const *hosts;      /* their names */
    const char *const *ranks_of;   /* of each, "0,1,2" */
    bool runs;        /* those of each host follow each other */
    const uint32_t *local, nlocal; /* ranks of this host */
    bool oversubscribed;
    const struct xr_origin *origin;
    void *topology;   /* a loaded hwloc_topology_t, or NULL */
};

/* Initialize the server before anything is known but the job's name and what this host is called in it: who knows that
 * early saves the time. Whether it worked xr_server_open says, which must be called with the same two. */
void xr_server_begin(const char *id, const char *host);
/*
 * Initialize the server and register the job. *init_ns and *register_ns: how
 * long that took. One server a process.
 */
rank_status_t xr_server_open(struct event_base *base, const struct xr_server_job *job,
                             const struct xr_server_events *events, void *arg,
                             struct xr_server **out, uint64_t *init_ns, uint64_t *register_ns);

/* What a rank's environment needs to find this server, as a NULL-terminated array of NAME=value;
 * free with xr_strings_free. NULL: out of memory or refused by PMIx. */
char **xr_server_rank_env(struct xr_server *server, uint32_t rank);

/* All ranks of this host are gone: what clients wanted removed after the job goes. NULL is fine. job_control.c */
void xr_server_end_job(struct xr_server *server);

/* How many connections of other users this process's server has turned away. */
unsigned xr_server_strangers(void);

/* Of the PMIx library, as "4.2.2". */
const char *xr_server_version(void);

/* Run what clients have said up to now: before a rank's end is judged. */
void xr_server_catch_up(struct xr_server *server);

/* Answers to what clients asked; token is freed. status: 0, or the fence failed. */
void xr_server_fence_done(struct xr_server *server, void *token, int status, const void *data,
                          size_t len);
void xr_server_modex_done(struct xr_server *server, void *token, enum xr_found found, const void *data,
                          size_t len);
/* answer: as rpc.h says, or NULL. */
void xr_server_errand_done(struct xr_server *server, void *token, struct xr_unpacker *answer);
/* What has a rank of this host committed? Answered by events->looked_up, once it has, which may be never. */
void xr_server_look_up(struct xr_server *server, uint32_t rank, uint32_t id);
/* The rank has ended: events->looked_up is called soon in any case, perhaps once more than there was an answer. */
void xr_server_settle(struct xr_server *server, uint32_t id);

/* Tell the clients of this host that want to know of an event that a rank of another has raised, or one of another job;
 * job: its name, or NULL for the own one. */
void xr_server_tell(struct xr_server *server, const char *job, const struct xr_notice *notice);

/* The job ends: PMIx need not forget those who die from now on. */
void xr_server_ending(struct xr_server *server);

/* Tell all clients of this host that a rank died. */
void xr_server_tell_death(struct xr_server *server, uint32_t rank, bool by_signal);
/* The same of one of another job; XR_ALL_RANKS: that job is over. */
void xr_server_tell_other(struct xr_server *server, const char *job, uint32_t rank, bool by_signal);
/* A job is over: PMIx forgets the one that is over for the longest time, if there are many. */
void xr_server_forget_past(struct xr_server *server, const char *id);

#endif
