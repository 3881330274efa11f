/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_args.h: check and normalize the arguments of collectives.
 *
 * A table gives the shape of each collective. Where the kind of a call is a constant, the compiler folds it.
 */
#ifndef RK_COLLECTIVES_COLL_ARGS_H
#define RK_COLLECTIVES_COLL_ARGS_H

#include "collectives/algo.h"
#include "lib/data/dtype.h"

enum rk_blocks { RK_NO_BLOCK, RK_ONE_BLOCK, RK_ALL_BLOCKS /* one for each rank */ };
enum rk_root { RK_NO_ROOT, RK_ROOT, RK_ROOT_SENDS, RK_ROOT_RECEIVES /* the only rank that does */ };

struct rk_coll_shape {
    enum rk_blocks sbuf, rbuf;
    enum rk_root root;
    bool reduces;
};

static const struct rk_coll_shape rk_coll_shape[RK_COLL_COUNT] = {
    [RK_COLL_BARRIER] = {RK_NO_BLOCK, RK_NO_BLOCK, RK_NO_ROOT, false},
    [RK_COLL_BCAST] = {RK_NO_BLOCK, RK_ONE_BLOCK, RK_ROOT, false},
    [RK_COLL_REDUCE] = {RK_ONE_BLOCK, RK_ONE_BLOCK, RK_ROOT_RECEIVES, true},
    [RK_COLL_ALLREDUCE] = {RK_ONE_BLOCK, RK_ONE_BLOCK, RK_NO_ROOT, true},
    [RK_COLL_GATHER] = {RK_ONE_BLOCK, RK_ALL_BLOCKS, RK_ROOT_RECEIVES, false},
    [RK_COLL_ALLGATHER] = {RK_ONE_BLOCK, RK_ALL_BLOCKS, RK_NO_ROOT, false},
    [RK_COLL_ALLGATHERV] = {RK_ONE_BLOCK, RK_ONE_BLOCK, RK_NO_ROOT, false}, /* see rk_coll_check_counts */
    [RK_COLL_SCATTER] = {RK_ALL_BLOCKS, RK_ONE_BLOCK, RK_ROOT_SENDS, false},
    [RK_COLL_REDUCE_SCATTER] = {RK_ALL_BLOCKS, RK_ONE_BLOCK, RK_NO_ROOT, true},
    [RK_COLL_ALLTOALL] = {RK_ALL_BLOCKS, RK_ALL_BLOCKS, RK_NO_ROOT, false},
    [RK_COLL_GATHERV] = {RK_ONE_BLOCK, RK_ONE_BLOCK, RK_ROOT_RECEIVES, false},
    [RK_COLL_SCATTERV] = {RK_ONE_BLOCK, RK_ONE_BLOCK, RK_ROOT_SENDS, false},
    [RK_COLL_ALLTOALLV] = {RK_ALL_BLOCKS, RK_ALL_BLOCKS, RK_NO_ROOT, false},
    [RK_COLL_REDUCE_SCATTERV] = {RK_ALL_BLOCKS, RK_ONE_BLOCK, RK_NO_ROOT, true},
    [RK_COLL_SCAN] = {RK_ONE_BLOCK, RK_ONE_BLOCK, RK_NO_ROOT, true},
    [RK_COLL_EXSCAN] = {RK_ONE_BLOCK, RK_ONE_BLOCK, RK_NO_ROOT, true},
};

/* Check all but the team and datatype of a call with counts, and set count and bytes. */
rank_status_t rk_coll_check_counts(struct rk_coll_call *c);
/* Entries of the count arrays that this rank uses: they are valid during the call only. */
size_t rk_coll_counts(const struct rk_coll_call *c);
/* Point the call to copies of the arrays, in space for rk_coll_counts entries. */
void rk_coll_copy_counts(struct rk_coll_call *c, int64_t *to);
/* A list of blocks in a buffer of the call; counts NULL: the buffer has none. */
struct rk_block_list {
    const int64_t *counts, *displs;
};
struct rk_block_list rk_blocks_sent(const struct rk_coll_call *c);
struct rk_block_list rk_blocks_received(const struct rk_coll_call *c);
/* Bytes of the buffers that this rank uses of a checked call. */
void rk_coll_buffers(const struct rk_coll_call *c, size_t *send, size_t *recv);
rank_status_t rk_coll_buffer_error(const char *call, const char *name, const void *buf);
rank_status_t rk_coll_overlap_error(const char *call);

/* Check an operation of the program. */
RK_COLD rank_status_t rk_coll_check_user_op(const char *call, rank_op_t op, bool *commutative);
RK_COLD rank_status_t rk_coll_op_error(const char *call, rank_op_t op, rank_dtype_t dtype);

