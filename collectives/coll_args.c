/* coll_args.c: see coll_args.h. */
#include "collectives/coll_args.h"
#include "lib/data/dtype.h"

/* What all calls have in common. blocks: how many blocks the longest buffer holds. */
RK_INLINE rank_status_t common(struct rk_coll_call *c, enum rk_coll_kind kind, int64_t count,
                               rank_dtype_t dtype, bool many_blocks, rank_team_t team)
{
    rank_status_t st = rk_team_check(team);
    size_t whole;

    if (rk_unlikely(st))
        return st;
    st = rk_dtype_span(dtype, count, &c->bytes);
    if (rk_unlikely(st))
        return st;
    if (many_blocks && rk_unlikely(__builtin_mul_overflow(c->bytes, (size_t)team->size, &whole) ||
                                   whole > INT64_MAX))
        return RANK_ERR_COUNT;
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

RK_INLINE rank_status_t reduction(struct rk_coll_call *c, rank_op_t op)
{
    if (rk_unlikely((unsigned)op >= RANK_OP_COUNT))
        return RANK_ERR_OP;
    c->op = op;
    c->fn = rk_op_kernel(op, c->dtype);
    return rk_likely(c->fn != NULL) ? RANK_OK : RANK_ERR_DTYPE;
}

RK_INLINE rank_status_t rooted(struct rk_coll_call *c, int root)
{
    c->root = root;
    return rk_likely((unsigned)root < (unsigned)c->team->size) ? RANK_OK : RANK_ERR_RANK;
}

/* A buffer that this rank uses: it is there if anything is to lie in it. */
RK_INLINE bool usable(const struct rk_coll_call *c, const void *buf)
{
    return rk_likely(buf != NULL || c->bytes == 0) && rk_likely(buf != RANK_IN_PLACE);
}

/* What is read and what is written lie apart; else it is for RANK_IN_PLACE to say so. Looked at in builds for that, as the
 * blocks of a buffer are where they may lie anywhere. */
RK_INLINE bool apart(const void *sbuf, size_t sbytes, const void *rbuf, size_t rbytes)
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
RK_INLINE rank_status_t buffers(struct rk_coll_call *c, const void *sbuf, int sblocks, void *rbuf, int rblocks, size_t mine)
{
    c->rbuf = rbuf;
    if (rk_unlikely(!usable(c, rbuf)))
        return RANK_ERR_ARG;
    if (sbuf == RANK_IN_PLACE) {
        c->in_place = true;
        c->sbuf = c->bytes ? c->rbuf + mine : c->rbuf;
        return RANK_OK;
    }
    c->sbuf = sbuf;
    return usable(c, sbuf) && apart(sbuf, (size_t)sblocks * c->bytes, rbuf, (size_t)rblocks * c->bytes) ? RANK_OK
                                                                                                       : RANK_ERR_ARG;
}

rank_status_t rk_args_barrier(struct rk_coll_call *c, rank_team_t team)
{
    c->sbuf = c->rbuf = NULL;
    return common(c, RK_COLL_BARRIER, 0, RANK_BYTE, false, team);
}

rank_status_t rk_args_bcast(struct rk_coll_call *c, void *buf, int64_t count, rank_dtype_t dtype,
                            int root, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_BCAST, count, dtype, false, team);

    if (rk_unlikely(st) || rk_unlikely((st = rooted(c, root))))
        return st;
    c->sbuf = c->rbuf = buf;
    return usable(c, buf) ? RANK_OK : RANK_ERR_ARG;
}

rank_status_t rk_args_reduce(struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                             rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_REDUCE, count, dtype, false, team);

    if (st || (st = reduction(c, op)) || (st = rooted(c, root)))
        return st;
    if (team->rank == root)
        return buffers(c, sbuf, 1, rbuf, 1, 0);
    c->sbuf = sbuf;
    c->rbuf = NULL;
    return usable(c, sbuf) ? RANK_OK : RANK_ERR_ARG;
}

rank_status_t rk_args_allreduce(struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                int64_t count, rank_dtype_t dtype, rank_op_t op, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_ALLREDUCE, count, dtype, false, team);

    if (rk_unlikely(st) || rk_unlikely((st = reduction(c, op))))
        return st;
    return buffers(c, sbuf, 1, rbuf, 1, 0);
}

