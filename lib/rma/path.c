/* SPDX-License-Identifier: BSD-3-Clause */
/* path.c: see path.h. */
#include "lib/rma/path.h"
#include "lib/base/conf.h"
#include "lib/node/cma.h"
#include "lib/node/node.h"
#include "lib/rma/rma_internal.h"

#include <sys/uio.h>

/* Pieces of one CMA call, and bytes between two of them that a get reads and drops. */
enum { CMA_BATCH = 256, CMA_GAP = 1024 };

/* ------------------------------------------------------------------------ routes */

enum rk_route rk_path_route(const struct rank_mem *mem, int rank, const struct rk_peer *peer, int64_t bytes)
{
    if (mem->part[rank])
        return RK_ROUTE_MAPPED;
    switch (mem->paths[rank].kind) {
    case RK_PATH_MAPPED:
        return RK_ROUTE_MAPPED;
    case RK_PATH_CMA:
        return RK_ROUTE_CMA;
    case RK_PATH_RDMA:
        return bytes > RK_PIECE_LONG ? RK_ROUTE_CHANNEL : RK_ROUTE_FRAMES;
    default:
        return rk_path_streams(peer, bytes) ? RK_ROUTE_CHANNEL : RK_ROUTE_FRAMES;
    }
}

int64_t rk_path_base(const struct rank_mem *mem, int rank, enum rk_route route)
{
    if (route == RK_ROUTE_MAPPED)
        return (int64_t)(intptr_t)(mem->part[rank] ? mem->part[rank] : mem->paths[rank].mapped);
    return route == RK_ROUTE_CMA ? (int64_t)mem->paths[rank].base : (int64_t)mem->shift;
}

rank_status_t rk_path_reach(struct rank_mem *mem, int rank, unsigned denied, struct rk_peer **peer, const struct rk_path **path)
{
    if (rk_unlikely(mem->magic == RK_MEM_REVOKED_MAGIC)) /* while the call waited for the lock */
        return RANK_ERR_HANDLE;
    if (!rk_path_needs_flush(mem, rank))
        return mem->sort == RK_MEM_SYMMETRIC ? RANK_ERR_UNREACHABLE : RANK_ERR_RANK;
    if (rk_unlikely(mem->denied & denied))
        return rk_mem_is_denied(mem->denied & denied);
    *peer = rk_team_peer(mem->team, rank);
    if (!*peer)
        return RANK_ERR_NO_MEMORY;
    *path = &mem->paths[rank];
    /* This path reports no end of the process, and its pid may be reused soon. */
    if ((*path)->kind == RK_PATH_CMA && (*peer)->node && atomic_load(&(*peer)->node->slots[(*peer)->slot].state) != RK_SLOT_UP) {
        if ((*peer)->local < 0)
            rk_progress(mem->ctx); /* its last frame shows whether it has closed the connection */
        return rk_peer_lost(*peer);
    }
    return rk_peer_connect(*peer);
}

/* ------------------------------------------------------------------------ copies */

uint64_t rk_copy_mapped(bool put, const rank_piece_t *pieces, int64_t n, uint64_t base)
{
    uint64_t bytes = 0;

    for (int64_t i = 0; i < n; i++) {
        const rank_piece_t *p = &pieces[i];
        char *part = (char *)(uintptr_t)(base + (uint64_t)p->offset);

        if (p->bytes == 0)
            continue;
        if (put)
            rk_mapped_put(part, p->local, (size_t)p->bytes);
        else
            rk_mapped_get(p->local, part, (size_t)p->bytes);
        bytes += (uint64_t)p->bytes;
    }
    return bytes;
}

/*
 * Pieces of one CMA call. The kernel resolves pages for each remote piece (0.4 us); local ones are cheap. So
 * adjacent remote pieces are merged, and in a get also those with small gaps, which are read and discarded.
 */
