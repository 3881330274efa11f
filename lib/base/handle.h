/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle.h: give objects ids for the wire: an index and a generation.
 *
 * A stale or invalid id finds no object. A dropped index is used again with another generation, which a table does
 * not repeat within 2^32 ids. Memory is bounded by the most objects that had an id at once.
 *
 * Ids are counted, and so predictable. They do for objects that belong to one peer, or to one link, and are refused to
 * others: requests, one-sided operations, operations of tcp and ucx links. What several may name has secret_id.h.
 *
 * A table takes no lock. Its objects belong to the caller.
 */
#ifndef RK_BASE_HANDLE_H
#define RK_BASE_HANDLE_H

#include "lib/base/compiler.h"

#include <stdbool.h>

/* All zeros: no id. No generation is 0. */
struct rk_id {
    uint32_t index, gen;
};

struct rk_handles {
    struct rk_handle {
        void *object; /* NULL: free */
        uint32_t gen, next_free;
    } *at;
    uint32_t n, first_free;
    uint32_t count; /* ids given so far */
};

void rk_handles_open(struct rk_handles *table);
/* All ids become stale. */
void rk_handles_close(struct rk_handles *table);

/* Returns false if out of memory, which is reported. object is not NULL. */
bool rk_handle_put(struct rk_handles *table, void *object, struct rk_id *id);
/* No-op if the id is stale or invalid. */
void rk_handle_drop(struct rk_handles *table, struct rk_id id);

/* NULL: stale or invalid. */
RK_INLINE void *rk_handle_get(const struct rk_handles *table, struct rk_id id)
{
    return id.index < table->n && table->at[id.index].gen == id.gen ? table->at[id.index].object : NULL;
}

/* Is it an id that the table has given, and that has been dropped? For any number of ids since; not for a hot path. */
bool rk_handle_was_dropped(const struct rk_handles *table, struct rk_id id);

/* Visit all objects; i is a uint32_t. The body may put and drop. */
#define rk_handles_for_each(i, obj, table)                                                         \
    for ((i) = 0; (i) < (table)->n; (i)++)                                                         \
        if (((obj) = (table)->at[i].object) != NULL)

/* An id as one word, for frames and private words of channels. */
RK_INLINE uint64_t rk_id_pack(struct rk_id id)
{
    return (uint64_t)id.gen << 32 | id.index;
}

RK_INLINE struct rk_id rk_id_unpack(uint64_t word)
{
    return (struct rk_id){(uint32_t)word, (uint32_t)(word >> 32)};
}

#endif