rank_status_t rk_args_gather(struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                             rank_dtype_t dtype, int root, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_GATHER, count, dtype, true, team);

    if (st || (st = rooted(c, root)))
        return st;
    if (team->rank == root)
        return buffers(c, sbuf, 1, rbuf, team->size, (size_t)root * c->bytes);
    c->sbuf = sbuf;
    c->rbuf = NULL;
    return usable(c, sbuf) ? RANK_OK : RANK_ERR_ARG;
}

rank_status_t rk_args_allgather(struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                int64_t count, rank_dtype_t dtype, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_ALLGATHER, count, dtype, true, team);

    return st ? st : buffers(c, sbuf, 1, rbuf, team->size, (size_t)team->rank * c->bytes);
}

rank_status_t rk_args_allgatherv(struct rk_coll_call *c, const void *sbuf, int64_t scount,
                                 void *rbuf, const int64_t *rcounts, const int64_t *displs,
                                 rank_dtype_t dtype, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_ALLGATHERV, scount, dtype, false, team);
    int64_t longest = 0, end;
    size_t bytes;

    if (st)
        return st;
    if (!rcounts || !displs)
        return RANK_ERR_ARG;
    for (int r = 0; r < team->size; r++) {
        if (rcounts[r] < 0 || displs[r] < 0 || __builtin_add_overflow(rcounts[r], displs[r], &end))
            return RANK_ERR_COUNT;
        st = rk_dtype_span(dtype, end, &bytes);
        if (st)
            return st;
        longest = rcounts[r] > longest ? rcounts[r] : longest;
    }
    if (sbuf != RANK_IN_PLACE && scount != rcounts[team->rank])
        return RANK_ERR_COUNT; /* the others would get less or more than they expect */
    c->rcounts = rcounts;
    c->displs = displs;
    c->count = longest;
    c->bytes = (size_t)longest * c->elem;
    if (RK_CHECK_OVERLAP && !blocks_apart(c))
        return RANK_ERR_ARG;
    for (int r = 0; RK_CHECK_OVERLAP && sbuf != RANK_IN_PLACE && rbuf && r < team->size; r++) {
        if (!apart(sbuf, (size_t)scount * c->elem, (char *)rbuf + (size_t)displs[r] * c->elem, (size_t)rcounts[r] * c->elem))
            return RANK_ERR_ARG;
    }
    if (sbuf == NULL && scount == 0) { /* this rank has nothing, others may */
        c->sbuf = NULL;
        c->rbuf = rbuf;
        return usable(c, rbuf) ? RANK_OK : RANK_ERR_ARG;
    }
    return buffers(c, sbuf, 0, rbuf, 0, (size_t)displs[team->rank] * c->elem); /* looked at above */
}

rank_status_t rk_args_scatter(struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                              rank_dtype_t dtype, int root, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_SCATTER, count, dtype, true, team);

    if (st || (st = rooted(c, root)))
        return st;
    c->rbuf = rbuf;
    c->sbuf = NULL;
    if (team->rank != root)
        return usable(c, rbuf) ? RANK_OK : RANK_ERR_ARG;
    c->sbuf = sbuf;
    if (!usable(c, sbuf))
        return RANK_ERR_ARG;
    if (rbuf == RANK_IN_PLACE) {
        c->in_place = true;
        c->rbuf = (char *)(uintptr_t)sbuf + (c->bytes ? (size_t)root * c->bytes : 0);
        return RANK_OK;
    }
    return usable(c, rbuf) && apart(sbuf, (size_t)team->size * c->bytes, rbuf, c->bytes) ? RANK_OK : RANK_ERR_ARG;
}

rank_status_t rk_args_reduce_scatter(struct rk_coll_call *c, const void *sbuf, void *rbuf,
                                     int64_t count, rank_dtype_t dtype, rank_op_t op,
                                     rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_REDUCE_SCATTER, count, dtype, true, team);

    if (st || (st = reduction(c, op)))
        return st;
    return buffers(c, sbuf, team->size, rbuf, 1, 0);
}

rank_status_t rk_args_alltoall(struct rk_coll_call *c, const void *sbuf, void *rbuf, int64_t count,
                               rank_dtype_t dtype, rank_team_t team)
{
    rank_status_t st = common(c, RK_COLL_ALLTOALL, count, dtype, true, team);

    return st ? st : buffers(c, sbuf, team->size, rbuf, team->size, 0);
}