struct cma_list {
    struct iovec here[2 * CMA_BATCH], there[CMA_BATCH];
    int nhere, nthere;
    char thrown[CMA_GAP];
};

static void add_piece(struct cma_list *list, bool put, const rank_piece_t *p, uint64_t base)
{
    struct iovec *last = list->nthere ? &list->there[list->nthere - 1] : NULL;
    uint64_t at = base + (uint64_t)p->offset;
    uint64_t gap = last ? at - ((uint64_t)(uintptr_t)last->iov_base + last->iov_len) : UINT64_MAX;

    if (p->bytes == 0)
        return;
    if (gap > (put ? 0 : CMA_GAP)) {
        list->there[list->nthere++] = (struct iovec){(void *)(uintptr_t)at, (size_t)p->bytes};
    } else {
        if (gap)
            list->here[list->nhere++] = (struct iovec){list->thrown, (size_t)gap};
        last->iov_len += (size_t)gap + (size_t)p->bytes;
    }
    list->here[list->nhere++] = (struct iovec){p->local, (size_t)p->bytes};
}

static rank_status_t copy_each(bool put, const rank_piece_t *pieces, int64_t n, int pid, uint64_t base)
{
    rank_status_t st = RANK_OK;

    for (int64_t i = 0; i < n && !st; i++) {
        const rank_piece_t *p = &pieces[i];
        uint64_t remote = base + (uint64_t)p->offset;

        st = put ? rk_cma_write(pid, remote, p->local, (size_t)p->bytes) : rk_cma_read(pid, p->local, remote, (size_t)p->bytes);
    }
    return st;
}

rank_status_t rk_copy_by_cma(bool put, const rank_piece_t *pieces, int64_t n, int pid, uint64_t base)
{
    struct cma_list list;
    rank_status_t st = RANK_OK;

    for (int64_t at = 0; at < n && !st; at += CMA_BATCH) {
        int k = n - at < CMA_BATCH ? (int)(n - at) : CMA_BATCH;

        list.nhere = list.nthere = 0;
        for (int i = 0; i < k && k > 1; i++)
            add_piece(&list, put, &pieces[at + i], base);
        if (k == 1 || !rk_cma_move(pid, put, list.here, list.nhere, list.there, list.nthere))
            st = copy_each(put, pieces + at, k, pid, base);
    }
    return st;
}

rank_status_t rk_path_copy(bool put, const rank_piece_t *pieces, int64_t n, struct rank_mem *mem, int rank)
{
    const struct rk_path *path = &mem->paths[rank];

    if (path->kind == RK_PATH_CMA)
        return rk_copy_by_cma(put, pieces, n, path->pid, path->base);
    rk_mem_moved(mem, rk_copy_mapped(put, pieces, n, (uint64_t)(uintptr_t)path->mapped));
    return put ? RANK_OK : rk_mem_check_death(mem, rank);
}

/* ------------------------------------------------------------------- the channel */

bool rk_rma_moves(struct rk_ctx *ctx, const struct rk_channel *channel)
{
    return channel->mem_expose && (!channel->one_sided || channel->one_sided(rk_engine_state(ctx, channel)));
}

const struct rk_channel *rk_rma_channel(struct rk_ctx *ctx)
{
    for (int i = 0; i < ctx->engine->nopen; i++) {
        if (rk_rma_moves(ctx, ctx->engine->open[i].ops))
            return ctx->engine->open[i].ops;
    }
    return NULL;
}

rank_status_t rk_path_start(bool put, void *local, size_t bytes, struct rk_peer *peer, const struct rank_mem *mem,
                            const struct rk_path *path, size_t offset, struct rank_request *req)
{
    if (path->kind == RK_PATH_FRAMES && rk_sendq_has(&peer->sendq, RK_SEND_RMA)) /* they came first, perhaps before a fence */
        return RK_AGAIN;
    if (path->kind == RK_PATH_FRAMES)
        return peer->channel->stream(peer, put, local, bytes, path->id, offset, req);
    return put ? mem->channel->iput(mem->channel_mem, peer, path->index, local, bytes, offset, req)
               : mem->channel->iget(mem->channel_mem, peer, path->index, local, bytes, offset, req);
}

