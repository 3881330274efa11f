/*
 * hash.h: an intrusive hash table: who puts items in says what their hash is,
 * and tells those of the same hash apart.
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

/* All 0 is an empty one. */
struct xr_table {
    struct xr_table_item **heads;
    uint32_t n, size;
};

/* Of bytes, after others of which before is the hash (0: there are none). */
uint32_t xr_table_hash(uint32_t before, const void *data, size_t len);

/* Items with that hash, one after the other; NULL: no more. */
struct xr_table_item *xr_table_first(const struct xr_table *table, uint32_t hash);
struct xr_table_item *xr_table_next(const struct xr_table_item *item);
/* False: no memory. */
bool xr_table_add(struct xr_table *table, struct xr_table_item *item, uint32_t hash);
void xr_table_remove(struct xr_table *table, struct xr_table_item *item);
/* The table alone: the items are who put them in's. */
void xr_table_clear(struct xr_table *table);

#endif
