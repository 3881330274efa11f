/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.h: move short blocks of one node in schedules, without messages.
 *
 * A call is one chunk (slices.h), so it runs in order with those that slices moves. Each rank has a line for each of its
 * cells: the number of the chunk from 1 and at most 56 bytes of its block, so that a short block and its flag are one cache
 * line. A longer block lies in the cell. A reader raises "out" as in slices; a line is written again when the readers of
 * the chunk that was last in its cell have passed that.
 */
#ifndef RK_COLLECTIVES_SHM_LINES_H
#define RK_COLLECTIVES_SHM_LINES_H

#include "collectives/shm/arena.h"
#include "lib/core/describe.h"

/* The step's function: advance without blocking. True: the call is complete. */
bool rk_lines_advance(void *lines);
/* Name the members that a step of rk_lines_advance waits for. */
void rk_lines_describe(const void *lines, struct rk_wait_for *out);

#endif
