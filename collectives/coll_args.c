/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_args.c: check blocks of different lengths, and report unusable buffers. */
#include "collectives/coll_args.h"

RK_COLD rank_status_t rk_coll_buffer_error(const char *call, const char *name, const void *buf)
{
    return buf ? rk_arg_error(RANK_ERR_ARG, call, "RANK_IN_PLACE is not for %s here", name) : rk_arg_null(call, name);
}

RK_COLD rank_status_t rk_coll_overlap_error(const char *call)
{
    return rk_arg_error(RANK_ERR_ARG, call, "the buffers overlap; RANK_IN_PLACE is for that");
}

/* Do the blocks in rbuf overlap neither each other nor the count elements of sbuf? */
static RK_COLD bool blocks_apart(const struct rk_coll_call *c, int64_t count)
{
    for (int r = 0; r < c->team->size; r++) {
        const char *at = c->rbuf + (size_t)c->rdispls[r] * c->elem;
        size_t bytes = (size_t)c->rcounts[r] * c->elem;

        for (int q = 0; q < r; q++) {
            if (rk_overlap(at, bytes, c->rbuf + (size_t)c->rdispls[q] * c->elem, (size_t)c->rcounts[q] * c->elem))
                return false;
        }
        if (!c->in_place && rk_overlap(c->sbuf, (size_t)count * c->elem, at, bytes))
            return false;
    }
    return true;
}

rank_status_t rk_coll_check_blocks(struct rk_coll_call *c)
{
    int64_t mine = c->count, longest = 0, end;
    const struct rank_team *team = c->team;
    rank_status_t st;

    if (!c->rcounts || !c->rdispls)
        return rk_arg_null(c->name, !c->rcounts ? "rcounts" : "displs");
    for (int r = 0; r < team->size; r++) {
        if (c->rcounts[r] < 0 || c->rdispls[r] < 0 || __builtin_add_overflow(c->rcounts[r], c->rdispls[r], &end))
            return rk_arg_error(RANK_ERR_COUNT, c->name, "rcounts[%d] %lld or displs[%d] %lld is out of range", r,
                                (long long)c->rcounts[r], r, (long long)c->rdispls[r]);
        st = rk_dtype_span(c->name, c->dtype, end, &c->bytes);
        if (st)
            return st;
        longest = c->rcounts[r] > longest ? c->rcounts[r] : longest;
    }
    if (c->sbuf != RANK_IN_PLACE && mine != c->rcounts[team->rank])
        return rk_arg_error(RANK_ERR_COUNT, c->name, "scount %lld is not rcounts[%d], %lld, of this rank", (long long)mine,
                            team->rank, (long long)c->rcounts[team->rank]); /* as the other ranks assume */
    c->count = longest;
    c->bytes = (size_t)longest * c->elem;
    /* A rank without data needs no sbuf, though others may have data. */
    st = rk_coll_check_buffers(c, c->sbuf != NULL || mine > 0, true, (size_t)c->rdispls[team->rank] * c->elem);
    if (!st && RK_CHECK_OVERLAP && c->rbuf && !blocks_apart(c, mine))
        st = rk_coll_overlap_error(c->name);
    return st;
}
