/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.c: keep tables of ids. */
#include "lib/base/handle.h"
#include "lib/base/log.h"
#include "lib/base/random.h"

#include <stdlib.h>

enum { HANDLES_FIRST = 16, NO_INDEX = UINT32_MAX };

void rk_handles_open(struct rk_handles *table, bool random)
{
    *table = (struct rk_handles){.first_free = NO_INDEX};
    if (random)
        table->seed = rk_random_word() | 1;
}

void rk_handles_close(struct rk_handles *table)
{
    free(table->at);
    table->at = NULL;
    table->n = 0;
    table->first_free = NO_INDEX;
}

static bool handles_grow(struct rk_handles *table)
{
    uint32_t n = table->n ? table->n * 2 : HANDLES_FIRST;
    struct rk_handle *at = n > table->n ? realloc(table->at, n * sizeof(*at)) : NULL;

    if (!at) {
        rk_error("out of memory for ids of objects");
        return false;
    }
    for (uint32_t i = n; i-- > table->n;) {
        at[i] = (struct rk_handle){NULL, 0, table->first_free};
        table->first_free = i;
    }
    table->at = at;
    table->n = n;
    return true;
}

/* Permute 32 bits by a key: different counts give different generations. */
static uint32_t scramble_gen(uint32_t x, uint64_t key)
{
    x ^= (uint32_t)key;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    x ^= (uint32_t)(key >> 32);
    x = (x ^ x >> 16) * 0x9e3779b1u;
    return x ^ x >> 15;
}

/* Undo scramble_gen. */
static uint32_t unscramble_gen(uint32_t x, uint64_t key)
{
    x = (x ^ x >> 15 ^ x >> 30) * 0x0e8b2f51u;
    x ^= x >> 16 ^ (uint32_t)(key >> 32);
    x *= 0x43021123u;
    x = (x ^ x >> 15 ^ x >> 30) * 0x1d69e2a5u;
    return x ^ x >> 16 ^ (uint32_t)key;
}

static uint32_t next_gen(struct rk_handles *table)
{
    uint32_t gen;

    do {
        table->count++;
        gen = table->seed ? scramble_gen(table->count, table->seed) : table->count;
    } while (gen == 0);
    return gen;
}

bool rk_handle_put(struct rk_handles *table, void *object, struct rk_id *id)
{
    struct rk_handle *h;

    if (table->first_free == NO_INDEX && !handles_grow(table))
        return false;
    id->index = table->first_free;
    h = &table->at[id->index];
    table->first_free = h->next_free;
    h->object = object;
    id->gen = h->gen = next_gen(table);
    return true;
}

void rk_handle_drop(struct rk_handles *table, struct rk_id id)
{
    struct rk_handle *h;

    if (!rk_handle_get(table, id))
        return;
    h = &table->at[id.index];
    h->object = NULL;
    h->next_free = table->first_free;
    table->first_free = id.index;
}

bool rk_handle_was_dropped(const struct rk_handles *table, struct rk_id id)
{
    uint32_t count = table->seed ? unscramble_gen(id.gen, table->seed) : id.gen;

    return id.gen && count && count <= table->count && id.index < table->n && !rk_handle_get(table, id);
}
