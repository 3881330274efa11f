/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procs.h: processes of other jobs among the peers.
 *
 * Everybody that a process may talk to has a number, its own choice: the ranks of its own job are
 * 0 to size - 1, and each job that it gets to know has as many numbers behind those. Teams and
 * peers are kept by number, so that nothing on the way of a message asks what world somebody is of.
 * On wires a process is named by its job's id and its rank (struct rk_procid), and only in the first
 * packets between two; a frame's source is a rank in a team, which all its members agree on.
 *
 * A rank of another job is reached by ucx alone; its card comes with the introduction and is kept.
 */
#ifndef RK_CORE_PROCS_H
#define RK_CORE_PROCS_H

#include "lib/core/engine.h"

/* Give numbers to a job of size ranks; *first: of its rank 0. A job that is known, as our own is,
 * keeps those that it has. */
rank_status_t rk_worlds_add(struct rk_ctx *ctx, uint64_t job, int size, int *first);
/* Take them back, if the job is the last that was added and nobody has met one of its ranks. */
void rk_worlds_remove(struct rk_ctx *ctx, uint64_t job);
void rk_worlds_close(struct rk_ctx *ctx);

/* The number of a process, or -1 if its job is not known. */
int rk_worlds_number(struct rk_ctx *ctx, struct rk_procid id);
/* What a number stands for. */
struct rk_procid rk_worlds_id(struct rk_ctx *ctx, int number);

/* Keep the ucx card of a rank of another job. */
rank_status_t rk_worlds_set_card(struct rk_ctx *ctx, int number, const void *card, size_t len);

#endif
