/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_table.h: find objects by a random 64-bit key.
 *
 * The nodes are in the objects. Several objects may have the same key. The lower bits of keys must be random enough.
 * A table takes no lock.
 */
#ifndef RK_BASE_HASH_TABLE_H
#define RK_BASE_HASH_TABLE_H

#include "lib/base/compiler.h"

#include <stdbool.h>

struct rk_hash_node {
    struct rk_hash_node *next;
    uint64_t key;
    bool in; /* a table */
};

/* All zeros: empty. */
struct rk_hash_table {
    struct rk_hash_node **buckets;
    uint32_t nbuckets, n; /* nbuckets: a power of 2 */
};

/* Frees the table; the objects are the caller's. */
void rk_hash_close(struct rk_hash_table *table);
/* Returns false if out of memory. */
bool rk_hash_put(struct rk_hash_table *table, struct rk_hash_node *node, uint64_t key);
/* No-op if the node is in no table. */
void rk_hash_remove(struct rk_hash_table *table, struct rk_hash_node *node);

/* The first object at node or behind it in its bucket with this key. */
RK_INLINE struct rk_hash_node *rk_hash_from(struct rk_hash_node *node, uint64_t key)
{
    while (node && node->key != key)
        node = node->next;
    return node;
}

/* NULL: none. The others follow by rk_hash_from(node->next, key). */
RK_INLINE struct rk_hash_node *rk_hash_find(const struct rk_hash_table *table, uint64_t key)
{
    return table->n ? rk_hash_from(table->buckets[(key ^ key >> 32) & (table->nbuckets - 1)], key) : NULL;
}

#endif
