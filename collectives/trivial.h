/* SPDX-License-Identifier: BSD-3-Clause */
/* trivial.h: calls that need nobody else. */
#ifndef RK_COLLECTIVES_TRIVIAL_H
#define RK_COLLECTIVES_TRIVIAL_H

#include "collectives/state.h"

/* All ranks know that nothing is to be moved: one rank, or empty blocks. */
RK_INLINE bool rk_is_local(const struct rk_coll_call *c)
{
    return c->team->size == 1 || (c->bytes == 0 && c->kind != RK_COLL_BARRIER);
}

/* out NULL: a blocking call. */
rank_status_t rk_local_do(const struct rk_coll_call *c, rank_request_t *out);

#endif
