/*
 * job.h: a job as the front end tells it to an agent.
 */
#ifndef XR_LAUNCHER_JOB_JOB_H
#define XR_LAUNCHER_JOB_JOB_H

#include "launcher/util/pack.h"
#include "launcher/exec/rlimits.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define XR_MAX_RANKS (1 << 20)
#define XR_PMI1_FD 3 /* in a rank: its connection to the PMI-1 server */

/* The size of a terminal. */
struct xr_window {
    uint16_t rows, cols;
};

/* One of the job's programs; its ranks follow each other, and those of the program before it. */
struct xr_app {
    uint32_t first, n; /* ranks */
    char *program;     /* path that is executed; without a slash: a name that its hosts look for */
    char **argv;
    char **env;        /* what its ranks have besides, or instead of, the job's */
    char *wdir;        /* absolute */
    char *path;        /* where they look before PATH, or NULL */
};

/* Who reads xrun's standard input, but for a rank's number. */
#define XR_INPUT_NONE UINT32_MAX
#define XR_INPUT_ALL (UINT32_MAX - 1)
#define XR_PTY_NONE UINT32_MAX

/* Where a job comes from that a rank of another has spawned. */
struct xr_origin {
    char *job; /* NULL: it was not spawned */
    uint32_t rank;
    void *outline; /* of that job (job_info.h) */
    size_t len;
    char **keys; /* key=value: put for PMI-1 before anybody has; or NULL */
};

struct xr_job {
    char *id;      /* the PMIx namespace, XRUN_JOB */
    uint32_t size; /* ranks of all programs */
    uint32_t universe; /* as many as the hosts take: MPI_UNIVERSE_SIZE */
    bool slots_given;  /* some host's slots were given, and universe is no guess by cores */
    struct xr_app *apps;
    uint32_t napps;
    char **env;    /* of every rank; each gets its program's and its own variables on top */
    bool report;   /* --json: the agents tell more */
    bool no_mpi;   /* --mpi none: ranks get neither PMIx nor PMI-1 */
    bool torch;    /* ranks get the variables of torch_env.h */
    uint32_t input; /* the rank that reads xrun's standard input, or XR_INPUT_* */
    uint32_t pty;   /* the rank that gets a terminal, or XR_PTY_NONE */
    struct xr_window window; /* of that */
    uint32_t nhosts;   /* those that have ranks and those that have none */
    char **hosts;      /* [nhosts] and a NULL: their names */
    uint32_t *host_of; /* [size] by rank */
    uint32_t fanout;   /* of the tree of agents */
    uint64_t nofile;     /* soft limit of open files that the ranks shall have */
    struct xr_ulimits limits; /* and the others */
    uint64_t started_ns; /* when xrun began, for the start-up budget */
    struct xr_origin origin;
};

/* What one host alone is told: where its ranks are bound to. */
struct xr_seats {
    uint32_t units; /* cores that the ranks of the host share */
    bool oversubscribed;
    char **cpus; /* by local rank: a list as "0-3,8", or empty for one that is not bound */
};

/* Which program a rank runs. */
const struct xr_app *xr_job_app_of(const struct xr_job *job, uint32_t rank);

/* The hosts that have ranks, and which: as PMIx wants to hear of them. */
struct xr_job_map {
    uint32_t n;
    const char **hosts; /* names, the job's */
    char **ranks;       /* "0,1,2" */
    bool runs;          /* those of each host follow each other */
};

rank_status_t xr_job_map_make(const struct xr_job *job, struct xr_job_map *out);
void xr_job_map_clear(struct xr_job_map *map);

/* The ranks of each host, in the order of their numbers. */
struct xr_by_host {
    uint32_t *first; /* [nhosts + 1]: where a host's begin in ranks; the next host's are behind */
    uint32_t *ranks; /* [size] */
};

/* One pass over all ranks, however many hosts there are. Clear it in any case. */
rank_status_t xr_by_host_make(const struct xr_job *job, struct xr_by_host *out);
void xr_by_host_clear(struct xr_by_host *by_host);

/* How many ranks a host has. */
uint32_t xr_job_ranks_on(const struct xr_job *job, uint32_t host);
/* Say that the one program of a job has n ranks. */
void xr_job_set_size(struct xr_job *job, uint32_t n);

/* Frees what the job holds, not the job. NULL is fine. */
void xr_job_clear(struct xr_job *job);
void xr_job_pack(const struct xr_job *job, struct xr_packer *p);
/* Clear the job whatever is returned. */
rank_status_t xr_job_unpack(struct xr_unpacker *u, struct xr_job *out);

void xr_seats_clear(struct xr_seats *seats);
void xr_seats_pack(const struct xr_seats *seats, struct xr_packer *p);
rank_status_t xr_seats_unpack(struct xr_unpacker *u, struct xr_seats *out);

#endif
