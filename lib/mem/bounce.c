/* SPDX-License-Identifier: BSD-3-Clause */
/* bounce.c: keep bounce buffers, pinned host memory. */
#include "lib/mem/bounce.h"

#include <stdlib.h>
#include <sys/mman.h>

void rk_bounce_pool_init(struct rk_bounce_pool *pool)
{
    rk_list_init(&pool->free);
    pool->all = NULL;
    pool->n = 0;
}

/* Pages of its own: the network and devices register them. */
static struct rk_bounce *bounce_create(void)
{
    struct rk_bounce *p = calloc(1, sizeof(*p));
    void *data = p ? mmap(NULL, RK_BOUNCE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;

    if (data == MAP_FAILED) {
        free(p);
        return NULL;
    }
    madvise(data, RK_BOUNCE_BYTES, MADV_DONTFORK); /* else a fork may give this process other pages than devices write */
    p->data = data;
    rk_list_init(&p->link);
    return p;
}

struct rk_bounce *rk_bounce_take(struct rk_bounce_pool *pool, const struct rk_kind *kind, bool extra)
{
    struct rk_bounce *p;

    if (!rk_list_empty(&pool->free)) {
        p = rk_list_entry(pool->free.next, struct rk_bounce, link);
        rk_list_remove(&p->link);
    } else {
        p = extra || pool->n < RK_BOUNCES_MAX ? bounce_create() : NULL;
        if (p) {
            p->other = pool->all;
            pool->all = p;
            pool->n++;
        }
    }
    if (p && !p->pinned_by && kind && kind->pin && !p->unpinnable) {
        p->unpinnable = !kind->pin(p->data, RK_BOUNCE_BYTES);
        p->pinned_by = p->unpinnable ? NULL : kind;
    }
    return p;
}

void rk_bounce_put(struct rk_bounce_pool *pool, struct rk_bounce *bounce)
{
    rk_list_remove(&bounce->link);
    rk_list_insert_before(pool->free.next, &bounce->link); /* the last used one is in the caches */
}

void rk_bounce_pool_close(struct rk_bounce_pool *pool)
{
    struct rk_bounce *p, *other;

    for (p = pool->all; p; p = other) {
        other = p->other;
        if (p->copies)
            continue;
        if (p->pinned_by)
            p->pinned_by->unpin(p->data);
        munmap(p->data, RK_BOUNCE_BYTES);
        free(p);
    }
    rk_bounce_pool_init(pool);
}
