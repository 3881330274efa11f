/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.c: implement put, get and rank_ptr, and the access paths to unmapped memory. */
#include "lib/node/cma.h"
#include "lib/node/xpmem.h"
#include "lib/node/node.h"
#include "lib/rma/rma_internal.h"

rank_status_t rk_remote_reach(struct rank_mem *mem, int rank, unsigned denied, struct rk_peer **peer,
                              const struct rk_access **way)
{
    if (!mem->ways || mem->ways[rank].how == RK_ACCESS_NONE)
        return mem->sort == RK_MEM_SYMMETRIC ? RANK_ERR_UNREACHABLE : RANK_ERR_RANK;
    if (rk_unlikely(mem->denied & denied))
        return rk_mem_is_denied(denied);
    *peer = rk_team_peer(mem->team, rank);
    if (!*peer)
        return RANK_ERR_NO_MEMORY;
    *way = &mem->ways[rank];
    /* This path reports no end of the process, and its pid may be reused soon. */
    if ((*way)->how == RK_ACCESS_CMA &&
        atomic_load(&mem->ctx->node->slots[(*peer)->local].state) != RK_SLOT_UP)
        return RANK_ERR_PEER_DEAD;
    return rk_peer_connect(*peer);
}

/* Attached memory may vanish; then CMA reports the reason. */
rank_status_t rk_access_put(const struct rk_access *way, uint64_t offset, const void *src, size_t bytes)
{
    char *to = rk_xpmem_begin(way->attached, way->base + offset, bytes);

    if (to) {
        rk_mapped_put(to, src, bytes);
        if (rk_xpmem_end(way->attached))
            return RANK_OK;
    }
    return rk_cma_write(way->pid, way->base + offset, src, bytes);
}

rank_status_t rk_access_get(const struct rk_access *way, uint64_t offset, void *dst, size_t bytes)
{
    const char *from = rk_xpmem_begin(way->attached, way->base + offset, bytes);

    if (from) {
        rk_mapped_get(dst, from, bytes);
        if (rk_xpmem_end(way->attached))
            return RANK_OK;
    }
    return rk_cma_read(way->pid, dst, way->base + offset, bytes);
}

rank_status_t rk_remote_put(const void *src, size_t bytes, int peer, struct rank_mem *mem,
                            size_t offset)
{
    RK_ENTER(mem->ctx);
    const struct rk_access *way;
    struct rk_origin_op job;
    struct rk_peer *p;
    rank_status_t st = rk_remote_reach(mem, peer, RK_NO_WRITES, &p, &way);

    if (st)
        return st;
    offset += mem->shift;
    switch (way->how) {
    case RK_ACCESS_CHANNEL:
        return mem->channel->put(mem->channel_mem, p, way->index, src, bytes, offset);
    case RK_ACCESS_CMA:
        return rk_access_put(way, offset, src, bytes);
    default:
        rk_origin_init(&job, p, RK_RMA_PUT, way->id);
        rk_origin_move(&job, (void *)(uintptr_t)src, bytes, offset);
        return rk_origin_run(&job);
    }
}

rank_status_t rk_remote_get(void *dst, size_t bytes, int peer, struct rank_mem *mem, size_t offset)
{
    RK_ENTER(mem->ctx);
    const struct rk_access *way;
    struct rk_origin_op job;
    struct rk_peer *p;
    rank_status_t st = rk_remote_reach(mem, peer, RK_NO_READS, &p, &way);

    if (st)
        return st;
    offset += mem->shift;
    switch (way->how) {
    case RK_ACCESS_CHANNEL:
        return mem->channel->get(mem->channel_mem, p, way->index, dst, bytes, offset);
    case RK_ACCESS_CMA:
        return rk_access_get(way, offset, dst, bytes);
    default:
        rk_origin_init(&job, p, RK_RMA_GET, way->id);
        job.ask.flags = RK_RMA_WANTS_REPLY;
        rk_origin_move(&job, dst, bytes, offset);
        return rk_origin_run(&job);
    }
}

rank_status_t rank_put(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    rank_status_t st = rk_mem_check_buffer(__func__, mem, src, bytes, peer, offset, true);

    if (rk_unlikely(st) || bytes == 0)
        return st == RK_OTHER_KIND ? rk_stage_move(true, (void *)(uintptr_t)src, (size_t)bytes, peer, mem, offset) : rk_peer_null_ok(st);
    if (rk_mem_lies_on(mem, src, bytes, peer, offset))
        return rk_mem_overlaps(__func__);
    if (rk_likely(mem->part[peer] != NULL)) {
        rk_mapped_put(mem->part[peer] + offset, src, (size_t)bytes);
        rk_mem_moved(mem, (uint64_t)bytes);
        return RANK_OK;
    }
    return rk_remote_put(src, (size_t)bytes, peer, mem, (size_t)offset);
}

rank_status_t rank_get(void *dst, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    rank_status_t st = rk_mem_check_buffer(__func__, mem, dst, bytes, peer, offset, true);

    if (rk_unlikely(st) || bytes == 0)
        return st == RK_OTHER_KIND ? rk_stage_move(false, dst, (size_t)bytes, peer, mem, offset) : rk_peer_null_ok(st);
    if (rk_mem_lies_on(mem, dst, bytes, peer, offset))
        return rk_mem_overlaps(__func__);
    if (rk_likely(mem->part[peer] != NULL)) {
        rk_mapped_get(dst, mem->part[peer] + offset, (size_t)bytes);
        rk_mem_moved(mem, (uint64_t)bytes);
        return rk_mem_check_death(mem, peer);
    }
    return rk_remote_get(dst, (size_t)bytes, peer, mem, (size_t)offset);
}

rank_status_t rank_ptr(rank_mem_t mem, int peer, void **ptr)
{
    rank_status_t st = rk_mem_check(__func__, mem);

    if (st)
        return st;
    if ((unsigned)peer >= (unsigned)mem->team->size && rk_peer_null_ok(st = rk_mem_peer_else(__func__, peer, mem)))
        return st;
    if (!ptr)
        return rk_arg_null(__func__, "ptr");
    *ptr = st ? NULL : mem->part[peer];
    return RANK_OK;
}

RK_PUBLIC(rank_put); RK_PUBLIC(rank_get); RK_PUBLIC(rank_ptr);
