/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * root.h: find the context of a public call.
 *
 * A rank_ctx_t points to the struct rk_ctx that rank_ctx_open has made. RANK_CTX_NULL is the launched context, that of
 * rank_init.
 */
#ifndef RK_CORE_ROOT_H
#define RK_CORE_ROOT_H

#include "lib/base/arg_error.h"
#include "lib/base/compiler.h"
#include "lib/base/ctx.h"

#define RK_CTX_MAGIC 0x63747821u

/* The launched context; NULL before rank_init and after rank_finalize. Only lib/world changes it. */
extern struct rk_ctx *rk_root;

/* Slow part of rk_root_find. */
RK_COLD rank_status_t rk_root_check(const char *call, rank_ctx_t handle, struct rk_ctx **out);

/* Get the context of a handle, for the public function call. RANK_ERR_HANDLE or RANK_ERR_STATE if it is not open. */
RK_INLINE rank_status_t rk_root_find(const char *call, rank_ctx_t handle, struct rk_ctx **out)
{
    if (rk_unlikely(handle != RANK_CTX_NULL || atomic_load(&rk_life) != RK_LIFE_IN))
        return rk_root_check(call, handle, out);
    *out = rk_root;
    return RANK_OK;
}

#endif
