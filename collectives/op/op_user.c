/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_user.c: create operations of the program, and reduce by them.
 *
 * A handle has the class USER_OP, an index in bits 0 to 23, and a generation in bits 32 to 63. The table has one
 * reference to an operation, each schedule that uses it another.
 *
 * The function writes its result over the operand of the higher ranks, and inputs of a call stay as they are. So a
 * result that is to lie elsewhere takes a copy of that operand, in parts of the reducer's temporary memory.
 */
#include "collectives/op/op.h"
#include "lib/base/handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define USER_OP ((rank_op_t)0x12000000)
enum { OPS_MAX = 1 << 24, TEMP_BYTES = 4096 };

struct rk_user_op {
    rank_op_fn_t *fn;
    void *arg;
    bool commutative;
    atomic_int refs;
};

static struct rk_handles ops;
static pthread_mutex_t ops_lock = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------------------------ the table */

static struct rk_id user_op_id(rank_op_t op)
{
    return (struct rk_id){(uint32_t)op & (OPS_MAX - 1), (uint32_t)(op >> 32)};
}

/* Find it with the lock held. NULL: freed or none. */
static struct rk_user_op *user_op_find(rank_op_t op)
{
    return (op & 0xff000000) == USER_OP ? rk_handle_get(&ops, user_op_id(op)) : NULL;
}

bool rk_user_op_check(rank_op_t op, bool *commutative)
{
    struct rk_user_op *user;

    pthread_mutex_lock(&ops_lock);
    user = user_op_find(op);
    if (user)
        *commutative = user->commutative;
    pthread_mutex_unlock(&ops_lock);
    return user != NULL;
}

const struct rk_user_op *rk_user_op_take(rank_op_t op)
{
    struct rk_user_op *user;

    pthread_mutex_lock(&ops_lock);
    user = user_op_find(op);
    if (user)
        atomic_fetch_add_explicit(&user->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&ops_lock);
    return user;
}

void rk_user_op_drop(const struct rk_user_op *shared)
{
    struct rk_user_op *user = (struct rk_user_op *)(uintptr_t)shared;

    if (user && atomic_fetch_sub_explicit(&user->refs, 1, memory_order_acq_rel) == 1)
        free(user);
}

/* ------------------------------------------------------------------------------ reducing */

size_t rk_user_op_temp(size_t elem)
{
    return elem < TEMP_BYTES ? TEMP_BYTES / elem : 1;
}

static void user_call(const struct rk_reducer *r, const void *in, void *inout, size_t n)
{
    r->user->fn(in, inout, (int64_t)n, r->dtype, r->user->arg);
}

void rk_reduce_user(const struct rk_reducer *r, void *dst, const void *a, const void *b, size_t n)
{
    rk_reduce_many_user(r, dst, (const void *const[]){a, b}, 2, n);
}

/* Combine from right to left, which is the same to an associative function. */
void rk_reduce_many_user(const struct rk_reducer *r, void *dst, const void *const *src, int k, size_t n)
{
    size_t elem = rk_dtype_bytes(r->dtype), most = rk_user_op_temp(elem);
    bool direct = true; /* dst is no source, or the last one only */

    if (n && k == 2 && src[0] == dst && r->user->commutative) {
        user_call(r, src[1], dst, n);
        return;
    }
    for (int i = 0; i < k - 1; i++)
        direct = direct && src[i] != dst;
    if (direct)
        most = n;
    for (size_t at = 0, len; at < n; at += len) {
        size_t off = at * elem;
        void *part = direct ? dst : r->temp;

        len = n - at < most ? n - at : most;
        if ((const char *)src[k - 1] + off != part)
            memcpy(part, (const char *)src[k - 1] + off, len * elem);
        for (int i = k - 2; i >= 0; i--)
            user_call(r, (const char *)src[i] + off, part, len);
        if (!direct)
            memcpy((char *)dst + off, part, len * elem);
    }
}

/* -------------------------------------------------------------------------- public calls */

rank_status_t rank_op_create(rank_op_fn_t *fn, void *arg, uint64_t flags, rank_op_t *op)
{
    struct rk_user_op *user;
    struct rk_id id;
    bool put;

    if (!fn || !op)
        return rk_arg_null(__func__, !fn ? "fn" : "op");
    if (flags & ~(uint64_t)RANK_OP_COMMUTATIVE)
        return rk_arg_error(RANK_ERR_ARG, __func__, "flags %#llx has unknown bits", (unsigned long long)flags);
    user = malloc(sizeof(*user));
    if (!user)
        return rk_arg_error(RANK_ERR_NO_MEMORY, __func__, "no memory for an operation");
    *user = (struct rk_user_op){.fn = fn, .arg = arg, .commutative = flags & RANK_OP_COMMUTATIVE, .refs = 1};
    pthread_mutex_lock(&ops_lock);
    if (!ops.n)
        rk_handles_open(&ops);
    put = rk_handle_put(&ops, user, &id);
    if (put && id.index >= OPS_MAX) {
        rk_handle_drop(&ops, id);
        put = false;
    }
    pthread_mutex_unlock(&ops_lock);
    if (!put) {
        free(user);
        return rk_arg_error(RANK_ERR_NO_MEMORY, __func__, "no memory, or %d operations that are not freed", OPS_MAX);
    }
    *op = (uint64_t)id.gen << 32 | USER_OP | id.index;
    return RANK_OK;
}

rank_status_t rank_op_free(rank_op_t *op)
{
    struct rk_user_op *user;

    if (!op)
        return rk_arg_null(__func__, "op");
    pthread_mutex_lock(&ops_lock);
    user = user_op_find(*op);
    if (user)
        rk_handle_drop(&ops, user_op_id(*op));
    pthread_mutex_unlock(&ops_lock);
    if (!user)
        return rk_arg_error(RANK_ERR_OP, __func__, "op %#llx is predefined, freed or none", (unsigned long long)*op);
    rk_user_op_drop(user);
    *op = 0;
    return RANK_OK;
}

RK_PUBLIC(rank_op_create); RK_PUBLIC(rank_op_free);
