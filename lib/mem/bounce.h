/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounce.h: keep bounce buffers: pinned host memory for payload of devices.
 *
 * A message takes a few at a time, so that copies to and from the device and transfers overlap.
 */
#ifndef RK_MEM_BOUNCE_H
#define RK_MEM_BOUNCE_H

#include "lib/base/list.h"
#include "lib/mem/kind.h"

enum {
    RK_BOUNCE_BYTES = 512 << 10,
    RK_BOUNCES_MAX = 16 /* of a pool, without extra ones */
};

struct rk_bounce {
    struct rk_link link;     /* in the pool, or the user's */
    struct rk_bounce *other; /* the next of the pool's, free or not */
    char *data;          /* RK_BOUNCE_BYTES */
    const struct rk_kind *pinned_by; /* NULL: not pinned, */
    bool unpinnable;                 /* as that has failed */
    struct rk_kind_copy *copies;     /* under way */
    uint64_t offset;     /* in the message, */
    size_t bytes;        /* what it holds */
};

struct rk_bounce_pool {
    struct rk_link free;
    struct rk_bounce *all;
    int n; /* buffers in all */
};

void rk_bounce_pool_init(struct rk_bounce_pool *pool);
/*
 * A buffer without copies; pinned for devices of kind, unless that is NULL. NULL: none is free, or no memory. extra: exceed
 * RK_BOUNCES_MAX if none is free.
 */
struct rk_bounce *rk_bounce_take(struct rk_bounce_pool *pool, const struct rk_kind *kind, bool extra);
void rk_bounce_put(struct rk_bounce_pool *pool, struct rk_bounce *bounce);
/* Free them all. Only copies may still use some: these stay. */
void rk_bounce_pool_close(struct rk_bounce_pool *pool);

#endif
