/*
 * hash.h: an intrusive hash table: who puts items in says what their hash is,
 * and tells those of the same hash apart.
 */
#ifndef RK_LAUNCHER_UTIL_HASH_H
#define RK_LAUNCHER_UTIL_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rk_table_item {
    struct rk_table_item *next;
    uint32_t hash;
};

/* All 0 is an empty one. */
struct rk_table {
    struct rk_table_item **heads;
    uint32_t n, size;
};

/* Of bytes, after others of which before is the hash (0: there are none). */
uint32_t rk_table_hash(uint32_t before, const void *data, size_t len);

/* Items with that hash, one after the other; NULL: no more. */
struct rk_table_item *rk_table_first(const struct rk_table *table, uint32_t hash);
struct rk_table_item *rk_table_next(const struct rk_table_item *item);
/* False: no memory. */
bool rk_table_add(struct rk_table *table, struct rk_table_item *item, uint32_t hash);
void rk_table_remove(struct rk_table *table, struct rk_table_item *item);
/* The table alone: the items are who put them in's. */
void rk_table_clear(struct rk_table *table);

#endif
