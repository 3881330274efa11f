/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h: describe a job, as the front end sends it to an agent.
 *
 * Room: the job as data, and its exit status.
 * Called by: agent, cli, compat, dpm, frontend, iof, monitor, overlay, pmix.
 * Never: starts a process; opens a connection.
 * Tests: tests/launcher/unit/launcher_test.c, tests/fuzz/fuzz_wire.c.
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

/* A program of the job. Its ranks are contiguous and follow those of the program before it. */
struct xr_app {
    uint32_t first, n; /* ranks */
    char *program;     /* path to execute; without a slash: a name that each host searches for */
    char **argv;
    char **env;        /* variables of its ranks, in addition to, or instead of, the job's */
    char *wdir;        /* absolute */
    char *path;        /* directories searched before PATH, or NULL */
};

/* Special values of the rank that reads xrun's standard input. */
#define XR_INPUT_NONE UINT32_MAX
#define XR_INPUT_ALL (UINT32_MAX - 1)
#define XR_PTY_NONE UINT32_MAX

/* The origin of a spawned job. */
struct xr_origin {
    char *job; /* NULL: it was not spawned */
    uint32_t rank;
    void *job_info; /* info of that job (job_info.h) */
    size_t len;
    char **keys; /* key=value: preset for PMI-1; or NULL */
};

struct xr_job {
    char *id;      /* the PMIx namespace, XRUN_JOB */
    uint32_t size; /* ranks of all programs */
    uint32_t universe; /* ranks that the hosts take: MPI_UNIVERSE_SIZE */
    bool slots_given;  /* slots of some host were given, so universe is not derived from cores */
    struct xr_app *apps;
    uint32_t napps;
    char **env;    /* of every rank; program's and rank's own variables are added */
    bool report;   /* --json: agents report more */
    bool no_mpi;   /* --mpi none: ranks get neither PMIx nor PMI-1 */
    uint32_t gpus_per_rank, nics_per_rank; /* 0: not given */
    char *gpu_bind, *nic_bind; /* "": no option; "none", "closest", or numbers, as "0,2" */
    bool torch;    /* ranks get the variables of torch_env.h */
    uint32_t input; /* the rank that reads xrun's standard input, or XR_INPUT_* */
    uint32_t pty;   /* the rank that gets a terminal, or XR_PTY_NONE */
    struct xr_window window; /* of that */
    uint32_t nhosts;   /* with and without ranks */
    char **hosts;      /* [nhosts] and a NULL: their names */
    uint32_t *host_of; /* [size] by rank */
    uint32_t fanout;   /* of the tree of agents */
    uint64_t nofile;     /* soft limit of open files of the ranks */
    struct xr_rlimits limits; /* and the others */
    uint64_t started_ns; /* when xrun began, for the start-up budget */
    struct xr_origin origin;
};

/* Launch parameters of one host: the binding of its ranks. */
struct xr_local_ranks {
    uint32_t units; /* cores that the ranks of the host share */
    bool oversubscribed;
    char **cpus; /* by local rank: a list as "0-3,8", or empty if it is not bound */
};

/* Return the program of a rank. */
const struct xr_app *xr_job_app_of(const struct xr_job *job, uint32_t rank);

/* The hosts with ranks, and their ranks, in the form that PMIx uses. */
struct xr_job_map {
    uint32_t n;
    const char **hosts; /* names, the job's */
    char **ranks;       /* "0,1,2" */
    bool runs;          /* the ranks of each host are contiguous */
};

rank_status_t xr_job_map_make(const struct xr_job *job, struct xr_job_map *out);
void xr_job_map_clear(struct xr_job_map *map);

/* The ranks of each host, in ascending order. */
struct xr_by_host {
    uint32_t *first; /* [nhosts + 1]: start of a host's ranks in ranks; the next host's follow */
    uint32_t *ranks; /* [size] */
};

/* Runs in one pass over all ranks for any number of hosts. Clear it in any case. */
rank_status_t xr_by_host_make(const struct xr_job *job, struct xr_by_host *out);
void xr_by_host_clear(struct xr_by_host *by_host);

/* Return the number of ranks of a host. */
uint32_t xr_job_ranks_on(const struct xr_job *job, uint32_t host);
/* Set the number of ranks of a job with one program. */
void xr_job_set_size(struct xr_job *job, uint32_t n);

/* No-op if NULL. Frees what the job holds, not the job. */
void xr_job_clear(struct xr_job *job);
void xr_job_pack(const struct xr_job *job, struct xr_packer *p);
/* Clear the job whatever is returned. */
rank_status_t xr_job_unpack(struct xr_unpacker *u, struct xr_job *out);

void xr_local_ranks_clear(struct xr_local_ranks *local_ranks);
void xr_local_ranks_pack(const struct xr_local_ranks *local_ranks, struct xr_packer *p);
rank_status_t xr_local_ranks_unpack(struct xr_unpacker *u, struct xr_local_ranks *out);

#endif
