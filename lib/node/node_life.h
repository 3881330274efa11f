/* SPDX-License-Identifier: BSD-3-Clause */
/* node_life.h: mark the life and death of a slot's process. Used by node.c only. */
#ifndef RK_NODE_NODE_LIFE_H
#define RK_NODE_NODE_LIFE_H

#include "lib/node/node.h"

/* Create and take the life lock of the own slot, identify this process, and mark the slot up. */
rank_status_t rk_node_take_life(struct rk_node_slot *slot, int world_rank);
/* Identify this process, and mark the slot up. */
void rk_node_fill_slot(struct rk_node_slot *slot, int world_rank);
/*
 * Leave in an orderly way. False: this thread did not take the lock; it stays on that thread's list, so the memory
 * must stay mapped.
 */
bool rk_node_leave_life(struct rk_node_slot *slot);
/* Make all ranks check for deaths. */
void rk_node_notify_all(struct rk_node *node);

#endif
