/* SPDX-License-Identifier: BSD-3-Clause */
/* direct_post.c: post where buffers are, and decide by all posts how a call runs. */
#include "collectives/coll_args.h"
#include "collectives/shm/direct_call.h"
#include "lib/base/conf.h"

bool rk_direct_cell_is_free(const struct rk_direct *x)
{
    const struct rk_cell_use *last = &x->a->cell_use[x->base % (size_t)x->a->cell_depth];

    if (last->number && last->reader >= 0)
        return rk_chunk_counter(x->a, last->reader, RK_CHUNK_OUT) >= last->number;
    return rk_direct_reached(x, RK_CHUNK_OUT, last->number);
}

void rk_direct_post(const struct rk_direct *x)
{
    struct rk_arena *a = x->a;
    struct rk_post *p = rk_post_of(x, a->me);

    p->turn = rk_cell_turn(x->sched, x->base + 1);
    p->sbuf = rk_place_of(a, x->sbuf, x->sent);
    p->result = rk_place_of(a, x->results ? x->results : x->rbuf, x->results ? RK_DIRECT_RESULTS * x->piece : x->shares ? x->bytes : 0);
    p->overlaps = x->overlaps;
    p->sent = x->sent;
    if (x->device)
        rk_device_post(x, &p->device);
    p->reads_all = a->reads == RK_READS_UNKNOWN ? rk_peers_readable(a) : a->reads == RK_READS_ALL;
    if (x->given)
        memcpy(p->block, x->given, (size_t)a->n * sizeof(p->block[0]));
    a->cell_use[x->base % (size_t)a->cell_depth] = (struct rk_cell_use){x->base + x->chunks, -1};
    rk_direct_publish(x, RK_CHUNK_IN, x->base + x->chunks);
}

bool rk_direct_have_met(const struct rk_direct *x)
{
    bool all = rk_direct_all_post(x);

    for (int r = 0; r < x->a->n; r++) {
        if (r != x->a->me && (all || r == x->root) && !rk_direct_has_posted(x, r))
            return false;
    }
    return true;
}

/* Is the memory that others read mapped? From posts that all ranks have seen. */
static bool is_mapped(const struct rk_direct *x)
{
    for (int r = 0; r < x->a->n; r++) {
        const struct rk_post *p = rk_post_of(x, r);

        if (rk_direct_one_source(x) && r != x->root)
            continue;
        if (rk_place_is_private(&p->sbuf) || (x->kind == RK_COLL_ALLREDUCE && rk_place_is_private(&p->result)))
            return false;
    }
    return true;
}

bool rk_direct_decide(const struct rk_direct *x)
{
    struct rk_arena *a = x->a;
    bool all = rk_direct_all_post(x);

    if (a->reads == RK_READS_UNKNOWN) {
        a->reads = RK_READS_ALL;
        for (int r = 0; r < a->n; r++) {
            if (!rk_post_of(x, r)->reads_all)
                a->reads = RK_READS_SOME;
        }
    }
    for (int r = 0; r < a->n && all; r++) {
        if (rk_post_of(x, r)->overlaps)
            return false;
    }
    if (a->reads != RK_READS_ALL || x->overlaps)
        return false;
    /* Private memory goes faster through cells, at any length: entering the kernel costs more than a second copy. */
    return rk_conf.large == RK_CONF_LARGE_CMA || is_mapped(x);
}
