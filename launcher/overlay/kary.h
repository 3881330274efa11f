/*
 * kary.h: who is above whom in the tree of agents.
 *
 * The front end is the root; agents are numbered as the job's hosts, and each
 * has a place. With a fan-out of f the root's children have the places 0 to f-1
 * and those of place i have f*(i+1) to f*(i+1)+f-1, so that everybody knows the
 * way to everybody without being told. A place is the agent's number, but for
 * the head, which changes places with agent 0: xrun starts the agent of its own
 * host itself, wherever that host stands in the list.
 */
#ifndef XR_LAUNCHER_OVERLAY_KARY_H
#define XR_LAUNCHER_OVERLAY_KARY_H

#include "launcher/overlay/conn.h"

struct xr_shape {
    uint32_t nodes, fanout;
    uint32_t head; /* always a child of the root; 0 where nobody has to be */
};

/* Who is above a node: an agent, or XR_NODE_FRONT. */
uint32_t xr_shape_above(const struct xr_shape *shape, uint32_t node);
/* Is node in the part of the tree that top is the top of? */
bool xr_shape_is_below(const struct xr_shape *shape, uint32_t top, uint32_t node);
/* How many are just below a node, and the i-th of them. */
uint32_t xr_shape_children(const struct xr_shape *shape, uint32_t node);
uint32_t xr_shape_child(const struct xr_shape *shape, uint32_t node, uint32_t i);
/* The which of self's children the way to a node goes by, which is below it; XR_NODE_FRONT: that is not below. */
uint32_t xr_shape_way(const struct xr_shape *shape, uint32_t self, uint32_t node);

#endif
