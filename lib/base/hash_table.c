/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_table.c: keep hash tables, with one object a bucket on average. */
#include "lib/base/hash_table.h"

#include <stdlib.h>

enum { BUCKETS_FIRST = 64 };

static struct rk_hash_node **bucket_of(const struct rk_hash_table *table, uint64_t key)
{
    return &table->buckets[(key ^ key >> 32) & (table->nbuckets - 1)];
}

void rk_hash_close(struct rk_hash_table *table)
{
    free(table->buckets);
    *table = (struct rk_hash_table){NULL, 0, 0};
}

/* Returns false without any bucket. Longer chains are harmless. */
static bool buckets_grow(struct rk_hash_table *table)
{
    struct rk_hash_table old = *table;
    uint32_t n = old.nbuckets ? old.nbuckets * 2 : BUCKETS_FIRST;
    struct rk_hash_node **buckets = n ? calloc(n, sizeof(struct rk_hash_node *)) : NULL;

    if (!buckets)
        return old.buckets != NULL;
    table->buckets = buckets;
    table->nbuckets = n;
    for (uint32_t i = 0; i < old.nbuckets; i++) {
        struct rk_hash_node *next;
        for (struct rk_hash_node *node = old.buckets[i]; node; node = next) {
            struct rk_hash_node **to = bucket_of(table, node->key);
            next = node->next;
            node->next = *to;
            *to = node;
        }
    }
    free(old.buckets);
    return true;
}

bool rk_hash_put(struct rk_hash_table *table, struct rk_hash_node *node, uint64_t key)
{
    struct rk_hash_node **to;

    if (table->n >= table->nbuckets && !buckets_grow(table))
        return false;
    to = bucket_of(table, key);
    *node = (struct rk_hash_node){*to, key, true};
    *to = node;
    table->n++;
    return true;
}

void rk_hash_remove(struct rk_hash_table *table, struct rk_hash_node *node)
{
    struct rk_hash_node **at;

    if (!node->in)
        return;
    at = bucket_of(table, node->key);
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    node->next = NULL;
    node->in = false;
    table->n--;
}
