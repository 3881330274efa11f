/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procs.h: number the processes of all jobs known to this one.
 *
 * The ranks of the own job have the numbers 0 to size - 1; each other job gets a range behind those, and gives it
 * back when it is gone: disconnected or dead, and in no team. A later job gets the range with another epoch. The
 * numbers are local. Teams and peers are stored by number, so the message path does not depend on the world of a peer. On
 * a wire a process is named by job id and rank (struct rk_procid), and only in the first packets of a connection;
 * the source of a frame is a rank in a team, on which all members agree.
 *
 * A rank of another job is reached by tcp or ucx only; its card comes with the introduction and is kept.
 */
#ifndef RK_CORE_PROCS_H
#define RK_CORE_PROCS_H

#include "lib/core/engine.h"

/*
 * Number a job of size ranks; *first: number of its rank 0. A known job, the own one included, keeps its numbers and
 * its epoch. A new job gets the lowest free range. epoch: the same in both jobs, derived from what introduces them.
 */
rank_status_t rk_procs_add_job(struct rk_ctx *ctx, uint64_t job, int size, uint16_t epoch, int *first);
/* Give its numbers back; drops its peers. No-op if the job is unknown. */
void rk_procs_remove_job(struct rk_ctx *ctx, uint64_t job);
/* The job is disconnected from the own one: the next sweep may give its numbers back. No-op if the job is unknown. */
void rk_procs_disconnect(struct rk_ctx *ctx, uint64_t job);
/* Hold the jobs of these n numbers (by 1), or release them (by -1). The own job is always held. */
void rk_procs_hold(struct rk_ctx *ctx, const int *numbers, int n, int by);
/* Give back the numbers of jobs that are disconnected or dead, and not held. Not from within progress. */
void rk_procs_sweep(struct rk_ctx *ctx);
void rk_procs_close(struct rk_ctx *ctx);

/* Number of a process, or -1 if its job is unknown. */
int rk_procs_number(struct rk_ctx *ctx, struct rk_procid id);
/* Process of a number. */
struct rk_procid rk_procs_id(struct rk_ctx *ctx, int number);

/* The process of this number has another id in its own context: owner is the hash of that. */
void rk_procs_set_owner(struct rk_ctx *ctx, int number, uint64_t owner);
/* Hash of the id that the process of a number has in its own context, and in its keys. */
uint64_t rk_procs_owner(struct rk_ctx *ctx, int number);

/* Epoch of a number's peer: 0 in the own job. */
uint16_t rk_procs_epoch(struct rk_ctx *ctx, int number);
/* Are all other processes of all known jobs dead? */
bool rk_procs_all_dead(const struct rk_ctx *ctx);

/* Is the process of a number known to be dead? */
RK_INLINE bool rk_procs_is_dead(const struct rk_ctx *ctx, int number)
{
    const struct rk_peer *p = ctx->engine->peers[number];

    return p && p->state == RK_PEER_DEAD;
}

/* Store the card of a rank of another job. */
rank_status_t rk_procs_set_card(struct rk_ctx *ctx, int number, const void *card, size_t len);

#endif
