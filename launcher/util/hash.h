/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash.h: keep items in an intrusive hash table.
 *
 * The caller computes the hash of an item and compares items of one hash.
 */
#ifndef XR_LAUNCHER_UTIL_HASH_H
#define XR_LAUNCHER_UTIL_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_hash_item {
    struct xr_hash_item *next;
    uint32_t hash;
};

/* A zeroed table is empty. */
struct xr_hash {
    struct xr_hash_item **heads;
    uint32_t n, size;
};

/* Hash bytes. before: the hash of the bytes before them, or 0. */
uint32_t xr_hash_bytes(uint32_t before, const void *data, size_t len);

/* Iterate over the items of a hash. NULL: no more. */
struct xr_hash_item *xr_hash_first(const struct xr_hash *table, uint32_t hash);
struct xr_hash_item *xr_hash_next(const struct xr_hash_item *item);
/* Returns false if out of memory. */
bool xr_hash_add(struct xr_hash *table, struct xr_hash_item *item, uint32_t hash);
void xr_hash_remove(struct xr_hash *table, struct xr_hash_item *item);
/* Frees the table only; the caller owns the items. */
void xr_hash_clear(struct xr_hash *table);

#endif
