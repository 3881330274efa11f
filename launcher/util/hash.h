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

struct xr_table_item {
    struct xr_table_item *next;
    uint32_t hash;
};

/* A zeroed table is empty. */
struct xr_table {
    struct xr_table_item **heads;
    uint32_t n, size;
};

/* Hash bytes. before: the hash of the bytes before them, or 0. */
uint32_t xr_table_hash(uint32_t before, const void *data, size_t len);

/* Iterate over the items of a hash. NULL: no more. */
struct xr_table_item *xr_table_first(const struct xr_table *table, uint32_t hash);
struct xr_table_item *xr_table_next(const struct xr_table_item *item);
/* Returns false if out of memory. */
bool xr_table_add(struct xr_table *table, struct xr_table_item *item, uint32_t hash);
void xr_table_remove(struct xr_table *table, struct xr_table_item *item);
/* Frees the table only; the caller owns the items. */
void xr_table_clear(struct xr_table *table);

#endif
