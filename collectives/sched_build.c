/* SPDX-License-Identifier: BSD-3-Clause */
/* sched_build.c: build the parts that schedules of several reductions have. */
#include "collectives/algo.h"

struct divide {
    rank_dtype_t dtype;
    void *buf;
    int64_t count;
    int by;
};

static rank_status_t divide(void *arg)
{
    const struct divide *d = arg;

    rk_op_divide(d->dtype, d->buf, (size_t)d->count, d->by);
    return RANK_OK;
}

struct rk_step *rk_build_finish(struct rk_sched *s, struct rk_step *after,
                                const struct rk_coll_call *c, void *buf, int64_t count)
{
    struct divide *d;

    if (c->op != RANK_AVG)
        return after;
    d = rk_sched_scratch(s, sizeof(*d));
    *d = (struct divide){c->dtype, buf, count, c->team->size};
    return rk_sched_call(s, after, divide, d);
}

struct rk_step *rk_build_reduce_pair(struct rk_sched *s, struct rk_step *after,
                                     const struct rk_coll_call *c, int peer, void *dst,
                                     const void *mine, const void *theirs, int64_t count)
{
    bool lower = peer < c->team->rank;

    return rk_sched_reduce(s, after, dst, lower ? theirs : mine, lower ? mine : theirs,
                           (size_t)count);
}
