/* SPDX-License-Identifier: BSD-3-Clause */
/* slab.c: keep the chunks of a slab. */
#include "lib/base/slab.h"

#include <stdlib.h>

/* The kernel backs only what is used: objects are cut off one by one. */
struct rk_slab_chunk {
    struct rk_slab_chunk *next;
    unsigned char objects[] RK_ALIGNED_LINE;
};

void *rk_slab_extend(struct rk_slab *slab)
{
    if (slab->left == 0) {
        size_t bytes = sizeof(struct rk_slab_chunk) + slab->per_chunk * slab->bytes;
        struct rk_slab_chunk *chunk = aligned_alloc(RK_CACHE_LINE, rk_round_up(bytes, RK_CACHE_LINE));
        if (!chunk)
            return NULL;
        chunk->next = slab->chunks;
        slab->chunks = chunk;
        slab->left = slab->per_chunk;
    }
    slab->made++;
    return slab->chunks->objects + (slab->per_chunk - slab->left--) * slab->bytes;
}

size_t rk_slab_in_use(const struct rk_slab *slab, size_t link)
{
    size_t n = slab->made;

    for (char *object = slab->free; object; object = *(rk_slab_link *)(void *)(object + link))
        n--;
    return n;
}

void rk_slab_reset(struct rk_slab *slab, size_t link)
{
    uint32_t used = slab->per_chunk - slab->left;

    slab->free = NULL;
    for (struct rk_slab_chunk *chunk = slab->chunks; chunk; chunk = chunk->next, used = slab->per_chunk) {
        for (uint32_t i = used; i > 0; i--)
            rk_slab_free(slab, chunk->objects + (i - 1) * slab->bytes, link);
    }
}

void rk_slab_each(const struct rk_slab *slab, void (*fn)(void *object))
{
    uint32_t used = slab->per_chunk - slab->left;

    for (struct rk_slab_chunk *chunk = slab->chunks; chunk; chunk = chunk->next, used = slab->per_chunk) {
        for (uint32_t i = 0; i < used; i++)
            fn(chunk->objects + i * slab->bytes);
    }
}

void rk_slab_close(struct rk_slab *slab)
{
    while (slab->chunks) {
        struct rk_slab_chunk *chunk = slab->chunks;
        slab->chunks = chunk->next;
        free(chunk);
    }
    slab->free = NULL;
    slab->left = 0;
    slab->made = 0;
}
