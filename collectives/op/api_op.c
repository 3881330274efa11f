/* SPDX-License-Identifier: BSD-3-Clause */
/* api_op.c: list the defined operations, and reduce on one rank. */
#include "collectives/op/op.h"
#include "lib/mem/kind.h"

#include <stdlib.h>

int rank_op_defined(rank_op_t op, rank_dtype_t dtype)
{
    bool commutative;

    if (rk_user_op_check(op, &commutative))
        return rk_dtype_is_predefined(dtype) || rk_dtype_is_blob(dtype);
    return rk_op_kernel(op, dtype) != NULL;
}

/* Combine through host memory. */
static rank_status_t reduce_local_staged(const struct rk_reducer *r, const void *in, const struct rk_kind *in_kind, void *inout,
                                         const struct rk_kind *inout_kind, size_t n)
{
    enum { PART = 1 << 20 };
    size_t elem = rk_dtype_bytes(r->dtype), most = PART / elem;
    rank_status_t st = RANK_OK;
    char *host = malloc((size_t)2 * PART);

    if (!host)
        return rk_arg_error(RANK_ERR_NO_MEMORY, "rank_reduce_local", "no memory to copy the buffers to the host");
    for (size_t at = 0, len; at < n && !st; at += len) {
        char *to = (char *)inout + at * elem;

        len = n - at < most ? n - at : most;
        st = rk_kind_copy(host, NULL, (const char *)in + at * elem, in_kind, len * elem);
        if (!st)
            st = rk_kind_copy(host + PART, NULL, to, inout_kind, len * elem);
        if (st)
            break;
        rk_reduce(r, host + PART, host, host + PART, len);
        st = rk_kind_copy(to, inout_kind, host + PART, NULL, len * elem);
    }
    free(host);
    return st;
}

/* Buffers of which one is no host memory: by a kernel on their device, or through host memory. */
static rank_status_t reduce_local_kinds(const struct rk_reducer *r, rank_op_t op, const void *in, void *inout, size_t n)
{
    const struct rk_kind *in_kind = rk_kind_of(in, n * rk_dtype_bytes(r->dtype));
    const struct rk_kind *inout_kind = rk_kind_of(inout, n * rk_dtype_bytes(r->dtype));
    const void *const src[] = {in, inout};
    rank_status_t st = RANK_ERR_NOT_SUPPORTED;

    if (!r->user && in_kind == inout_kind && in_kind && in_kind->reduce)
        st = in_kind->reduce(inout, src, 2, n, r->dtype, op, 0);
    return st == RANK_ERR_NOT_SUPPORTED ? reduce_local_staged(r, in, in_kind, inout, inout_kind, n) : st;
}

rank_status_t rk_op_make_logical(rank_dtype_t dtype, void *buf, size_t n)
{
    struct rk_reducer r = {.fn = rk_op_kernel(RANK_LOR, dtype), .dtype = dtype};

    if (n && rk_kind_of(buf, n * rk_dtype_bytes(dtype)))
        return reduce_local_kinds(&r, RANK_LOR, buf, buf, n);
    rk_reduce(&r, buf, buf, buf, n);
    return RANK_OK;
}

rank_status_t rank_reduce_local(const void *in, void *inout, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    struct rk_reducer r = {.fn = rk_op_kernel(op, dtype), .dtype = dtype};
    size_t bytes;
    rank_status_t st = rk_dtype_span(__func__, dtype, count, &bytes);

    if (st)
        return st;
    if (op == RANK_AVG)
        return rk_arg_error(RANK_ERR_OP, __func__, "RANK_AVG needs a team; use RANK_SUM and divide");
    if (!r.fn && rk_op_is_predefined(op))
        return rk_arg_error(RANK_ERR_DTYPE, __func__, "op %#llx is not defined for dtype %#llx", (unsigned long long)op,
                            (unsigned long long)dtype);
    if (bytes && (!in || !inout))
        return rk_arg_null(__func__, !in ? "in" : "inout");
    if (RK_CHECK_OVERLAP && rk_overlap(in, bytes, inout, bytes))
        return rk_arg_error(RANK_ERR_ARG, __func__, "the buffers overlap");
    if (!r.fn && !(r.user = rk_user_op_take(op)))
        return rk_arg_error(RANK_ERR_OP, __func__, "op %#llx is not defined, or freed", (unsigned long long)op);
    if (bytes && (rk_kind_of(in, bytes) || rk_kind_of(inout, bytes)))
        st = reduce_local_kinds(&r, op, in, inout, (size_t)count);
    else if (bytes)
        rk_reduce(&r, inout, in, inout, (size_t)count);
    rk_user_op_drop(r.user);
    return st;
}

RK_PUBLIC(rank_op_defined); RK_PUBLIC(rank_reduce_local);
