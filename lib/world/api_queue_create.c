/* SPDX-License-Identifier: BSD-3-Clause */
/* api_queue_create.c: create a queue in the world's context. */
#include "lib/base/arg_error.h"
#include "lib/queue/queue.h"
#include "lib/world/world.h"

rank_status_t rank_queue_create(rank_team_t team, const rank_queue_opts_t *opts, rank_queue_t *queue)
{
    return rank_initialized() ? rk_queue_create(rk_world_ctx(), team, opts, queue) : rk_arg_not_in(__func__);
}

RK_PUBLIC(rank_queue_create);
