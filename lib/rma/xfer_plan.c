/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer_plan.c: check lists of blocks, and arrange them by access path.
 *
 * The check resolves each memory once: the memory keeps its place in the list, valid for the list's serial.
 */
#include "lib/base/arg_error.h"
#include "lib/rma/xfer.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------ check */

/* Rank of the peer in the team of a memory; -1: it is not in it. */
static int rank_in(const struct rank_mem *mem, const struct rank_team *team, int peer)
{
    int number = rk_team_world_rank(team, peer);

    if (mem->team == team)
        return peer;
    if (!mem->team->world_ranks)
        return number < mem->team->size ? number : -1;
    for (int r = 0; r < mem->team->size; r++) {
        if (mem->team->world_ranks[r] == number)
            return r;
    }
    return -1;
}

/* Check a memory that no earlier block of the list has, and give it a place. */
static rank_status_t check_memory(const char *call, int64_t i, struct rank_mem *mem, bool put, int peer, struct rank_team *team,
                                  uint32_t *nmems)
{
    unsigned denied = put ? RK_NO_WRITES : RK_NO_READS;
    int r;

    if (mem->ctx != team->ctx)
        return rk_arg_error(RANK_ERR_HANDLE, call, "blocks[%lld].mem is of another context than the team", (long long)i);
    if (mem->kind)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "blocks[%lld].mem is of the kind %s; use rank_put or rank_get",
                            (long long)i, mem->kind->name);
    r = rank_in(mem, team, peer);
    if (r < 0 || !rk_path_exists(mem, r))
        return rk_arg_error(RANK_ERR_ARG, call, "blocks[%lld].mem does not belong to peer %d", (long long)i, peer);
    if (mem->denied & denied)
        return rk_arg_error(RANK_ERR_ARG, call, "blocks[%lld].mem must not be %s: its owner has not permitted that", (long long)i,
                            put ? "written" : "read");
    mem->list_serial = team->ctx->rma->xfers.serial;
    mem->list_index = (*nmems)++;
    mem->list_rank = r;
    return RANK_OK;
}

static rank_status_t check_block(const char *call, int64_t i, const rank_block_t *b, bool put, int peer, struct rank_team *team,
                                 uint32_t *nmems)
{
    struct rank_mem *mem = b->mem;
    rank_status_t st;

    if (rk_unlikely(rk_mem_check_any(NULL, mem)))
        return rk_arg_error(RANK_ERR_HANDLE, call, "blocks[%lld].mem is not a memory handle", (long long)i);
    if ((mem->list_serial != team->ctx->rma->xfers.serial || mem->ctx != team->ctx) &&
        (st = check_memory(call, i, mem, put, peer, team, nmems)) != RANK_OK)
        return st;
    if (rk_unlikely(b->bytes < 0))
        return rk_arg_error(RANK_ERR_COUNT, call, "blocks[%lld].bytes %lld is negative", (long long)i, (long long)b->bytes);
    if (rk_unlikely(b->offset < 0 || (uint64_t)b->offset > mem->bytes || (uint64_t)b->bytes > mem->bytes - (uint64_t)b->offset))
        return rk_arg_error(RANK_ERR_BOUNDS, call, "blocks[%lld]: %lld bytes at offset %lld leave the memory of %zu bytes", (long long)i,
                            (long long)b->bytes, (long long)b->offset, mem->bytes);
    if (rk_unlikely(!b->local && b->bytes))
        return rk_arg_error(RANK_ERR_ARG, call, "blocks[%lld].local is NULL", (long long)i);
    if (rk_unlikely(rk_device_kind) && b->bytes && rk_kind_of(b->local, (size_t)b->bytes))
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "blocks[%lld].local is not in host memory; copy it there", (long long)i);
    if (rk_mem_lies_on(mem, b->local, b->bytes, mem->list_rank, b->offset))
        return rk_arg_error(RANK_ERR_ARG, call, "blocks[%lld].local overlaps the memory that it is moved to or from", (long long)i);
    return RANK_OK;
}

static rank_status_t check_notice(const char *call, const rank_notice_t *notice)
{
    if (!notice)
        return RANK_OK;
    if (notice->tag < 0)
        return rk_arg_error(RANK_ERR_TAG, call, "the notice's tag %lld is negative", (long long)notice->tag);
    if (notice->bytes < 0 || notice->bytes > RANK_NOTICE_MAX)
        return rk_arg_error(RANK_ERR_COUNT, call, "the notice has %lld bytes; it may have 0 to %d", (long long)notice->bytes,
                            RANK_NOTICE_MAX);
    if (!notice->data && notice->bytes)
        return rk_arg_null(call, "the notice's data");
    if (rk_unlikely(rk_device_kind) && notice->bytes && rk_kind_of(notice->data, (size_t)notice->bytes))
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "the notice's data is not in host memory; copy it there");
    return RANK_OK;
}

/* RK_PEER_NULL: there is nothing to do. */
static rank_status_t check_transfer(const char *call, rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer,
                                struct rank_team *team, const rank_notice_t *notice, uint32_t *nmems)
{
    rank_status_t st = rk_team_check(call, team);

    *nmems = 0;
    if (st)
        return st;
    if (op != RANK_XFER_WRITE && op != RANK_XFER_READ)
        return rk_arg_error(RANK_ERR_ARG, call, "op %d is neither RANK_XFER_WRITE nor RANK_XFER_READ", (int)op);
    if (n < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "n %lld is negative", (long long)n);
    if (n && !blocks)
        return rk_arg_null(call, "blocks");
    st = check_notice(call, notice);
    if (st)
        return st;
    if (peer == RANK_PROC_NULL)
        return RK_PEER_NULL;
    if ((unsigned)peer >= (unsigned)team->size)
        return rk_arg_error(RANK_ERR_RANK, call, "peer %d is out of range (team size %d)", peer, team->size);
    team->ctx->rma->xfers.serial++;
    for (int64_t i = 0; i < n && !st; i++)
        st = check_block(call, i, &blocks[i], op == RANK_XFER_WRITE, peer, team, nmems);
    if (RK_CHECK_OVERLAP && !st && op == RANK_XFER_READ && rk_local_overlap(blocks, sizeof(*blocks), n))
        return rk_arg_error(RANK_ERR_ARG, call, "blocks that are written overlap");
    return st;
}

