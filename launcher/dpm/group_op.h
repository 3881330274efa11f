/*
 * group_op.h: what processes of several jobs do together: fence, connect, disconnect.
 *
 * Kept by the first xrun. Each agent comes once, when all its own processes that
 * take part have come to it, and says how many they are; with the last all are
 * answered. One process that has ended is the end of it for all, and so is the
 * time-out of one that has come; who comes after a time-out begins anew.
 */
#ifndef RK_LAUNCHER_DPM_GROUP_OP_H
#define RK_LAUNCHER_DPM_GROUP_OP_H

#include "launcher/util/pack.h"
#include "launcher/dpm/rpc.h"

#include <event2/event.h>

struct rk_gathers;

/* BROKEN: its client is gone, but another may follow. */
enum rk_presence { RK_PRESENT, RK_BROKEN, RK_ENDED };

struct rk_gathers_ops {
    /* The number of a job, or RK_NO_JOB. */
    uint32_t (*job)(void *arg, const char *id);
    /* Was there such a job? */
    bool (*past)(void *arg, const char *id);
    uint32_t (*size)(void *arg, uint32_t job);
    /* Of a rank; RK_ALL_RANKS: of that of the job's of which least is left. */
    enum rk_presence (*presence)(void *arg, uint32_t job, uint32_t rank);
    /* All of the jobs have come. */
    void (*together)(void *arg, enum rk_errand what, const uint32_t *jobs, uint32_t njobs);
    void (*answer)(void *arg, const struct rk_asker *who, enum rk_errand_status status,
                   const void *data, size_t len, const uint32_t *jobs, uint32_t njobs);
};

rank_status_t rk_gathers_open(struct event_base *base, const struct rk_gathers_ops *ops, void *arg, struct rk_gathers **out);
/* NULL is fine. Nobody is answered. */
void rk_gathers_close(struct rk_gathers *gathers);

/* An agent comes; u is the errand's payload. */
void rk_gathers_join(struct rk_gathers *gathers, enum rk_errand what, const struct rk_asker *who,
                     struct rk_unpacker *u);
/* A rank (RK_ALL_RANKS: all of the job) has ended, or is broken. */
void rk_gathers_ended(struct rk_gathers *gathers, uint32_t job, uint32_t rank);
void rk_gathers_broken(struct rk_gathers *gathers, uint32_t job, uint32_t rank);

#endif