/* Check the operation and set its kernel. The address of *c does not leave: then its constants would be lost. */
RK_INLINE rank_status_t rk_coll_check_op(struct rk_coll_call *c)
{
    rank_status_t st;
    bool commutative;

    if (rk_unlikely(!rk_op_is_predefined(c->op))) {
        st = rk_coll_check_user_op(c->name, c->op, &commutative);
        c->user = true;
        c->ordered = c->ordered || (!st && !commutative);
        return st;
    }
    if (rk_unlikely(!rk_dtype_is_predefined(c->dtype)))
        return rk_coll_op_error(c->name, c->op, c->dtype);
    c->fn = rk_op_table[RK_HANDLE_INDEX(c->dtype)].fn[RK_HANDLE_INDEX(c->op)];
    if (rk_unlikely(!c->fn))
        return rk_coll_op_error(c->name, c->op, c->dtype);
    return RANK_OK;
}

/* Is a buffer that this rank uses present, if any data is to lie in it? */
RK_INLINE bool rk_coll_usable(const struct rk_coll_call *c, const void *buf)
{
    return rk_likely(buf != NULL || c->bytes == 0) && rk_likely(buf != RANK_IN_PLACE);
}

/* Check the buffers that this rank uses, and resolve RANK_IN_PLACE: its block is at this offset in the other one. */
RK_INLINE rank_status_t rk_coll_check_buffers(struct rk_coll_call *c, bool sends, bool receives, size_t at)
{
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];
    bool both = sends && receives, scatters = shape.root == RK_ROOT_SENDS;
    bool s_in_r = both && !scatters && c->sbuf == RANK_IN_PLACE;
    bool r_in_s = both && scatters && c->rbuf == RANK_IN_PLACE;

    c->in_place = s_in_r || r_in_s;
    if (receives && !r_in_s && !rk_coll_usable(c, c->rbuf))
        return rk_coll_buffer_error(c->name, shape.sbuf ? "rbuf" : "buf", c->rbuf);
    if (sends && !s_in_r && !rk_coll_usable(c, c->sbuf))
        return rk_coll_buffer_error(c->name, "sbuf", c->sbuf);
    if (s_in_r)
        c->sbuf = c->bytes ? c->rbuf + at : c->rbuf;
    else if (r_in_s)
        c->rbuf = (char *)(uintptr_t)c->sbuf + (c->bytes ? at : 0);
    else if (RK_CHECK_OVERLAP && both &&
             rk_overlap(c->sbuf, c->bytes * (shape.sbuf == RK_ALL_BLOCKS ? (size_t)c->team->size : 1), c->rbuf,
                        c->bytes * (shape.rbuf == RK_ALL_BLOCKS ? (size_t)c->team->size : 1)))
        return rk_coll_overlap_error(c->name);
    return RANK_OK;
}

/* Check a call, reporting errors, and set what struct rk_coll_call lists for it. */
RK_INLINE rank_status_t rk_coll_check(struct rk_coll_call *c)
{
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];
    bool counts = rk_coll_has_counts(c->kind); /* known before any call that could change *c, so the branch below folds */
    rank_status_t st = rk_team_check(c->name, c->team);
    size_t whole, bytes;
    bool at_root;

    if (rk_unlikely(st))
        return st;
    st = rk_dtype_span(c->name, c->dtype, c->count, &bytes);
    c->bytes = bytes;
    if (rk_unlikely(st))
        return st;
    c->elem = rk_dtype_bytes(c->dtype);
    if (counts) {
        st = shape.reduces ? rk_coll_check_op(c) : RANK_OK;
        return st ? st : rk_coll_check_counts(c);
    }
    if ((shape.sbuf == RK_ALL_BLOCKS || shape.rbuf == RK_ALL_BLOCKS) &&
        rk_unlikely(__builtin_mul_overflow(c->bytes, (size_t)c->team->size, &whole) || whole > INT64_MAX))
        return rk_arg_error(RANK_ERR_COUNT, c->name, "count %lld for each of %d ranks is more than memory can hold",
                            (long long)c->count, c->team->size);
    if (shape.reduces && rk_unlikely(st = rk_coll_check_op(c)))
        return st;
    if ((c->kind == RK_COLL_SCAN || c->kind == RK_COLL_EXSCAN) && rk_unlikely(c->op == RANK_AVG))
        return rk_arg_error(RANK_ERR_OP, c->name, "RANK_AVG has no prefixes; use RANK_SUM, and divide");
    if (shape.root && rk_unlikely((unsigned)c->root >= (unsigned)c->team->size))
        return rk_arg_error(RANK_ERR_RANK, c->name, "root %d is out of range (team size %d)", c->root, c->team->size);
    at_root = c->team->rank == c->root;
    return rk_coll_check_buffers(c, shape.sbuf && (at_root || shape.root != RK_ROOT_SENDS),
                                 shape.rbuf && (at_root || shape.root != RK_ROOT_RECEIVES) && rk_coll_has_result(c),
                                 shape.sbuf == shape.rbuf || c->kind == RK_COLL_REDUCE_SCATTER
                                     ? 0
                                     : (size_t)c->team->rank * c->bytes);
}

#endif
