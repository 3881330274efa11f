/* SPDX-License-Identifier: BSD-3-Clause */
/* trivial.h: run calls that need no other rank. */
#ifndef RK_COLLECTIVES_TRIVIAL_H
#define RK_COLLECTIVES_TRIVIAL_H

#include "collectives/state.h"

/* No data is to be moved, on any rank: one rank, or empty blocks. */
RK_INLINE bool rk_is_local(const struct rk_coll_call *c)
{
    return c->team->size == 1 || (c->bytes == 0 && c->kind != RK_COLL_BARRIER);
}

/* out NULL: a blocking call. */
rank_status_t rk_local_do(const struct rk_coll_call *c, rank_request_t *out);

#endif
