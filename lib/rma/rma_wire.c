/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_wire.c: validate requests of one-sided calls. */
#include "lib/data/dtype.h"
#include "lib/rma/rma_wire.h"

#include <stddef.h>
#include <string.h>

bool rk_amo_defined(unsigned amo, unsigned dtype)
{
    switch (dtype) {
    case RK_HANDLE_INDEX(RANK_INT32):
    case RK_HANDLE_INDEX(RANK_UINT32):
    case RK_HANDLE_INDEX(RANK_INT64):
    case RK_HANDLE_INDEX(RANK_UINT64):
        return amo <= RK_AMO_CAS;
    case RK_HANDLE_INDEX(RANK_F32):
    case RK_HANDLE_INDEX(RANK_F64):
        return amo == RANK_AMO_ADD || amo == RANK_AMO_FETCH_ADD || amo == RANK_AMO_SWAP ||
               amo == RK_AMO_CAS;
    default:
        return false;
    }
}

/* Take n bytes from the front. */
static bool rma_wire_take(const unsigned char **at, size_t *left, void *to, size_t n)
{
    if (*left < n)
        return false;
    memcpy(to, *at, n);
    *at += n;
    *left -= n;
    return true;
}

/* Take the blocks and their total size. */
static bool take_block_list(struct rk_rma_parsed_request *out, const unsigned char **at, size_t *left)
{
    bool mems = out->head.flags & RK_RMA_HAS_MEMS;
    size_t each = mems ? sizeof(struct rk_rma_block) : sizeof(struct rk_rma_piece);
    uint32_t n = out->head.n;

    if (n == 0 || n > RK_RMA_BLOCKS_MAX || *left < n * each)
        return false;
    out->nblocks = n;
    for (uint32_t i = 0; i < n; i++) {
        struct rk_rma_block *b = &out->block[i];

        b->mem = out->head.mem;
        rma_wire_take(at, left, mems ? (void *)b : &b->offset, each);
        if (b->bytes > UINT32_MAX || out->bytes + b->bytes > UINT32_MAX)
            return false;
        out->bytes += (size_t)b->bytes;
    }
    return true;
}

/* The data is all that is left. */
static void take_data(struct rk_rma_parsed_request *out, const unsigned char *at, size_t left)
{
    out->data = at;
    out->bytes = left;
    if (out->nblocks)
        return;
    out->nblocks = 1;
    out->block[0] = (struct rk_rma_block){out->head.mem, out->head.offset, left};
}

bool rk_rma_decode_request(const void *payload, size_t len, struct rk_rma_parsed_request *out)
{
    const unsigned char *at = payload;

    memset(out, 0, offsetof(struct rk_rma_parsed_request, block));
    if (!payload || !rma_wire_take(&at, &len, &out->head, sizeof(out->head)))
        return false;
    switch (out->head.op) {
    case RK_RMA_PUT:
        if (out->head.n && (!take_block_list(out, &at, &len) || out->bytes != len))
            return false;
        break;
    case RK_RMA_GET:
        return take_block_list(out, &at, &len) && len == 0;
    case RK_RMA_AMO:
        return rma_wire_take(&at, &len, &out->operands, sizeof(out->operands)) && len == 0 &&
               rk_amo_defined(out->head.amo, out->head.dtype);
    case RK_RMA_SIGNAL:
        if (!rma_wire_take(&at, &len, &out->signal, sizeof(out->signal)) ||
            out->head.amo > RANK_SIGNAL_ADD)
            return false;
        break;
    case RK_RMA_FLUSH:
        return len == 0;
    case RK_RMA_KEYS:
        if (len == 0 || len % sizeof(struct rk_rma_name) || len > RK_RMA_NAMES_MAX * sizeof(struct rk_rma_name))
            return false;
        break;
    case RK_RMA_REVOKE:
        return rma_wire_take(&at, &len, &out->operands, sizeof(out->operands)) && len == 0;
    default:
        return false;
    }
    take_data(out, at, len);
    return true;
}

bool rk_rma_decode_reply(const void *payload, size_t len, struct rk_rma_reply *out,
                         const void **data, size_t *bytes)
{
    const unsigned char *at = payload;

    if (!payload || !rma_wire_take(&at, &len, out, sizeof(*out)))
        return false;
    if (out->status > 0 || out->status < -255)
        return false;
    *data = at;
    *bytes = len;
    return true;
}
