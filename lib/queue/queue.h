/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h: run persistent operations in the order of a device's stream.
 *
 * Room: queues of streams: starts, their words, the requests that count them.
 * Callers: lib/world, which opens the room; the program.
 * Never: calls a driver; waits in progress.
 * Tests: tests/standin/device_queue.c.
 */
#ifndef RK_QUEUE_QUEUE_H
#define RK_QUEUE_QUEUE_H

#include "lib/core/room.h"
#include "lib/mem/device_stream.h"

extern const struct rk_room rk_room_queue;

#endif
