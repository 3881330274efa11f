/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h: open and close collectives for a context, a node and a team.
 *
 * Room: the collective calls of rank.h: algorithms, selection, schedules, shared-memory arenas.
 * Callers: the program; lib/world, which opens the room; tools.
 * Never: includes a channel; sends but through lib/p2p.
 * Tests: tests/coll, tests/model, tests/mp/random_mixed.c.
 */
#ifndef RK_COLL_COLL_H
#define RK_COLL_COLL_H

#include "lib/node/node.h"
#include "lib/p2p/team.h"

#include <stdio.h>

/*
 * Opening parses RANK_COLL: RANK_ERR_CONFIG if it is invalid. A team may be opened once team->local is set; the world
 * without communication.
 */
extern const struct rk_room rk_room_coll;

/* Size of RK_REGION_ARENAS (sparse) for a node of nlocal ranks. */
size_t rk_coll_region_bytes(int nlocal);
/* The same of RK_REGION_CELLS. */
size_t rk_coll_cells_bytes(int nlocal);
/* For the creator of a node's segment, before others attach: back the memory of the world's collectives. */
void rk_coll_node_made(struct rk_node *node, int world_size);

/* A number that is equal on the ranks of a host that share memory, and different on other hosts. */
uint64_t rk_coll_host_id(const struct rk_ctx *ctx);
/* Tell an open team the numbers of all its ranks, as all of them do. NULL: out of memory. Without this, its first collective exchanges them. */
void rk_coll_set_hosts(struct rank_team *team, const uint64_t *id);

/*
 * This rank cannot create or open the team of these n ranks, in which it is rank me: end its collectives on the others. Not
 * within a channel.
 */
void rk_coll_open_failed(struct rk_ctx *ctx, uint64_t id, const int *world_ranks, int n, int me,
                         rank_status_t status);

/* Collective over team: returns the worst status of all. */
rank_status_t rk_worst_of_all(struct rank_team *team, rank_status_t mine);

/* Print the selection table with reasons, and all algorithms. */
void rk_coll_print_table(FILE *out);
/*
 * Print what is selected for a collective of ranks on nodes with buffers of a kind, each range of blocks with the reason and what was passed
 * over. RANK_ERR_ARG if there is no such collective, RANK_ERR_CONFIG if RANK_COLL is invalid: logged.
 */
rank_status_t rk_coll_print_choice(FILE *out, const char *collective, int ranks, int nodes, rank_mem_kind_t mem);

#endif
