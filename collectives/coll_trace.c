/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_trace.c: print a line a collective call. */
#include "collectives/coll_trace.h"
#include "collectives/state.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

RK_COLD void rk_trace_begin(struct rk_trace *t, const struct rk_coll_call *c, const struct rk_algo *algo)
{
    *t = (struct rk_trace){.number = rk_coll_number(c->team) + (algo != NULL),
                           .team = c->team->id,
                           .bytes = c->bytes,
                           .algo = algo ? algo->name : "none",
                           .size = c->team->size,
                           .kind = (uint8_t)c->kind};
    t->began = rk_clock_ns();
}

RK_COLD void rk_trace_end(const struct rk_trace *t, rank_status_t status)
{
    double us = (double)(rk_clock_ns() - t->began) / 1e3;

    /* At any RANK_LOG. */
    rk_log_write(RK_LOG_INFO, "collective %llu of team %llx (%d ranks): %s, %zu bytes, %s, %.1f us%s%s",
                 (unsigned long long)t->number, (unsigned long long)t->team, t->size, rk_coll_name[t->kind], t->bytes, t->algo, us,
                 status ? ": " : "", status ? rank_status_string(status) : "");
}