rank_status_t rk_path_flush(const struct rank_mem *mem, int rank)
{
    if (!mem->channel_mem || (rank != RANK_ALL && mem->paths[rank].kind != RK_PATH_RDMA))
        return RANK_OK;
    return mem->channel->flush(mem->channel_mem, rank == RANK_ALL ? NULL : rk_team_peer(mem->team, rank));
}

/*
 * Mapped copies and those of a device could overtake frames: a signal in rank_alloc memory, say, the data in registered
 * memory.
 */
bool rk_path_keeps_order(const struct rank_mem *mem, int rank)
{
    const struct rk_peer *peer = rk_team_peer(mem->team, rank);

    return mem->paths[rank].kind == RK_PATH_FRAMES && peer && peer->channel && !rk_rma_moves(mem->ctx, peer->channel) &&
           !(peer->node && peer->channel->shares_memory);
}

/* ------------------------------------------------------------- the choice, by a key */

/* Does CMA work to and from a peer of this node? */
static bool cma_reaches(const struct rk_peer *peer, int *pid)
{
    const struct rk_node_slot *slot;

    if (!peer->node || !peer->channel->shares_memory || rk_conf.cma == RK_CONF_CMA_OFF)
        return false;
    slot = &peer->node->slots[peer->slot];
    *pid = slot->pid;
    return rk_cma_works(*pid, slot->probe_addr, slot->probe_word);
}

rank_status_t rk_path_probe(struct rk_key_owner *owner)
{
    rank_status_t st = owner->self ? RANK_OK : rk_peer_connect(owner->peer);

    owner->cma = !st && !owner->self && cma_reaches(owner->peer, &owner->pid);
    return st;
}

/* Map what the owner, or its record, has confirmed. */
static char *map_part(struct rank_mem *mem, const struct rk_peer *peer, const struct rk_key *key)
{
    if (key->shared.inode == 0 || !peer->node || !peer->channel->shares_memory ||
        key->shared.pid != peer->node->slots[peer->slot].pid)
        return NULL;
    mem->segment = rk_segment_map(mem->ctx, key->nonce, key->base, mem->bytes, &key->shared);
    return mem->segment ? mem->segment->base : NULL;
}

static rank_status_t attach_channel(struct rank_mem *mem, struct rk_peer *peer, const struct rk_read_key *key)
{
    rank_status_t st;

    mem->channel = peer->channel;
    st = mem->channel->mem_expose(mem->ctx, rk_engine_state(mem->ctx, mem->channel), NULL, 0, &mem->channel_mem, NULL, NULL);
    return st ? st : mem->channel->mem_attach(mem->channel_mem, peer, 0, key->channel_key, key->key.channel_len, key->key.base);
}

rank_status_t rk_path_choose(struct rank_mem *mem, const struct rk_key_owner *owner, const struct rk_read_key *key,
                             const struct rank_mem *own)
{
    struct rk_path *path = &mem->paths[owner->rank];
    char *mapped = own ? own->mine : map_part(mem, owner->peer, &key->key);

    path->id = key->key.id;
    path->base = key->key.base;
    path->pid = owner->pid;
    if (mapped && !mem->denied) {
        mem->part[owner->rank] = mapped;
        return RANK_OK;
    }
    if (mapped) {
        path->kind = RK_PATH_MAPPED;
        path->mapped = mapped;
        return RANK_OK;
    }
    path->kind = owner->cma ? RK_PATH_CMA : RK_PATH_FRAMES;
    if (owner->cma || !key->key.channel_len || !rk_rma_moves(mem->ctx, owner->peer->channel))
        return RANK_OK;
    path->kind = RK_PATH_RDMA;
    return attach_channel(mem, owner->peer, key);
}
