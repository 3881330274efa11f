/*
 * job.h: a job as the front end tells it to an agent.
 */
#ifndef RK_LAUNCHER_JOB_H
#define RK_LAUNCHER_JOB_H

#include "launcher/codec.h"
#include "launcher/terminal.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum rk_bind {
    RK_BIND_SHARE, /* each rank gets an equal share of the cores, if there is a core for each */
    RK_BIND_CORE,  /* each rank gets one core */
    RK_BIND_NONE
};

/* One of the job's programs; its ranks follow each other, and those of the program before it. */
struct rk_app {
    uint32_t first, n; /* ranks */
    char *program;     /* path that is executed */
    char **argv;
    char **env;        /* what its ranks have besides, or instead of, the job's */
    char *wdir;        /* absolute */
};

/* Who reads xrun's standard input, but for a rank's number. */
#define RK_INPUT_NONE UINT32_MAX
#define RK_INPUT_ALL (UINT32_MAX - 1)
#define RK_PTY_NONE UINT32_MAX

struct rk_job {
    char *id;      /* the PMIx namespace, XRUN_JOB */
    uint32_t size; /* ranks of all programs */
    struct rk_app *apps;
    uint32_t napps;
    char **env;    /* of every rank; each gets its program's and its own variables on top */
    bool report;   /* --json: the agents tell more */
    bool torch;    /* ranks get the variables of torch.h */
    uint32_t input; /* the rank that reads xrun's standard input, or RK_INPUT_* */
    uint32_t pty;   /* the rank that gets a terminal, or RK_PTY_NONE */
    struct rk_window window; /* of that */
    enum rk_bind bind;
    uint64_t nofile;     /* soft limit of open files that the ranks shall have */
    uint64_t started_ns; /* when xrun began, for the start-up budget */
};

/* Which program a rank runs. */
const struct rk_app *rk_job_app_of(const struct rk_job *job, uint32_t rank);

/* Frees what the job holds, not the job. NULL is fine. */
void rk_job_clear(struct rk_job *job);
void rk_job_pack(const struct rk_job *job, struct rk_packer *p);
/* Clear the job whatever is returned. */
rank_status_t rk_job_unpack(struct rk_unpacker *u, struct rk_job *out);

#endif
