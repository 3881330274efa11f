/* SPDX-License-Identifier: BSD-3-Clause */
/* two_level.h: build the phases of collectives on two levels. */
#ifndef RK_COLLECTIVES_TWO_LEVEL_H
#define RK_COLLECTIVES_TWO_LEVEL_H

#include "collectives/algo.h"
#include "collectives/hosts.h"

/* Tags of phases. */
enum rk_phase_tag { RK_TO_LEADER, RK_BETWEEN, RK_FROM_LEADER };

/* A group of ranks of the team. me: own place; negative: this rank is none of them. */
struct rk_group {
    const int *ranks;
    int n, me;
};

struct rk_group rk_group_of_host(const struct rk_hosts *h);

/* The call as the group sees it, without its averaging. */
struct rk_coll_call rk_group_call(const struct rk_coll_call *c, enum rk_coll_kind kind, int root, const void *sbuf, void *rbuf);

void rk_group_set_count(struct rk_coll_call *c, int64_t count);

/* Run a builder among a group of which this rank is a member. */
void rk_build_phase(struct rk_sched *s, struct rk_group g, enum rk_phase_tag tag, const struct rk_coll_call *c,
                    void (*build)(struct rk_sched *, const struct rk_coll_call *));

/* Run a phase of the own host in the cells of its ranks, or by a builder if they have none. */
void rk_build_on_host(struct rk_sched *s, enum rk_phase_tag tag, const struct rk_coll_call *c,
                      void (*build)(struct rk_sched *, const struct rk_coll_call *));

/* A step of this rank only, between phases. */
void rk_build_local(struct rk_sched *s, rank_status_t (*fn)(void *), void *arg);

#endif
