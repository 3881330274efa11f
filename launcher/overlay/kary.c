/* SPDX-License-Identifier: BSD-3-Clause */
/* kary.c: see kary.h. */
#include "launcher/overlay/kary.h"

/* Return the place of a node. Places of agents count from 1 here; the root is 0. */
static uint64_t kary_place_of(const struct xr_kary *s, uint32_t node)
{
    if (node == XR_NODE_FRONT)
        return 0;
    if (node == s->head)
        return 1;
    return (node == 0 ? (uint64_t)s->head : node) + 1;
}

static uint32_t node_at(const struct xr_kary *s, uint64_t place)
{
    if (place == 0)
        return XR_NODE_FRONT;
    if (place == 1)
        return s->head;
    return place - 1 == s->head ? 0 : (uint32_t)(place - 1);
}

uint32_t xr_kary_above(const struct xr_kary *s, uint32_t node)
{
    return node == XR_NODE_FRONT ? XR_NODE_FRONT : node_at(s, (kary_place_of(s, node) - 1) / s->fanout);
}

bool xr_kary_is_below(const struct xr_kary *s, uint32_t top, uint32_t node)
{
    uint64_t want = kary_place_of(s, top), at = kary_place_of(s, node);

    while (at > want)
        at = (at - 1) / s->fanout;
    return at == want;
}

/* Return the place of the node's first child. */
static uint64_t first_below(const struct xr_kary *s, uint32_t node)
{
    return kary_place_of(s, node) * s->fanout + 1;
}

uint32_t xr_kary_children(const struct xr_kary *s, uint32_t node)
{
    uint64_t first = first_below(s, node), left = first <= s->nodes ? s->nodes + 1ull - first : 0;

    return left < s->fanout ? (uint32_t)left : s->fanout;
}

uint32_t xr_kary_child(const struct xr_kary *s, uint32_t node, uint32_t i)
{
    return node_at(s, first_below(s, node) + i);
}

uint32_t xr_kary_way(const struct xr_kary *s, uint32_t self, uint32_t node)
{
    uint64_t top = kary_place_of(s, self), at = kary_place_of(s, node), last = at;

    /* A number from outside: with a fan-out of 1 the way up is as long. */
    if (node >= s->nodes)
        return XR_NODE_FRONT;
    while (at > top) {
        last = at;
        at = (at - 1) / s->fanout;
    }
    if (at != top || last == top)
        return XR_NODE_FRONT;
    return (uint32_t)(last - first_below(s, self));
}
