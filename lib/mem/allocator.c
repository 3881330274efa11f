/* SPDX-License-Identifier: BSD-3-Clause */
/* allocator.c: allocate ranges first-fit. */
#include "lib/mem/allocator.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 16 };

bool rk_allocator_create(struct rk_allocator *space, size_t bytes)
{
    *space = (struct rk_allocator){.holes = malloc(FIRST_CAP * sizeof(struct rk_extent)),
                               .cap = FIRST_CAP};
    if (!space->holes)
        return false;
    space->holes[0] = (struct rk_extent){0, bytes};
    space->nholes = bytes > 0;
    return true;
}

void rk_allocator_destroy(struct rk_allocator *space)
{
    free(space->holes);
    *space = (struct rk_allocator){0};
}

/*
 * There is at most one free extent more than pieces, and another for a moment while one is merged. Reserve for
 * that, so that freeing needs no memory.
 */
static bool reserve(struct rk_allocator *space)
{
    size_t cap = space->cap * 2;
    struct rk_extent *holes;

    if (space->npieces + 3 <= space->cap)
        return true;
    holes = realloc(space->holes, cap * sizeof(*holes));
    if (!holes)
        return false;
    space->holes = holes;
    space->cap = cap;
    return true;
}

static void insert(struct rk_allocator *space, size_t i, struct rk_extent hole)
{
    memmove(&space->holes[i + 1], &space->holes[i], (space->nholes - i) * sizeof(hole));
    space->holes[i] = hole;
    space->nholes++;
}

static void allocator_drop(struct rk_allocator *space, size_t i)
{
    space->nholes--;
    memmove(&space->holes[i], &space->holes[i + 1],
            (space->nholes - i) * sizeof(space->holes[0]));
}

bool rk_allocator_alloc(struct rk_allocator *space, size_t bytes, size_t align, size_t *at)
{
    if (bytes == 0 || !reserve(space))
        return false;
    for (size_t i = 0; i < space->nholes; i++) {
        struct rk_extent *h = &space->holes[i];
        size_t before = -h->at & (align - 1), left;

        if (before > h->bytes || bytes > h->bytes - before)
            continue;
        left = h->bytes - before - bytes;
        *at = h->at + before;
        if (before) {
            h->bytes = before;
            if (left)
                insert(space, i + 1, (struct rk_extent){*at + bytes, left});
        } else if (left) {
            *h = (struct rk_extent){*at + bytes, left};
        } else {
            allocator_drop(space, i);
        }
        space->npieces++;
        return true;
    }
    return false;
}

void rk_allocator_free(struct rk_allocator *space, size_t at, size_t bytes)
{
    size_t i = 0;

    while (i < space->nholes && space->holes[i].at < at)
        i++;
    insert(space, i, (struct rk_extent){at, bytes});
    if (i + 1 < space->nholes && at + bytes == space->holes[i + 1].at) {
        space->holes[i].bytes += space->holes[i + 1].bytes;
        allocator_drop(space, i + 1);
    }
    if (i > 0 && space->holes[i - 1].at + space->holes[i - 1].bytes == at) {
        space->holes[i - 1].bytes += space->holes[i].bytes;
        allocator_drop(space, i);
    }
    space->npieces--;
}
