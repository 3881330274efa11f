/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_kind.c: put from and get into memory of other kinds, through host memory. */
#include "lib/base/log.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>

RK_COLD rank_status_t rk_mem_check_kind(const char *call, const struct rank_mem *mem, const void *buf, int64_t bytes, bool any)
{
    const struct rk_kind *kind;

    if (!mem || mem->magic != RK_MEM_KINDS_MAGIC)
        return rk_arg_handle(call, "memory", mem);
    if (bytes <= 0 || (uint64_t)bytes > mem->bytes) /* the caller's checks follow */
        return RANK_OK;
    kind = rk_kind_of(buf, (size_t)bytes);
    if (!kind)
        return RANK_OK;
    return any ? RK_OTHER_KIND
               : rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "the buffer lies in memory of the kind %s; copy it to host memory",
                              kind->name);
}

RK_COLD rank_status_t rk_stage_move(bool put, void *local, size_t bytes, int peer, struct rank_mem *mem, int64_t offset)
{
    struct rk_view view = rk_view_of(local, bytes);
    void *host = malloc(bytes);
    rank_status_t st;

    if (!host) {
        rk_error("out of memory for a copy of %zu bytes of the kind %s", bytes, view.ops->kind->name);
        return RANK_ERR_NO_MEMORY;
    }
    if (put)
        rk_copy_out(host, &view, 0, bytes);
    st = put ? rank_put(host, (int64_t)bytes, peer, mem, offset) : rank_get(host, (int64_t)bytes, peer, mem, offset);
    if (!put && !st && peer != RANK_PROC_NULL)
        rk_copy_in(&view, 0, host, bytes);
    free(host);
    return st;
}
