/*
 * gathers.h: what processes of several jobs do together: fence, connect, disconnect.
 *
 * Kept by the first xrun. Each agent comes once, when all its own processes that
 * take part have come to it, and says how many they are; with the last all are
 * answered. One process that has ended is the end of it for all.
 */
#ifndef RK_LAUNCHER_GATHERS_H
#define RK_LAUNCHER_GATHERS_H

#include "launcher/codec.h"
#include "launcher/errands.h"

#define RK_NO_JOB UINT32_MAX

struct rk_gathers;

/* An errand of an agent. */
struct rk_gather_who {
    uint32_t job, node, id;
};

struct rk_gathers_ops {
    /* The number of a job, or RK_NO_JOB. */
    uint32_t (*job)(void *arg, const char *id);
    uint32_t (*size)(void *arg, uint32_t job);
    /* Has the rank (RK_ALL_RANKS: any) ended? */
    bool (*ended)(void *arg, uint32_t job, uint32_t rank);
    /* All of the jobs have come. */
    void (*together)(void *arg, enum rk_errand what, const uint32_t *jobs, uint32_t njobs);
    void (*answer)(void *arg, const struct rk_gather_who *who, enum rk_errand_status status,
                   const void *data, size_t len, const uint32_t *jobs, uint32_t njobs);
};

rank_status_t rk_gathers_open(const struct rk_gathers_ops *ops, void *arg, struct rk_gathers **out);
/* NULL is fine. Nobody is answered. */
void rk_gathers_close(struct rk_gathers *gathers);

/* An agent comes; u is the errand's payload. */
void rk_gathers_join(struct rk_gathers *gathers, enum rk_errand what, const struct rk_gather_who *who,
                     struct rk_unpacker *u);
/* A rank (RK_ALL_RANKS: all of the job) has ended. */
void rk_gathers_ended(struct rk_gathers *gathers, uint32_t job, uint32_t rank);

#endif
