/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_args.c: check and normalize the arguments of collectives. */
#include "collectives/coll_args.h"
#include "lib/data/dtype.h"

/* Common part of all calls. blocks: number of blocks of the longest buffer. */
RK_INLINE rank_status_t common(const char *call, struct rk_coll_call *c, enum rk_coll_kind kind, int64_t count,
                               rank_dtype_t dtype, bool many_blocks, rank_team_t team)
{
    rank_status_t st = rk_team_check(call, team);
    size_t whole;

    if (rk_unlikely(st))
        return st;
    st = rk_dtype_span(call, dtype, count, &c->bytes);
    if (rk_unlikely(st))
        return st;
    if (many_blocks && rk_unlikely(__builtin_mul_overflow(c->bytes, (size_t)team->size, &whole) ||
                                   whole > INT64_MAX))
        return rk_arg_error(RANK_ERR_COUNT, call, "count %lld for each of %d ranks is more than memory can hold",
                            (long long)count, team->size);
    c->team = team;
    c->kind = kind;
    c->count = count;
    c->dtype = dtype;
    c->elem = rk_dtype_bytes[dtype];
    c->in_place = false;
    c->root = 0;
    c->op = RANK_SUM;
    c->fn = NULL;
    c->rcounts = c->displs = NULL;
    return RANK_OK;
}

RK_INLINE rank_status_t reduction(const char *call, struct rk_coll_call *c, rank_op_t op)
{
    if (rk_unlikely((unsigned)op >= RANK_OP_COUNT))
        return rk_arg_error(RANK_ERR_OP, call, "op %d is none (there are %d)", (int)op, RANK_OP_COUNT);
    c->op = op;
    c->fn = rk_op_kernel(op, c->dtype);
    if (rk_unlikely(!c->fn))
        return rk_arg_error(RANK_ERR_DTYPE, call, "op %d is not defined for dtype %d", (int)op, (int)c->dtype);
    return RANK_OK;
}

RK_INLINE rank_status_t rooted(const char *call, struct rk_coll_call *c, int root)
{
    c->root = root;
    if (rk_unlikely((unsigned)root >= (unsigned)c->team->size))
        return rk_arg_error(RANK_ERR_RANK, call, "root %d is out of range (team size %d)", root, c->team->size);
    return RANK_OK;
}

/* Is a buffer that this rank uses present, if any data is to lie in it? */
RK_INLINE bool coll_args_usable(const struct rk_coll_call *c, const void *buf)
{
    return rk_likely(buf != NULL || c->bytes == 0) && rk_likely(buf != RANK_IN_PLACE);
}

static RK_COLD rank_status_t unusable(const char *call, const char *name, const void *buf)
{
    return buf ? rk_arg_error(RANK_ERR_ARG, call, "RANK_IN_PLACE is not for %s here", name) : rk_arg_null(call, name);
}

static RK_COLD rank_status_t not_apart(const char *call)
{
    return rk_arg_error(RANK_ERR_ARG, call, "the buffers overlap; RANK_IN_PLACE is for that");
}

/*
 * Do input and output not overlap? RANK_IN_PLACE is for that. In builds with that check, as blocks may lie
 * anywhere.
 */
RK_INLINE bool coll_args_apart(const void *sbuf, size_t sbytes, const void *rbuf, size_t rbytes)
{
    return !RK_CHECK_OVERLAP || !rk_overlap(sbuf, sbytes, rbuf, rbytes);
}

static RK_COLD bool blocks_apart(const struct rk_coll_call *c)
{
    for (int r = 0; r < c->team->size; r++) {
        for (int q = 0; q < r; q++) {
            if (rk_overlap((void *)(uintptr_t)c->displs[r], (size_t)c->rcounts[r], (void *)(uintptr_t)c->displs[q],
                           (size_t)c->rcounts[q]))
                return false;
        }
    }
    return true;
}

/* The input is sbuf, or in place at mine in rbuf. */
RK_INLINE rank_status_t buffers(const char *call, struct rk_coll_call *c, const void *sbuf, int sblocks, void *rbuf, int rblocks, size_t mine)
{
    c->rbuf = rbuf;
    if (rk_unlikely(!coll_args_usable(c, rbuf)))
        return unusable(call, "rbuf", rbuf);
    if (sbuf == RANK_IN_PLACE) {
        c->in_place = true;
        c->sbuf = c->bytes ? c->rbuf + mine : c->rbuf;
        return RANK_OK;
    }
    c->sbuf = sbuf;
    if (rk_unlikely(!coll_args_usable(c, sbuf)))
        return unusable(call, "sbuf", sbuf);
    return coll_args_apart(sbuf, (size_t)sblocks * c->bytes, rbuf, (size_t)rblocks * c->bytes) ? RANK_OK : not_apart(call);
}

rank_status_t rk_args_barrier(const char *call, struct rk_coll_call *c, rank_team_t team)
{
    c->sbuf = c->rbuf = NULL;
    return common(call, c, RK_COLL_BARRIER, 0, RANK_BYTE, false, team);
}

rank_status_t rk_args_bcast(const char *call, struct rk_coll_call *c, void *buf, int64_t count, rank_dtype_t dtype,
                            int root, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_BCAST, count, dtype, false, team);

    if (rk_unlikely(st) || rk_unlikely((st = rooted(call, c, root))))
        return st;
    c->sbuf = c->rbuf = buf;
    return coll_args_usable(c, buf) ? RANK_OK : unusable(call, "buf", buf);
}

