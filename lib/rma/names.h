/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.h: give objects ids for the wire: an index and a generation.
 *
 * A stale or forged id finds nothing. Generations start at random, so that ids of an earlier process do not match.
 */
#ifndef RK_RMA_NAMES_H
#define RK_RMA_NAMES_H

#include "lib/core/frame.h"

#include <stdbool.h>

struct rk_ids {
    struct rk_name {
        void *held; /* NULL: free */
        uint32_t gen, next_free;
    } *at;
    uint32_t n, first_free;
    uint32_t gen; /* first generation of new entries */
};

void rk_ids_init(struct rk_ids *names, uint32_t gen);
void rk_ids_destroy(struct rk_ids *names);

/* Returns false if out of memory. */
bool rk_ids_take(struct rk_ids *names, void *held, struct rk_id *id);
void rk_ids_drop(struct rk_ids *names, struct rk_id id);

/* NULL: unknown or stale. */
RK_INLINE void *rk_ids_find(const struct rk_ids *names, struct rk_id id)
{
    return id.index < names->n && names->at[id.index].gen == id.gen ? names->at[id.index].held
                                                                    : NULL;
}

#endif
