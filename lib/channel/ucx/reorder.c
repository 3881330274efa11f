/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder.c: restore the order of numbered packets. */
#include "lib/channel/ucx/reorder.h"

#include <stdlib.h>

/* Make the ring longer than ahead. */
static int reorder_grow(struct rk_order *o, uint32_t ahead)
{
    uint32_t size = o->held ? o->mask + 1 : 0, more = size ? size : 16;
    void **held;

    while (more <= ahead)
        more *= 2;
    held = calloc(more, sizeof(*held));
    if (!held)
        return -1;
    for (uint32_t i = 0; i < size; i++)
        held[(o->due + i) & (more - 1)] = o->held[(o->due + i) & o->mask];
    free(o->held);
    o->held = held;
    o->mask = more - 1;
    return 0;
}

int rk_order_hold(struct rk_order *o, uint32_t turn, void *item)
{
    uint32_t ahead = turn - o->due;
    void **at;

    if ((!o->held || ahead > o->mask) && reorder_grow(o, ahead) < 0)
        return -1;
    at = &o->held[turn & o->mask];
    if (*at)
        return 1;
    *at = item;
    o->nheld++;
    return 0;
}

void *rk_order_take(struct rk_order *o)
{
    void *item, **at;

    if (o->nheld == 0)
        return NULL;
    at = &o->held[o->due & o->mask];
    item = *at;
    if (item) {
        *at = NULL;
        o->nheld--;
    }
    return item;
}

void rk_order_destroy(struct rk_order *o, void (*fn)(void *item, void *arg), void *arg)
{
    for (uint32_t i = 0; o->nheld > 0 && i <= o->mask; i++) {
        if (o->held[i]) {
            fn(o->held[i], arg);
            o->held[i] = NULL;
            o->nheld--;
        }
    }
    free(o->held);
    o->held = NULL;
    o->mask = 0;
}