rank_status_t rk_args_reduce(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                             rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_REDUCE, count, dtype, false, team);

    if (st || (st = reduction(call, c, op)) || (st = rooted(call, c, root)))
        return st;
    if (team->rank == root)
        return buffers(call, c, sbuf, 1, rbuf, 1, 0);
    c->sbuf = sbuf;
    c->rbuf = NULL;
    return coll_args_usable(c, sbuf) ? RANK_OK : unusable(call, "sbuf", sbuf);
}

rank_status_t rk_args_allreduce(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_ALLREDUCE, count, dtype, false, team);

    if (rk_unlikely(st) || rk_unlikely((st = reduction(call, c, op))))
        return st;
    return buffers(call, c, sbuf, 1, rbuf, 1, 0);
}

rank_status_t rk_args_gather(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                             rank_dtype_t dtype, int root, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_GATHER, count, dtype, true, team);

    if (st || (st = rooted(call, c, root)))
        return st;
    if (team->rank == root)
        return buffers(call, c, sbuf, 1, rbuf, team->size, (size_t)root * c->bytes);
    c->sbuf = sbuf;
    c->rbuf = NULL;
    return coll_args_usable(c, sbuf) ? RANK_OK : unusable(call, "sbuf", sbuf);
}

rank_status_t rk_args_allgather(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                int64_t count, rank_dtype_t dtype, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_ALLGATHER, count, dtype, true, team);

    return st ? st : buffers(call, c, sbuf, 1, rbuf, team->size, (size_t)team->rank * c->bytes);
}

rank_status_t rk_args_allgatherv(const char *call, struct rk_coll_call *c, const void *sbuf, int64_t scount,
                                 void *rbuf, const int64_t *rcounts, const int64_t *displs,
                                 rank_dtype_t dtype, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_ALLGATHERV, scount, dtype, false, team);
    int64_t longest = 0, end;
    size_t bytes;

    if (st)
        return st;
    if (!rcounts || !displs)
        return rk_arg_null(call, !rcounts ? "rcounts" : "displs");
    for (int r = 0; r < team->size; r++) {
        if (rcounts[r] < 0 || displs[r] < 0 || __builtin_add_overflow(rcounts[r], displs[r], &end))
            return rk_arg_error(RANK_ERR_COUNT, call, "rcounts[%d] %lld or displs[%d] %lld is out of range", r,
                                (long long)rcounts[r], r, (long long)displs[r]);
        st = rk_dtype_span(call, dtype, end, &bytes);
        if (st)
            return st;
        longest = rcounts[r] > longest ? rcounts[r] : longest;
    }
    if (sbuf != RANK_IN_PLACE && scount != rcounts[team->rank])
        return rk_arg_error(RANK_ERR_COUNT, call, "scount %lld is not rcounts[%d], %lld, of this rank", (long long)scount,
                            team->rank, (long long)rcounts[team->rank]); /* as the other ranks assume */
    c->rcounts = rcounts;
    c->displs = displs;
    c->count = longest;
    c->bytes = (size_t)longest * c->elem;
    if (RK_CHECK_OVERLAP && !blocks_apart(c))
        return not_apart(call);
    for (int r = 0; RK_CHECK_OVERLAP && sbuf != RANK_IN_PLACE && rbuf && r < team->size; r++) {
        if (!coll_args_apart(sbuf, (size_t)scount * c->elem, (char *)rbuf + (size_t)displs[r] * c->elem, (size_t)rcounts[r] * c->elem))
            return not_apart(call);
    }
    if (sbuf == NULL && scount == 0) { /* nothing from this rank, though others may have data */
        c->sbuf = NULL;
        c->rbuf = rbuf;
        return coll_args_usable(c, rbuf) ? RANK_OK : unusable(call, "rbuf", rbuf);
    }
    return buffers(call, c, sbuf, 0, rbuf, 0, (size_t)displs[team->rank] * c->elem); /* checked above */
}

rank_status_t rk_args_scatter(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                              rank_dtype_t dtype, int root, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_SCATTER, count, dtype, true, team);

    if (st || (st = rooted(call, c, root)))
        return st;
    c->rbuf = rbuf;
    c->sbuf = NULL;
    if (team->rank != root)
        return coll_args_usable(c, rbuf) ? RANK_OK : unusable(call, "rbuf", rbuf);
    c->sbuf = sbuf;
    if (!coll_args_usable(c, sbuf))
        return unusable(call, "sbuf", sbuf);
    if (rbuf == RANK_IN_PLACE) {
        c->in_place = true;
        c->rbuf = (char *)(uintptr_t)sbuf + (c->bytes ? (size_t)root * c->bytes : 0);
        return RANK_OK;
    }
    if (!coll_args_usable(c, rbuf))
        return unusable(call, "rbuf", rbuf);
    return coll_args_apart(sbuf, (size_t)team->size * c->bytes, rbuf, c->bytes) ? RANK_OK : not_apart(call);
}

rank_status_t rk_args_reduce_scatter(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                     int64_t count, rank_dtype_t dtype, rank_op_t op,
                                     rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_REDUCE_SCATTER, count, dtype, true, team);

    if (st || (st = reduction(call, c, op)))
        return st;
    return buffers(call, c, sbuf, team->size, rbuf, 1, 0);
}

rank_status_t rk_args_alltoall(const char *call, struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                               rank_dtype_t dtype, rank_team_t team)
{
    rank_status_t st = common(call, c, RK_COLL_ALLTOALL, count, dtype, true, team);

    return st ? st : buffers(call, c, sbuf, team->size, rbuf, team->size, 0);
}