/* ---------------------------------------------------------------------- arrange */

static void plan_run(struct rk_xfer *x, int g, const rank_block_t *first, int64_t bytes)
{
    struct rank_mem *mem = first->mem;
    int64_t i = x->group[g].end++, offset = first->offset + rk_path_base(mem, mem->list_rank, (enum rk_route)g);

    x->pieces[i] = (rank_piece_t){first->local, bytes, offset};
    x->which[i] = mem->list_index;
    if (g == RK_ROUTE_FRAMES)
        x->ids[i] = mem->paths[mem->list_rank].id;
    x->bytes += (uint64_t)bytes;
}

/* Add the blocks of a group, neighbours as one piece. Returns the groups of all blocks as bits. */
static unsigned add_blocks(struct rk_xfer *x, int g, const rank_block_t *blocks, int64_t n)
{
    unsigned seen = 0;

    for (int64_t i = 0; i < n;) {
        const rank_block_t *b = &blocks[i++];
        int64_t bytes = b->bytes;
        int of;

        for (; i < n && blocks[i].mem == b->mem && blocks[i].offset == b->offset + bytes &&
               (uintptr_t)blocks[i].local == (uintptr_t)b->local + (uintptr_t)bytes;
             i++)
            bytes += blocks[i].bytes;
        if (bytes == 0)
            continue;
        of = (int)rk_path_route(b->mem, b->mem->list_rank, x->peer, bytes);
        seen |= 1u << of;
        if (of == g)
            plan_run(x, g, b, bytes);
    }
    return seen;
}

static void plan_groups(struct rk_xfer *x, const rank_block_t *blocks, int64_t n)
{
    unsigned seen = ~0u;
    int64_t end = 0;

    for (int g = 0; g < RK_ROUTES; g++) {
        x->group[g].first = x->group[g].end = end;
        if (seen >> g & 1)
            seen = add_blocks(x, g, blocks, n);
        end = x->group[g].end;
    }
    for (int64_t i = 0; i < n; i++) {
        struct rank_mem *mem = blocks[i].mem;

        if (!x->mems[mem->list_index].mem)
            rk_mem_add_lists(mem, 1);
        x->mems[mem->list_index] = (struct rk_xfer_mem){mem, mem->list_rank};
    }
}

/* With its arrays behind it. */
static struct rk_xfer *xfer_alloc(int64_t n, uint32_t nmems, const rank_notice_t *notice)
{
    size_t each = sizeof(rank_piece_t) + sizeof(struct rk_id) + sizeof(uint32_t), notice_bytes = notice ? (size_t)notice->bytes : 0;
    size_t head = rk_round_up(sizeof(struct rk_xfer), 16), arrays;
    struct rk_xfer *x;
    char *at;

    if (__builtin_mul_overflow((size_t)n, each, &arrays) ||
        __builtin_add_overflow(arrays, head + nmems * sizeof(struct rk_xfer_mem) + notice_bytes, &arrays))
        return NULL;
    x = malloc(arrays);
    if (!x)
        return NULL;
    memset(x, 0, sizeof(*x));
    rk_list_init(&x->link);
    at = (char *)x + head;
    x->pieces = (rank_piece_t *)(void *)at;
    at += (size_t)n * sizeof(rank_piece_t);
    x->mems = (struct rk_xfer_mem *)(void *)at;
    x->nmems = nmems;
    memset(x->mems, 0, nmems * sizeof(*x->mems));
    at += nmems * sizeof(*x->mems);
    x->ids = (struct rk_id *)(void *)at;
    at += (size_t)n * sizeof(*x->ids);
    x->which = (uint32_t *)(void *)at;
    at += (size_t)n * sizeof(*x->which);
    if (notice) {
        x->has_notice = true;
        x->notice = (rank_notice_t){notice->tag, at, notice->bytes};
        if (notice_bytes)
            memcpy(at, notice->data, notice_bytes);
    }
    return x;
}

rank_status_t rk_xfer_plan(const char *call, rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer,
                           struct rank_team *team, const rank_notice_t *notice, struct rk_xfer **out)
{
    uint32_t nmems;
    rank_status_t st = check_transfer(call, op, blocks, n, peer, team, notice, &nmems);
    bool null = st == RK_PEER_NULL;
    struct rk_xfer *x;

    if (rk_peer_null_ok(st))
        return st;
    x = xfer_alloc(null ? 0 : n, nmems, notice);
    if (!x) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a list of %lld blocks", (long long)n);
    }
    x->ctx = team->ctx;
    x->team = team;
    x->rank = peer;
    x->put = op == RANK_XFER_WRITE;
    x->nblocks = n;
    if (!null && !(x->peer = rk_team_peer(team, peer))) {
        free(x);
        return RANK_ERR_NO_MEMORY;
    }
    if (!null)
        plan_groups(x, blocks, n);
    *out = x;
    return RANK_OK;
}

void rk_xfer_free(struct rk_xfer *x)
{
    for (uint32_t i = 0; i < x->nmems; i++) {
        if (x->mems[i].mem)
            rk_mem_add_lists(x->mems[i].mem, -1);
    }
    free(x);
}
