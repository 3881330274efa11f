/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.h: names for the wire: an index and the generation of its holder.
 *
 * What comes back with an old or a made-up name finds nothing. Generations
 * start anywhere, so that a name of an earlier process is not one of ours.
 */
#ifndef RK_RMA_NAMES_H
#define RK_RMA_NAMES_H

#include "lib/core/frame.h"

#include <stdbool.h>

struct rk_names {
    struct rk_name {
        void *held; /* NULL: free */
        uint32_t gen, next_free;
    } *at;
    uint32_t n, first_free;
    uint32_t gen; /* what new entries begin with */
};

void rk_names_init(struct rk_names *names, uint32_t gen);
void rk_names_destroy(struct rk_names *names);

/* False: out of memory. */
bool rk_names_take(struct rk_names *names, void *held, struct rk_id *id);
void rk_names_drop(struct rk_names *names, struct rk_id id);

/* NULL: nobody's, or no longer. */
RK_INLINE void *rk_names_find(const struct rk_names *names, struct rk_id id)
{
    return id.index < names->n && names->at[id.index].gen == id.gen ? names->at[id.index].held
                                                                    : NULL;
}

#endif
