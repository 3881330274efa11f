/* SPDX-License-Identifier: BSD-3-Clause */
/* slab.c: keep the chunks of a slab. */
#include "lib/base/slab.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The kernel backs only what is used: objects are cut off one by one. */
struct rk_slab_chunk {
    struct rk_slab_chunk *next;
    unsigned char objects[] RK_ALIGNED_LINE;
};

/* Fewer bytes than these are not given back. */
enum { TRIM_MIN = 1 << 20 };

static size_t chunk_bytes(const struct rk_slab *slab)
{
    return sizeof(struct rk_slab_chunk) + slab->per_chunk * slab->bytes;
}

void *rk_slab_extend(struct rk_slab *slab)
{
    if (slab->left == 0) {
        struct rk_slab_chunk *chunk = slab->spare;

        if (chunk)
            slab->spare = chunk->next;
        else
            chunk = aligned_alloc(RK_CACHE_LINE, rk_round_up(chunk_bytes(slab), RK_CACHE_LINE));
        if (!chunk)
            return NULL;
        chunk->next = slab->chunks;
        slab->chunks = chunk;
        slab->left = slab->per_chunk;
    }
    slab->made++;
    return slab->chunks->objects + (slab->per_chunk - slab->left--) * slab->bytes;
}

/* ---------------------------------------------------------------------------- trim */

struct counted {
    struct rk_slab_chunk *chunk;
    uint32_t nfree;
};

static int counted_by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct counted *)a)->chunk, y = (uintptr_t)((const struct counted *)b)->chunk;

    return x < y ? -1 : x > y;
}

/* The chunk of an object: the last one below it. */
static struct counted *counted_find(struct counted *of, size_t n, const void *object)
{
    size_t low = 0;

    while (n - low > 1) {
        size_t middle = low + (n - low) / 2;

        if ((uintptr_t)of[middle].chunk <= (uintptr_t)object)
            low = middle;
        else
            n = middle;
    }
    return &of[low];
}

/* Its first page, which links the spare chunks, stays. */
static void give_pages(const struct rk_slab *slab, struct rk_slab_chunk *chunk)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *end = (char *)chunk + chunk_bytes(slab);
    char *first = (char *)chunk + sizeof(*chunk);

    first += -(uintptr_t)first & (page - 1);
    end -= (uintptr_t)end & (page - 1);
    if (end > first)
        madvise(first, (size_t)(end - first), MADV_DONTNEED);
}

/* Take the objects of empty chunks off the list of free ones, whose order stays. */
static void drop_free_objects(struct rk_slab *slab, size_t link, struct counted *of, size_t n)
{
    void **to = &slab->free, *next;

    for (char *object = slab->free; object; object = next) {
        next = *(rk_slab_link *)(void *)(object + link);
        if (counted_find(of, n, object)->nfree == slab->per_chunk)
            continue;
        *(rk_slab_link *)to = object;
        to = (void **)(void *)(object + link);
    }
    *(rk_slab_link *)to = NULL;
}

static void trim_chunks(struct rk_slab *slab, size_t link, struct counted *of, size_t n)
{
    size_t empty = 0, kept = 0;

    for (char *object = slab->free; object; object = *(rk_slab_link *)(void *)(object + link))
        counted_find(of, n, object)->nfree++;
    for (size_t i = 0; i < n; i++)
        empty += of[i].nfree == slab->per_chunk;
    if (empty * chunk_bytes(slab) < TRIM_MIN)
        return;
    drop_free_objects(slab, link, of, n);
    for (struct rk_slab_chunk **at = &slab->chunks, *chunk; (chunk = *at) != NULL;) {
        if (counted_find(of, n, chunk)->nfree < slab->per_chunk) {
            at = &chunk->next;
            kept++;
            continue;
        }
        *at = chunk->next;
        give_pages(slab, chunk);
        chunk->next = slab->spare;
        slab->spare = chunk;
    }
    slab->made = kept * slab->per_chunk - slab->left;
}

void rk_slab_trim(struct rk_slab *slab, size_t link)
{
    struct counted *of;
    size_t n = 0;

    if (slab->made * slab->bytes < TRIM_MIN)
        return;
    for (struct rk_slab_chunk *chunk = slab->chunks; chunk; chunk = chunk->next)
        n++;
    of = malloc(n * sizeof(*of));
    if (!of)
        return;
    n = 0;
    for (struct rk_slab_chunk *chunk = slab->chunks; chunk; chunk = chunk->next)
        of[n++] = (struct counted){chunk, 0};
    qsort(of, n, sizeof(*of), counted_by_address);
    trim_chunks(slab, link, of, n);
    free(of);
}

/* -------------------------------------------------------------------------- all of it */

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

void *rk_slab_find(const struct rk_slab *slab, bool (*fn)(void *object))
{
    uint32_t used = slab->per_chunk - slab->left;

    for (struct rk_slab_chunk *chunk = slab->chunks; chunk; chunk = chunk->next, used = slab->per_chunk) {
        for (uint32_t i = 0; i < used; i++) {
            void *object = chunk->objects + i * slab->bytes;
            if (fn(object))
                return object;
        }
    }
    return NULL;
}

static void close_chunks(struct rk_slab_chunk **chunks)
{
    while (*chunks) {
        struct rk_slab_chunk *chunk = *chunks;
        *chunks = chunk->next;
        free(chunk);
    }
}

void rk_slab_close(struct rk_slab *slab)
{
    close_chunks(&slab->chunks);
    close_chunks(&slab->spare);
    slab->free = NULL;
    slab->left = 0;
    slab->made = 0;
}
