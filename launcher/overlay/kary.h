/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kary.h: compute parents, children and routes in the k-ary tree of agents.
 *
 * The front end is the root. Agents are numbered as the job's hosts, and each has
 * a place. With a fan-out of f the root's children have places 0 to f-1, those of
 * place i have f*(i+1) to f*(i+1)+f-1. So each node computes all routes by itself.
 * A place is the agent's number, except that the head and agent 0 swap places:
 * xrun starts the agent of its own host itself, wherever that host stands in the
 * list.
 */
#ifndef XR_LAUNCHER_OVERLAY_KARY_H
#define XR_LAUNCHER_OVERLAY_KARY_H

#include "launcher/overlay/conn.h"

struct xr_kary {
    uint32_t nodes, fanout;
    uint32_t head; /* always a child of the root; 0 if there is none */
};

/* Return the parent of a node: an agent, or XR_NODE_FRONT. */
uint32_t xr_kary_above(const struct xr_kary *shape, uint32_t node);
/* Return whether node is top or a descendant of top. */
bool xr_kary_is_below(const struct xr_kary *shape, uint32_t top, uint32_t node);
/* The number of children of a node, and the i-th child. */
uint32_t xr_kary_children(const struct xr_kary *shape, uint32_t node);
uint32_t xr_kary_child(const struct xr_kary *shape, uint32_t node, uint32_t i);
/* Next hop: the index of self's child on the route to node, or XR_NODE_FRONT if node is not a descendant. */
uint32_t xr_kary_way(const struct xr_kary *shape, uint32_t self, uint32_t node);

#endif
