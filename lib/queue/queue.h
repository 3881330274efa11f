/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h: run persistent operations in the order of a device's stream.
 *
 * Room: queues of streams: starts, their words, the requests that count them.
 * Callers: lib/world, the program.
 * Never: calls a driver; waits in progress.
 * Tests: tests/standin/device_queue.c.
 */
#ifndef RK_QUEUE_QUEUE_H
#define RK_QUEUE_QUEUE_H

#include "lib/core/room.h"
#include "lib/mem/device_stream.h"

struct rk_ctx;

extern const struct rk_room rk_room_queue;

/* rank_queue_create in a context. */
rank_status_t rk_queue_create(struct rk_ctx *ctx, rank_team_t team, const rank_queue_opts_t *opts, rank_queue_t *out);

#endif
