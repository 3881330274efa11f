/*
 * bind.h: which cores each rank of this host gets.
 */
#ifndef RK_LAUNCHER_BIND_H
#define RK_LAUNCHER_BIND_H

#include "launcher/job.h"

#include <sched.h>
#include <stdbool.h>

struct rk_bind_plan {
    cpu_set_t *sets; /* one after the other; NULL: nobody is bound */
    size_t set_size; /* bytes of one */
    uint32_t units; /* processing units that this process may use */
    bool oversubscribed;
    void *topology; /* what was loaded for it, or NULL if that was not needed */
};

/* RANK_ERR_COUNT: cores for each rank were asked for and there are too few; err holds a line. */
rank_status_t rk_bind_plan(enum rk_bind how, uint32_t n, struct rk_bind_plan *out, char *err,
                           size_t errlen);
/* NULL and a zeroed one are fine. */
void rk_bind_clear(struct rk_bind_plan *plan);

const cpu_set_t *rk_bind_of(const struct rk_bind_plan *plan, uint32_t rank);

#endif
