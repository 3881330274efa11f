/* SPDX-License-Identifier: BSD-3-Clause */
/* hash.c: see hash.h. */
#include "launcher/util/hash.h"
#include "lib/base/fnv.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 16u /* a power of two */

uint32_t xr_hash_bytes(uint32_t before, const void *data, size_t len)
{
    return rk_fnv32(before ? before : RK_FNV32_START, data, len);
}

/* The low bits of such a hash are its worst, so mix the high ones in. */
static struct xr_hash_item **head_of(const struct xr_hash *t, uint32_t hash)
{
    return &t->heads[(hash ^ hash >> 15) & (t->size - 1)];
}

static struct xr_hash_item *match(struct xr_hash_item *item, uint32_t hash)
{
    while (item && item->hash != hash)
        item = item->next;
    return item;
}

struct xr_hash_item *xr_hash_first(const struct xr_hash *t, uint32_t hash)
{
    return t->size ? match(*head_of(t, hash), hash) : NULL;
}

struct xr_hash_item *xr_hash_next(const struct xr_hash_item *item)
{
    return match(item->next, item->hash);
}

static void hash_put(struct xr_hash *t, struct xr_hash_item *item)
{
    struct xr_hash_item **head = head_of(t, item->hash);

    item->next = *head;
    *head = item;
}

/* Double the size. If that fails the table is slower, but correct. */
static bool hash_grow(struct xr_hash *t)
{
    struct xr_hash old = *t;
    uint32_t size = old.size ? old.size * 2 : FIRST_SIZE;
    struct xr_hash_item **heads = size ? calloc(size, sizeof(struct xr_hash_item *)) : NULL;

    if (!heads)
        return old.size > 0;
    t->heads = heads;
    t->size = size;
    for (uint32_t i = 0; i < old.size; i++) {
        for (struct xr_hash_item *item = old.heads[i], *next; item; item = next) {
            next = item->next;
            hash_put(t, item);
        }
    }
    free(old.heads);
    return true;
}

bool xr_hash_add(struct xr_hash *t, struct xr_hash_item *item, uint32_t hash)
{
    if (t->n >= t->size && !hash_grow(t))
        return false;
    item->hash = hash;
    hash_put(t, item);
    t->n++;
    return true;
}

void xr_hash_remove(struct xr_hash *t, struct xr_hash_item *item)
{
    struct xr_hash_item **at = head_of(t, item->hash);

    while (*at != item)
        at = &(*at)->next;
    *at = item->next;
    t->n--;
}

void xr_hash_clear(struct xr_hash *t)
{
    free(t->heads);
    memset(t, 0, sizeof(*t));
}
