/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procs.h: number the processes of all jobs known to this one.
 *
 * The ranks of the own job have the numbers 0 to size - 1; each other job gets a range behind those. The numbers
 * are local. Teams and peers are stored by number, so the message path does not depend on the world of a peer. On
 * a wire a process is named by job id and rank (struct rk_procid), and only in the first packets of a connection;
 * the source of a frame is a rank in a team, on which all members agree.
 *
 * A rank of another job is reached by ucx only; its address blob comes with the introduction and is kept.
 */
#ifndef RK_CORE_PROCS_H
#define RK_CORE_PROCS_H

#include "lib/core/engine.h"

/*
 * Number a job of size ranks; *first: number of its rank 0. A known job, the own one included, keeps its numbers.
 */
rank_status_t rk_procs_add_job(struct rk_ctx *ctx, uint64_t job, int size, int *first);
/* Remove the numbers, if the job was added last and none of its ranks has become a peer. */
void rk_procs_remove_job(struct rk_ctx *ctx, uint64_t job);
void rk_procs_close(struct rk_ctx *ctx);

/* Number of a process, or -1 if its job is unknown. */
int rk_procs_number(struct rk_ctx *ctx, struct rk_procid id);
/* Process of a number. */
struct rk_procid rk_procs_id(struct rk_ctx *ctx, int number);

/* Store the ucx address of a rank of another job. */
rank_status_t rk_procs_set_card(struct rk_ctx *ctx, int number, const void *card, size_t len);

#endif
