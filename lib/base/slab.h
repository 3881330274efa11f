/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slab.h: allocate and free objects of one size, inline.
 *
 * Objects come from chunks, and free ones are used again, the last freed first. An object is mapped until the slab
 * closes, so that its owner can read a magic word in a free one. The word is 0 if rk_slab_trim has given the memory
 * back. The slab writes one pointer into a free object: at the offset link, a constant that all calls for one slab
 * share. The rest of a free object keeps its content until a trim.
 *
 * Objects are aligned to their size up to a cache line: a multiple of RK_CACHE_LINE bytes starts on a line.
 * A slab takes no lock.
 */
#ifndef RK_BASE_SLAB_H
#define RK_BASE_SLAB_H

#include "lib/base/compiler.h"

#include <stdbool.h>

struct rk_slab {
    void *free;                   /* chained through the pointer at link */
    struct rk_slab_chunk *chunks; /* the newest first */
    struct rk_slab_chunk *spare;  /* chunks without objects, whose memory the kernel has back */
    size_t bytes;                 /* of an object */
    uint32_t per_chunk;           /* objects */
    uint32_t left;                /* objects of the newest chunk that were never allocated */
    size_t made;                  /* all objects that were allocated once */
};

/* Initial value: size in bytes of an object, and how many share a chunk. */
#define RK_SLAB_INIT(size, chunk_objects) {.bytes = (((size) + 15) & ~(size_t)15), .per_chunk = (chunk_objects)}

/* The pointer in a free object; may_alias: it shares memory with a field of the owner. */
typedef void *__attribute__((may_alias)) rk_slab_link;

/* An object that was never allocated, with undefined content; NULL: out of memory. */
RK_COLD void *rk_slab_extend(struct rk_slab *slab);

/* A free object that was allocated before; NULL: there is none. */
RK_INLINE void *rk_slab_reuse(struct rk_slab *slab, size_t link)
{
    void *object = slab->free;

    if (rk_likely(object != NULL))
        slab->free = *(rk_slab_link *)(void *)((char *)object + link);
    return object;
}

/* NULL: out of memory. */
RK_INLINE void *rk_slab_alloc(struct rk_slab *slab, size_t link)
{
    void *object = rk_slab_reuse(slab, link);

    return rk_likely(object != NULL) ? object : rk_slab_extend(slab);
}

RK_INLINE void rk_slab_free(struct rk_slab *slab, void *object, size_t link)
{
    *(rk_slab_link *)(void *)((char *)object + link) = slab->free;
    slab->free = object;
}

/*
 * Give the memory of chunks back in which all objects are free, unless there are few of them. Walks all free objects: not
 * for a hot path.
 */
void rk_slab_trim(struct rk_slab *slab, size_t link);
/* Objects allocated and not freed. Counts the free ones, so that alloc and free need no counter. */
size_t rk_slab_in_use(const struct rk_slab *slab, size_t link);
/* Call fn for each object that was allocated once, free or not, until it returns true. Returns that object, or NULL. */
void *rk_slab_find(const struct rk_slab *slab, bool (*fn)(void *object));
/* Free all objects that were allocated once; their owner uses none of them any more. */
void rk_slab_reset(struct rk_slab *slab, size_t link);
/* Free all chunks, with the objects in use. The slab can be used again. */
void rk_slab_close(struct rk_slab *slab);

#endif
