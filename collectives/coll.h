/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h: what the rooms above see of the collectives. The calls themselves
 * are those of rank.h.
 */
#ifndef RK_COLL_COLL_H
#define RK_COLL_COLL_H

#include "lib/node/node.h"
#include "lib/p2p/team.h"

#include <stdio.h>

/* Reads RANK_COLL: RANK_ERR_CONFIG for what it does not know. After p2p is open. */
rank_status_t rk_coll_open(struct rk_ctx *ctx);
/* After the channels are closed, which end what still runs. Nothing open is fine. */
void rk_coll_close(struct rk_ctx *ctx);

/* Size of RK_REGION_ARENAS (sparse) for a node of nlocal ranks. */
size_t rk_coll_region_bytes(int nlocal);
/* For the maker of the segment of a node that holds the whole world of world_size ranks or a part
 * of it, before others can attach: back what the world's collectives will use. */
void rk_coll_node_made(struct rk_node *node, int world_size);

/* Once team->local is settled. The world: no communication. Other teams: collective. */
rank_status_t rk_coll_team_open(struct rank_team *team);
/* Does not synchronize. */
void rk_coll_team_close(struct rank_team *team);

/* The selection table with reasons, and all algorithms, for people. */
void rk_coll_print_table(FILE *out);

#endif
