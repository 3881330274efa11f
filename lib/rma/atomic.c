/* SPDX-License-Identifier: BSD-3-Clause */
/* atomic.c: implement the atomics of rank.h. */
#include "lib/data/dtype.h"
#include "lib/rma/amo.h"
#include "lib/rma/rma_internal.h"

static rank_status_t atomic_remote(unsigned amo, rank_dtype_t dtype, uint64_t operand,
                               uint64_t compare, int peer, struct rank_mem *mem, size_t offset,
                               uint64_t *before)
{
    RK_ENTER(mem->ctx);
    struct rk_rma_operands operands = {operand, compare};
    const struct rk_path *path;
    struct rk_origin_op op;
    struct rk_peer *p;
    unsigned denied = RK_NO_WRITES | (RK_AMO_FETCHING >> amo & 1 ? RK_NO_READS : 0u);
    rank_status_t st = rk_path_reach(mem, peer, denied, &p, &path);

    if (st)
        return st;
    if (rk_unlikely((path->base + offset) & ((size_t)rk_dtype_bytes(dtype) - 1)))
        return rk_mem_word_is_unaligned((int64_t)offset, rk_dtype_bytes(dtype));
    rk_origin_init(&op, p, RK_RMA_AMO, path->id);
    op.head.amo = (uint8_t)amo;
    op.head.dtype = (uint8_t)RK_HANDLE_INDEX(dtype);
    op.head.offset = offset + mem->shift;
    if (RK_AMO_FETCHING >> amo & 1)
        op.head.flags = RK_RMA_WANTS_REPLY;
    rk_origin_add(&op, &operands, sizeof(operands));
    st = rk_origin_run(&op, RK_REQ_AMO);
    *before = op.before;
    return st;
}

/* amo and dtype fit each other. compare may be NULL. */
RK_INLINE rank_status_t atomic_update(const char *call, unsigned amo, rank_dtype_t dtype, const void *operand,
                               const void *compare, int peer, struct rank_mem *mem,
                               int64_t offset, void *result)
{
    size_t width = rk_dtype_bytes(dtype);
    rank_status_t st = rk_mem_check_access(call, mem, operand, (int64_t)width, peer, offset);
    uint64_t v = 0, c = 0, before = 0;
    bool fetch = RK_AMO_FETCHING >> amo & 1;

    if (rk_unlikely(st))
        return rk_peer_null_ok(st);
    if (rk_unlikely((size_t)offset & (width - 1)))
        return rk_arg_error(RANK_ERR_ARG, call, "offset %lld is not a multiple of %zu", (long long)offset, width);
    if (rk_unlikely(fetch && !result))
        return rk_arg_null(call, "result");
    if (rk_unlikely(!rk_mem_is_plain(mem))) { /* the operand has been checked */
        if (compare)
            st = rk_mem_check_kind(call, mem, compare, (int64_t)width);
        if (!st && fetch)
            st = rk_mem_check_kind(call, mem, result, (int64_t)width);
        if (st)
            return st;
    }
    if (width == 8) {
        memcpy(&v, operand, 8);
        if (compare)
            memcpy(&c, compare, 8);
    } else {
        memcpy(&v, operand, 4);
        if (compare)
            memcpy(&c, compare, 4);
    }
    if (rk_likely(mem->part[peer] != NULL)) {
        char *at = mem->part[peer] + offset;
        if (rk_unlikely((uintptr_t)at & (width - 1))) /* registered memory may have any alignment */
            return rk_mem_word_is_unaligned(offset, width);
        before = rk_amo_apply(at, amo, RK_HANDLE_INDEX(dtype), v, c);
        if (fetch)
            st = rk_mem_check_death(mem, peer);
    } else if ((st = atomic_remote(amo, dtype, v, c, peer, mem, (size_t)offset, &before)) != RANK_OK) {
        return rk_call_returns(call, st);
    }
    if (fetch && width == 8)
        memcpy(result, &before, 8);
    else if (fetch)
        memcpy(result, &before, 4);
    return st;
}

static __attribute__((noinline)) rank_status_t update_any(rank_amo_t amo, rank_dtype_t dtype,
                                                          const void *operand, int peer,
                                                          rank_mem_t mem, int64_t offset,
                                                          void *result)
{
    if ((unsigned)amo >= RK_AMO_CAS)
        return rk_arg_error(RANK_ERR_OP, "rank_atomic", "op %d is not defined; there are %d", (int)amo, RK_AMO_CAS);
    if (!rk_dtype_is_predefined(dtype) || !rk_amo_defined(amo, RK_HANDLE_INDEX(dtype)))
        return rk_arg_error(RANK_ERR_DTYPE, "rank_atomic", "op %d is not defined for dtype %#llx", (int)amo, (unsigned long long)dtype);
    return atomic_update("rank_atomic", amo, dtype, operand, NULL, peer, mem, offset, result);
}

/* Common updates of mapped memory cost little more than the instruction. */
rank_status_t rank_atomic(rank_amo_t amo, rank_dtype_t dtype, const void *operand, int peer,
                          rank_mem_t mem, int64_t offset, void *result)
{
    if (rk_likely(rk_mem_is_plain(mem)) && rk_likely((dtype == RANK_INT64 || dtype == RANK_UINT64) && amo <= RANK_AMO_FETCH_ADD) &&
        rk_mem_check_access(NULL, mem, operand, 8, peer, offset) == RANK_OK &&
        rk_likely(mem->part[peer] != NULL && (amo == RANK_AMO_ADD || result))) {
        uint64_t *at = (uint64_t *)(void *)(mem->part[peer] + offset), v;

        if (rk_likely(((uintptr_t)at & 7) == 0 && (offset & 7) == 0)) {
            memcpy(&v, operand, sizeof(v));
            if (amo == RANK_AMO_ADD) {
                __atomic_add_fetch(at, v, __ATOMIC_ACQ_REL);
            } else {
                v = __atomic_fetch_add(at, v, __ATOMIC_ACQ_REL);
                memcpy(result, &v, sizeof(v));
                return rk_mem_check_death(mem, peer);
            }
            return RANK_OK;
        }
    }
    return update_any(amo, dtype, operand, peer, mem, offset, result);
}

rank_status_t rank_atomic_cas(rank_dtype_t dtype, const void *expected, const void *desired,
                              int peer, rank_mem_t mem, int64_t offset, void *result)
{
    if (!rk_dtype_is_predefined(dtype) || !rk_amo_defined(RK_AMO_CAS, RK_HANDLE_INDEX(dtype)))
        return rk_arg_error(RANK_ERR_DTYPE, __func__, "dtype %#llx has no compare and swap", (unsigned long long)dtype);
    if (!expected)
        return rk_arg_null(__func__, "expected");
    return atomic_update(__func__, RK_AMO_CAS, dtype, desired, expected, peer, mem, offset, result);
}

RK_PUBLIC(rank_atomic); RK_PUBLIC(rank_atomic_cas);
