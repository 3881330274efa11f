/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c: list the reductions by operation and datatype. */
#include "collectives/op/kernel_set.h"

#define AT(name) RK_HANDLE_INDEX(RANK_##name)
#define ARITH(type)                                                                                \
    [AT(SUM)] = rk_op_##type##_sum, [AT(PROD)] = rk_op_##type##_prod,                            \
    [AT(MIN)] = rk_op_##type##_min, [AT(MAX)] = rk_op_##type##_max
#define BITS(type)                                                                                 \
    [AT(BAND)] = rk_op_##type##_band, [AT(BOR)] = rk_op_##type##_bor,                            \
    [AT(BXOR)] = rk_op_##type##_bxor
#define LOGIC(type)                                                                                \
    [AT(LAND)] = rk_op_##type##_land, [AT(LOR)] = rk_op_##type##_lor,                            \
    [AT(LXOR)] = rk_op_##type##_lxor
#define AVG(type) [AT(AVG)] = rk_op_##type##_sum
#define SUM_PROD(type) [AT(SUM)] = rk_op_##type##_sum, [AT(PROD)] = rk_op_##type##_prod
#define LOC(type) [AT(MINLOC)] = rk_op_##type##_minloc, [AT(MAXLOC)] = rk_op_##type##_maxloc

struct rk_op_row rk_op_table[RK_DTYPE_COUNT] = {
    [AT(BYTE)] = {{BITS(uint8)}},
    [AT(INT8)] = {{ARITH(int8), BITS(int8), LOGIC(int8)}},
    [AT(INT16)] = {{ARITH(int16), BITS(int16), LOGIC(int16)}},
    [AT(INT32)] = {{ARITH(int32), BITS(int32), LOGIC(int32)}},
    [AT(INT64)] = {{ARITH(int64), BITS(int64), LOGIC(int64)}},
    [AT(UINT8)] = {{ARITH(uint8), BITS(uint8), LOGIC(uint8)}},
    [AT(UINT16)] = {{ARITH(uint16), BITS(uint16), LOGIC(uint16)}},
    [AT(UINT32)] = {{ARITH(uint32), BITS(uint32), LOGIC(uint32)}},
    [AT(UINT64)] = {{ARITH(uint64), BITS(uint64), LOGIC(uint64)}},
    [AT(F16)] = {{ARITH(f16), AVG(f16)}},
    [AT(BF16)] = {{ARITH(bf16), AVG(bf16)}},
    [AT(F32)] = {{ARITH(f32), AVG(f32)}},
    [AT(F64)] = {{ARITH(f64), AVG(f64)}},
    [AT(F32_COMPLEX)] = {{SUM_PROD(c32), AVG(c32)}},
    [AT(F64_COMPLEX)] = {{SUM_PROD(c64), AVG(c64)}},
    [AT(PAIR_INT32)] = {{LOC(pair_int32)}},
    [AT(PAIR_INT64)] = {{LOC(pair_int64)}},
    [AT(PAIR_F32)] = {{LOC(pair_f32)}},
    [AT(PAIR_F64)] = {{LOC(pair_f64)}},
};

const struct rk_kernel_set *const rk_kernel_sets[RK_KERNEL_SETS] = {
    &rk_kernel_set_base,
#if defined(__x86_64__)
    &rk_kernel_set_v3, &rk_kernel_set_v4,
#endif
};

static const struct rk_kernel_set *_Atomic kernel_set_used = &rk_kernel_set_base;

/* Threads may reduce at the same time: they get one kernel or the other. */
void rk_kernels_use(const struct rk_kernel_set *set)
{
    for (int d = 0; d < RK_DTYPE_COUNT; d++) {
        struct rk_op_row *row = &rk_op_table[d];
        for (int op = 0; op < RK_SET_OPS; op++) {
            if (set->pair[d][op])
                atomic_store_explicit(&row->fn[op], set->pair[d][op], memory_order_relaxed);
        }
        if (atomic_load_explicit(&row->fn[AT(AVG)], memory_order_relaxed))
            atomic_store_explicit(&row->fn[AT(AVG)], atomic_load_explicit(&row->fn[AT(SUM)], memory_order_relaxed),
                                  memory_order_relaxed);
    }
    atomic_store_explicit(&kernel_set_used, set, memory_order_relaxed);
}

void rk_kernels_choose(void)
{
    static atomic_flag chosen = ATOMIC_FLAG_INIT;
    int i = RK_KERNEL_SETS - 1;

    if (atomic_flag_test_and_set(&chosen))
        return;
    while (!rk_kernel_sets[i]->runs())
        i--;
    rk_kernels_use(rk_kernel_sets[i]);
}

const struct rk_kernel_set *rk_kernels_used(void)
{
    return atomic_load_explicit(&kernel_set_used, memory_order_relaxed);
}

/* The kernel that reduces k arrays as r does with two; NULL if there is none. */
static rk_many_fn many_kernel(const struct rk_reducer *r)
{
    const struct rk_kernel_set *set = rk_kernels_used();

    if (!rk_dtype_is_predefined(r->dtype))
        return NULL;
    for (int op = 0; op < RK_SET_OPS; op++) {
        if (set->pair[RK_HANDLE_INDEX(r->dtype)][op] == r->fn)
            return set->many[RK_HANDLE_INDEX(r->dtype)][op];
    }
    return NULL;
}

void rk_reduce_many(const struct rk_reducer *r, void *dst, const void *const *src, int k, size_t n)
{
    enum { PIECE = 2048 }; /* bytes: the partial result stays in the first cache */
    char sum[PIECE];
    rk_many_fn many;
    size_t elem, most;

    if (rk_unlikely(r->user != NULL)) {
        rk_reduce_many_user(r, dst, src, k, n);
        return;
    }
    if (k == 2) {
        rk_reduce(r, dst, src[0], src[1], n);
        return;
    }
    many = many_kernel(r);
    if (many) {
        many(dst, src, k, n);
        return;
    }
    elem = rk_dtype_bytes(r->dtype); /* of a created datatype it is none */
    most = PIECE / elem;
    for (size_t at = 0, len; at < n; at += len) {
        size_t off = at * elem;

        len = n - at < most ? n - at : most;
        rk_reduce(r, sum, (const char *)src[0] + off, (const char *)src[1] + off, len);
        for (int i = 2; i < k; i++)
            rk_reduce(r, i == k - 1 ? (char *)dst + off : sum, sum, (const char *)src[i] + off, len);
    }
}

