/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices.h: move large messages of one node through chunked cells.
 *
 * Each rank of an arena has cells: a ring of cell_depth cells of cell_bytes. Only it writes to them, but for the sums of
 * a scan. A call moves its block in chunks that fit into a cell. Chunks are numbered over all calls of the team, so no counter is ever
 * reset; chunk c uses cell c % cell_depth. Each rank has a line with three counters, which only it raises:
 *
 *     in    chunks: their input has been copied into its cell
 *     sum   chunks of which it has reduced its slice, the share of a chunk that it reduces for all
 *     out   chunks that it has read from all cells that it reads
 *
 * A reader of chunk c waits for the writers' in (or sum) to pass c. A writer of chunk c waits until the readers of
 * the chunk that it last wrote to that cell have passed that with out. So phases of several chunks overlap, and a
 * rank never waits for a later call than its own.
 *
 * In the sum phase of a scan rank j turns slice j of each rank's cell into the prefix of that rank: it is the only
 * writer of slice j between all ranks' in and its own sum.
 *
 * In gatherv, scatterv and alltoallv not all ranks have the lengths. They agree on the number of chunks while chunk 0
 * moves: each rank announces its longest block, and all take the longest one. Chunks get their numbers when the calls
 * before are over. Chunk 0 has the length of each block, so a reader finds one that it does not expect.
 */
#ifndef RK_COLLECTIVES_SLICES_H
#define RK_COLLECTIVES_SLICES_H

#include "collectives/shm/arena.h"
#include "lib/core/describe.h"

/* Does a call of that kind fit into the cells of n ranks? elem: bytes of an element. */
bool rk_slices_fit(enum rk_coll_kind kind, int n, size_t elem);

struct slices;

/*
 * Add a step that moves a call of the arena's ranks through the cells, to a schedule that lines up for them. root, counts
 * and displacements are by rank of the arena; c->team is not used. NULL: out of memory.
 */
struct slices *rk_slices_add(struct rk_sched *s, struct rk_arena *a, const struct rk_coll_call *c, struct rk_step *after);
/* Before the step runs: has another step moved the call? */
void rk_slices_skip(struct slices *x, bool skip);
/* The schedule does not use the arena after the step: the next one may. */
void rk_slices_set_last(struct slices *x);
bool rk_slices_is_skipped(const struct slices *x);

/* Before the schedule runs: leave a call to a later step if its ranks agree on a longer block. */
void rk_slices_limit(struct slices *x, size_t bytes);
bool rk_slices_is_too_long(const struct slices *x);
struct rk_step *rk_slices_step(const struct slices *x);

/* The step's function: advance without blocking. True: the call is complete. */
bool rk_slices_advance(void *slices);
/* Name the members that a step of rk_slices_advance waits for. */
void rk_slices_describe(const void *slices, struct rk_wait_for *out);

#endif
