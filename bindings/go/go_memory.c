/* SPDX-License-Identifier: BSD-3-Clause */
/* go_memory.c: carry out calls on memory, and probes, which have no request. */
#include "go_private.h"

#include <string.h>

rank_status_t go_mprobe(go_team *c, int peer, int64_t tag, int64_t timeout_ns, rank_message_t *message, rank_envelope_t *envelope)
{
    return GO_TEAM_CALL(c, rank_mprobe_timed(peer, tag, c->team, timeout_ns, message, envelope));
}

rank_status_t go_mrecv(go_team *c, void *data, int64_t n, rank_message_t *message, rank_envelope_t *envelope)
{
    return GO_TEAM_CALL(c, rank_mrecv(data, n, RANK_BYTE, message, envelope));
}

rank_status_t go_sendrecv(go_team *c, const void *out, int64_t n_out, int dest, int64_t tag_out, void *in, int64_t n_in, int source,
                          int64_t tag_in, rank_envelope_t *envelope)
{
    return GO_TEAM_CALL(c, rank_sendrecv(out, n_out, RANK_BYTE, dest, tag_out, in, n_in, RANK_BYTE, source, tag_in,
                                         c->team, envelope));
}

rank_status_t go_signal_wait(go_ctx *c, rank_mem_t mem, int64_t offset, int cmp, uint64_t value, int64_t timeout_ns, uint64_t *seen)
{
    return GO_CONTEXT_CALL(c, rank_signal_wait_timed(mem, offset, (rank_cmp_t)cmp, value, RANK_ANY_SOURCE,
                                                     timeout_ns, seen));
}

rank_status_t go_mem_register(go_ctx *c, void *data, int64_t n, unsigned access, rank_mem_t *mem)
{
    return GO_CONTEXT_CALL(c, rank_ctx_reg(c->ctx, data, n, access, mem));
}

rank_status_t go_mem_alloc(go_ctx *c, int64_t n, unsigned access, void **data, rank_mem_t *mem)
{
    return GO_CONTEXT_CALL(c, rank_ctx_alloc(c->ctx, n, access, data, mem));
}

rank_status_t go_mem_deregister(go_ctx *c, rank_mem_t mem, int64_t timeout_ns)
{
    return GO_CONTEXT_CALL(c, rank_dereg_timed(&mem, timeout_ns));
}

rank_status_t go_mem_pack(go_ctx *c, rank_mem_t mem, void *key, size_t *len)
{
    return GO_CONTEXT_CALL(c, rank_rkey_pack(mem, key, len));
}

rank_status_t go_team_alloc(go_team *c, int64_t n, void **data, rank_mem_t *mem)
{
    return GO_TEAM_CALL(c, rank_alloc(c->team, RANK_MEM_HOST, n, data, mem));
}

rank_status_t go_team_free(go_team *c, rank_mem_t mem)
{
    return GO_TEAM_CALL(c, rank_free(&mem));
}

rank_status_t go_mem_pack_all(go_ctx *c, int64_t n, const rank_mem_t *mems, void *keys, size_t *len)
{
    return GO_CONTEXT_CALL(c, rank_rkeys_pack(n, mems, keys, len));
}

rank_status_t go_remote_open_all(go_team *c, int peer, const void *keys, size_t len, int64_t *n, rank_mem_t *mems)
{
    return GO_TEAM_CALL(c, rank_rkeys_open(c->team, peer, keys, len, n, mems));
}

rank_status_t go_remote_open(go_team *c, int peer, const void *key, size_t len, rank_mem_t *mem)
{
    return GO_TEAM_CALL(c, rank_rkey_open(c->team, peer, key, len, mem));
}

rank_status_t go_remote_close(go_team *c, rank_mem_t mem)
{
    rank_status_t st;

    if (!go_team_enter(c))
        return RANK_OK; /* the end of the connection closes it */
    st = rank_rkey_close(&mem);
    go_team_leave(c);
    return st;
}

rank_status_t go_remote_flush(go_handle team, int peer, go_handle mem_handle)
{
    go_team *c = (go_team *)team;
    rank_mem_t mem = (rank_mem_t)mem_handle;
    return GO_TEAM_CALL(c, rank_flush(mem, peer));
}

rank_status_t go_remote_fence(go_team *c, rank_mem_t mem)
{
    return GO_TEAM_CALL(c, rank_fence(mem));
}

rank_status_t go_remote_vector(go_team *c, int peer, rank_mem_t mem, int put, const rank_piece_t *pieces, int64_t n)
{
    return GO_TEAM_CALL(c, put ? rank_putv(pieces, n, peer, mem) : rank_getv(pieces, n, peer, mem));
}

/* An element of 4 bytes is in the low half of the operand and of the result, in the order of the machine. */
rank_status_t go_remote_atomic(go_handle team, int peer, go_handle mem_handle, int amo, rank_dtype_t dtype, uint64_t operand, int64_t offset,
                               uint64_t *result)
{
    go_team *c = (go_team *)team;
    rank_mem_t mem = (rank_mem_t)mem_handle;
    rank_status_t st;
    uint32_t half = (uint32_t)operand, before = 0;
    bool small = rank_dtype_size(dtype) == 4;
    bool fetches = amo == RANK_AMO_FETCH_ADD || amo == RANK_AMO_SWAP || amo == RANK_AMO_FETCH_AND || amo == RANK_AMO_FETCH_OR ||
                   amo == RANK_AMO_FETCH_XOR;

    if (!go_team_enter(c))
        return RANK_ERR_CLOSED;
    if (small) {
        st = rank_atomic((rank_amo_t)amo, dtype, &half, peer, mem, offset, fetches ? &before : NULL);
        *result = before;
    } else {
        st = rank_atomic((rank_amo_t)amo, dtype, &operand, peer, mem, offset, fetches ? result : NULL);
    }
    go_team_leave(c);
    return st;
}

rank_status_t go_remote_cas(go_handle team, int peer, go_handle mem_handle, rank_dtype_t dtype, uint64_t expected, uint64_t desired, int64_t offset,
                            uint64_t *result)
{
    go_team *c = (go_team *)team;
    rank_mem_t mem = (rank_mem_t)mem_handle;
    uint32_t halves[2] = {(uint32_t)expected, (uint32_t)desired}, before = 0;
    rank_status_t st;

    if (!go_team_enter(c))
        return RANK_ERR_CLOSED;
    if (rank_dtype_size(dtype) == 4) {
        st = rank_atomic_cas(dtype, &halves[0], &halves[1], peer, mem, offset, &before);
        *result = before;
    } else {
        st = rank_atomic_cas(dtype, &expected, &desired, peer, mem, offset, result);
    }
    go_team_leave(c);
    return st;
}

rank_status_t go_remote_put_signal(go_team *c, int peer, rank_mem_t mem, const void *data, int64_t n, int64_t offset, rank_mem_t signal_mem,
                                   int64_t signal_offset, uint64_t value, int op)
{
    return GO_TEAM_CALL(c, rank_put_signal(data, n, peer, mem, offset, signal_mem, signal_offset, value,
                                           (rank_signal_op_t)op));
}
