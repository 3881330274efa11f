/* SPDX-License-Identifier: BSD-3-Clause */
/* node_life.h: how a slot says that its process lives. Used by node.c only. */
#ifndef RK_NODE_NODE_LIFE_H
#define RK_NODE_NODE_LIFE_H

#include "lib/node/node.h"

/* Make and take the life lock of my slot, fill in who I am, and come up. */
rank_status_t rk_node_take_life(struct rk_node_slot *slot, int world_rank);
/* Go in peace: not a death. false when this is not the thread that took the lock: it stays on that
 * thread's list, so the memory has to stay mapped. */
bool rk_node_leave_life(struct rk_node_slot *slot);
/* Have all ranks look who is gone. */
void rk_node_tell_all(struct rk_node *node);

#endif
