/* SPDX-License-Identifier: BSD-3-Clause */
/* root.c: find the context of a public call. */
#include "lib/core/root.h"

struct rk_ctx *rk_root;

rank_status_t rk_root_check(const char *call, rank_ctx_t handle, struct rk_ctx **out)
{
    struct rk_ctx *ctx = (struct rk_ctx *)handle;

    if (!ctx)
        return rk_arg_not_in(call);
    if (ctx->magic != RK_CTX_MAGIC)
        return rk_arg_handle(call, "context", handle);
    if (ctx->forked)
        return rk_arg_error(RANK_ERR_STATE, call, "the context is the parent's; open one in this process");
    *out = ctx;
    return RANK_OK;
}
