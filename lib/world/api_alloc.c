/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_alloc.c: allocate, free and register memory.
 *
 * rank_alloc is collective over a team. rank_reg is local to a rank, and serves all ranks that get a key.
 *
 * Small allocations share segments (lib/rma/sym_heap.h): each rank computes the same place, and one small
 * collective verifies that and that all ranks have memory. When no segment has room a further, larger one is
 * created. A large allocation has a segment of its own.
 *
 * For a segment the first rank of the team on each node creates one memfd with a part for each rank there. Every
 * rank backs its own part, so that it lies near that rank and lack of memory is detected here. Parts of ranks on
 * other nodes are reached through a channel, after an exchange of keys. If one of the two ranks has no channel
 * with puts and gets, frames to the owner are used.
 */
#include "collectives/coll.h"
#include "lib/base/log.h"
#include "lib/core/root.h"
#include "lib/mem/kind.h"
#include "lib/rma/sym_heap.h"
#include "lib/world/device_mem.h"
#include "lib/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, KEY_MAX = 1024 - 24 };
/* OWN_MIN: minimum size for a segment of its own; PART_MIN: part size of the first shared segment. */
enum { OWN_MIN = 1 << 20, PART_MIN = 64 << 10, PLACE_BITS = 32 };
/* Bytes to back, from which the sum of a host's parts is checked. */
enum { SUM_MIN = 64 << 10 };

struct group_card { /* contribution of a rank; the card is its creator's */
    struct rk_memfd_card card;
    struct rk_mem_groups groups;
};

struct key_card {
    uint64_t base;
    struct rk_id id;
    uint32_t len;
    int32_t pad;
    unsigned char key[KEY_MAX];
};

/* Is rank r's part mapped here: is it this rank or one reached by shm? */
static bool is_neighbour(struct rank_team *team, int r)
{
    struct rk_peer *p;

    if (r == team->rank)
        return true;
    p = rk_team_peer(team, r);
    return p && p->local >= 0 && rk_engine_shares_memory(team->ctx);
}

struct group {
    int maker, size, mine; /* maker: rank in the team of the creator; mine: own place */
};

static struct group find_group(struct rank_team *team)
{
    struct group g = {-1, 0, 0};

    for (int r = 0; r < team->size; r++) {
        if (!is_neighbour(team, r))
            continue;
        if (g.maker < 0)
            g.maker = r;
        if (r == team->rank)
            g.mine = g.size;
        g.size++;
    }
    return g;
}

static void map_parts(struct rank_mem *mem, size_t part)
{
    char *at = mem->segment->base + rk_segment_front(part);

    for (int r = 0; r < mem->team->size; r++) {
        if (is_neighbour(mem->team, r)) {
            mem->part[r] = at;
            at += rk_segment_stride(part);
        }
    }
}

/* Is there room for the parts of all ranks of this host? Before one of them is backed. */
static rank_status_t check_parts(struct rank_team *team, const struct group *g, const struct group_card *cards, size_t bytes)
{
    struct rk_mem_groups *of = malloc((size_t)g->size * sizeof(*of));
    rank_status_t mine = of ? RANK_OK : RANK_ERR_NO_MEMORY, st;
    int n = 0;

    for (int r = 0; of && r < team->size; r++) {
        if (is_neighbour(team, r))
            of[n++] = cards[r].groups;
    }
    if (of)
        mine = rk_mem_check_sum(of, n, bytes, g->mine, "rank_alloc");
    free(of);
    st = rk_worst_of_all(team, mine);
    if (st == RANK_ERR_NO_MEMORY && !mine)
        rk_fail_silent(st, "rank_alloc: another rank of the team has no memory for %zu bytes", bytes);
    return st;
}

/* Create or attach the node's segment and back the first bytes of the own part. */
static rank_status_t share_node(struct rank_mem *mem, size_t part, size_t first)
{
    struct rank_team *team = mem->team;
    struct group g = find_group(team);
    struct group_card mine = {.card = {0}}, *cards;
    rank_status_t st = RANK_OK;

    cards = malloc((size_t)team->size * sizeof(*cards));
    if (!cards)
        st = RANK_ERR_NO_MEMORY;
    else if (g.maker == team->rank)
        st = rk_segment_create(team->ctx, g.size, part, &mem->segment, &mine.card);
    if (first >= SUM_MIN)
        rk_mem_groups_get(&mine.groups);
    st = rk_worst_of_all(team, st);
    if (!st)
        st = rank_allgather(&mine, cards, sizeof(mine), RANK_BYTE, team);
    if (!st && first >= SUM_MIN)
        st = check_parts(team, &g, cards, first);
    if (st)
        goto out;
    if (g.maker != team->rank)
        st = rk_segment_attach(team->ctx, &cards[g.maker].card, &mem->segment);
    if (!st)
        st = rk_segment_back(mem->segment,
                             rk_segment_front(part) + (size_t)g.mine * rk_segment_stride(part),
                             first);
    st = rk_worst_of_all(team, st);
    if (!st)
        map_parts(mem, part);
out:
    free(cards);
    return st;
}

static rank_status_t attach_keys(struct rank_mem *mem, const struct key_card *cards)
{
    rank_status_t st = RANK_OK;

    for (int r = 0; r < mem->team->size && !st; r++) {
        struct rk_peer *peer;
        if (mem->part[r])
            continue;
        if (cards[r].len > KEY_MAX)
            return RANK_ERR_INTERNAL; /* invalid card */
        peer = rk_team_peer(mem->team, r);
        st = peer ? rk_peer_connect(peer) : RANK_ERR_NO_MEMORY;
        mem->paths[r] = (struct rk_path){.kind = RK_PATH_FRAMES, .id = cards[r].id, .index = r};
        if (st || !mem->channel || cards[r].len == 0)
            continue;
        mem->paths[r].kind = RK_PATH_RDMA;
        st = mem->channel->mem_attach(mem->channel_mem, peer, r, cards[r].key, cards[r].len, cards[r].base);
    }
    return st;
}

/* Exchange keys of unmapped parts. Memory that a device has registered is fully backed. */
static rank_status_t share_keys(struct rank_mem *mem, size_t part, size_t first)
{
    struct rank_team *team = mem->team;
    struct key_card *mine = calloc(1, sizeof(*mine));
    struct key_card *cards = calloc((size_t)team->size, sizeof(*cards));
    size_t len = 0;
    rank_status_t st = mine && cards ? RANK_OK : RANK_ERR_NO_MEMORY;

    mem->channel = rk_rma_channel(team->ctx);
    if (!st)
        st = rk_mem_add_paths(mem);
    if (!st) {
        mem->mine = mem->part[team->rank];
        st = rk_mem_enter(mem);
    }
    if (!st && mem->channel && first < part)
        st = rk_segment_back(mem->segment, (size_t)(mem->mine - mem->segment->base) + first,
                             part - first);
    if (!st && mem->channel) {
        len = KEY_MAX;
        st = mem->channel->mem_expose(team->ctx, rk_engine_state(team->ctx, mem->channel),
                                      mem->part[team->rank], part, &mem->channel_mem, mine->key,
                                      &len);
    }
    if (!st) {
        mine->id = mem->id;
        mine->base = (uint64_t)(uintptr_t)mem->part[team->rank];
        mine->len = (uint32_t)len;
    }
    st = rk_worst_of_all(team, st);
    if (!st)
        st = rank_allgather(mine, cards, sizeof(*mine), RANK_BYTE, team);
    if (!st)
        st = rk_worst_of_all(team, attach_keys(mem, cards));
    free(mine);
    free(cards);
    return st;
}

static bool all_mapped(const struct rank_mem *mem)
{
    for (int r = 0; r < mem->team->size; r++) {
        if (!mem->part[r])
            return false;
    }
    return true;
}

/*
 * Every rank takes the same path through here, so that collectives match. first: bytes of a part to back, unless
 * all must be.
 */
static rank_status_t api_alloc_make(struct rank_mem *mem, struct rank_team *team, size_t part, size_t first)
{
    int64_t mapped, everywhere = 0;
    rank_status_t st = share_node(mem, part, first);

    if (st)
        return st;
    mapped = all_mapped(mem);
    st = rank_allreduce(&mapped, &everywhere, 1, RANK_INT64, RANK_MIN, team);
    if (!st && !everywhere)
        st = share_keys(mem, part, first);
    return st;
}

/* ------------------------------------------------------------------ small allocations */

/* The proposal of one rank. */
struct offer {
    int64_t status, bytes;
    int64_t kind;   /* rank_mem_kind_t */
    int64_t place;  /* in an existing segment: its serial number and the offset; -1: in none */
    int64_t part;   /* size of the next segment, */
    int64_t serial; /* and its serial number */
};

/* Size of the next segment's parts, which grows with the number of segments. */
static size_t api_alloc_next_part(int nheaps, size_t need)
{
    size_t part = nheaps == 0 ? PART_MIN : nheaps == 1 ? PART_MIN << 3 : PART_MIN << 6;

    need = rk_round_up(need, PAGE);
    return part > need ? part : need;
}

/* Take a place for mem, if a segment has room. mem NULL: allocating it failed. */
static struct offer make_offer(struct rank_mem *mem, struct rank_team *team, size_t bytes)
{
    struct offer o = {.status = mem ? RANK_OK : RANK_ERR_NO_MEMORY, .bytes = (int64_t)bytes,
                      .place = -1};
    struct rk_heap *a = bytes < OWN_MIN ? rk_heap_first(team) : NULL;
    int n = 0;

    for (; a; a = rk_heap_next(a, team), n++) {
        if (a->serial >= o.serial)
            o.serial = a->serial + 1;
        if (!mem || mem->heap || !rk_heap_take(a, mem))
            continue;
        o.place = a->serial << PLACE_BITS | (int64_t)mem->shift;
        o.status = rk_heap_prepare(mem);
    }
    if (bytes < OWN_MIN)
        o.part = (int64_t)api_alloc_next_part(n, rk_heap_need(bytes));
    return o;
}

/* All ranks fail for this reason; one prints the line. */
static rank_status_t fail_at_all(const struct rank_team *team, rank_status_t st, const char *why)
{
    return team->rank == 0 ? rk_fail(st, "rank_alloc: %s", why) : rk_fail_silent(st, "rank_alloc: %s", why);
}

/* Combine the proposals: the worst status; the place if all agree, else -1; the maximum of the rest. */
static rank_status_t api_alloc_agree(struct rank_team *team, struct offer *o)
{
    int64_t in[] = {o->status, o->bytes, -o->bytes, o->place, -o->place, -o->part, -o->serial, o->kind, -o->kind};
    enum { N = sizeof(in) / sizeof(in[0]) };
    int64_t out[N] = {0};
    char why[128];
    rank_status_t st = rank_allreduce(in, out, N, RANK_INT64, RANK_MIN, team);

    if (st)
        return st;
    if (out[7] != -out[8])
        return fail_at_all(team, RANK_ERR_ARG, "the ranks of a team request different kinds of memory; all must request the same");
    if (out[1] != -out[2]) {
        snprintf(why, sizeof(why), "the ranks of a team request %lld to %lld bytes; all must request the same", (long long)out[1],
                 (long long)-out[2]);
        return fail_at_all(team, RANK_ERR_ARG, why);
    }
    o->place = out[3] == -out[4] ? out[3] : -1;
    o->part = -out[5];
    o->serial = -out[6];
    return (rank_status_t)out[0];
}

/* By a key of the channel, or by id in frames. */
static bool others_reach(const struct rank_mem *mem)
{
    return mem->paths || (mem->heap && mem->heap->whole->paths);
}

/* Create a segment, and take its first place for mem. */
static rank_status_t api_alloc_grow(struct rank_mem *mem, struct rank_team *team, const struct offer *o)
{
    size_t part = (size_t)o->part, first = rk_heap_need(mem->bytes);
    struct rank_mem *whole = rk_mem_new(team, part);
    struct rk_heap *heap = whole ? rk_heap_create(whole, o->serial) : NULL;
    rank_status_t st = rk_worst_of_all(team, heap ? RANK_OK : RANK_ERR_NO_MEMORY);

    first = rk_round_up(first, part >= RK_SEGMENT_HUGE ? RK_SEGMENT_HUGE : PAGE);
    if (!st)
        st = api_alloc_make(whole, team, part, first);
    if (st) {
        if (heap && others_reach(whole)) /* other ranks may regard it as complete and access it */
            rk_heap_retire(heap);
        else if (heap)
            rk_mem_destroy(rk_heap_dissolve(heap));
        else
            rk_mem_destroy(whole);
        return st;
    }
    heap->backed = whole->channel_mem ? part : first;
    rk_heap_take(heap, mem); /* empty: succeeds */
    return rk_heap_prepare(mem); /* backed: succeeds */
}

static rank_status_t find_room(struct rank_mem *mem, struct rank_team *team, size_t bytes)
{
    struct offer o = make_offer(mem, team, bytes);
    rank_status_t st = api_alloc_agree(team, &o);

    if (st || o.place >= 0)
        return st;
    if (mem->heap) {
        rk_heap_give(mem);
        memset(mem->part, 0, (size_t)team->size * sizeof(*mem->part));
    }
    if (bytes < OWN_MIN)
        return api_alloc_grow(mem, team, &o);
    bytes = rk_round_up(bytes, PAGE);
    return api_alloc_make(mem, team, bytes, bytes);
}

/* Memory of another kind than host memory. Each allocation is one of the kind; none share. */
static rank_status_t api_alloc_device(struct rank_mem *mem, struct rank_team *team, rank_mem_kind_t id, size_t bytes)
{
    const struct rk_kind *kind = rk_kind_with_id(id);
    struct offer o = {.status = mem ? RANK_OK : RANK_ERR_NO_MEMORY, .bytes = (int64_t)bytes, .place = -1, .kind = id};
    void *part = NULL;
    rank_status_t st;

    if (!kind || !kind->alloc)
        o.status = RANK_ERR_NOT_SUPPORTED;
    if (!o.status)
        o.status = kind->alloc(bytes, &part);
    st = api_alloc_agree(team, &o);
    if (st && part)
        kind->free(part);
    if (st == RANK_ERR_NOT_SUPPORTED)
        fail_at_all(team, st, "a rank of the team has no device memory (RANK_CUDA)");
    return st ? st : rk_device_mem_share(mem, kind, part);
}

rank_status_t rank_alloc(rank_team_t team, rank_mem_kind_t kind, int64_t bytes, void **ptr, rank_mem_t *out)
{
    RK_ENTER_TEAM(team);
    struct rank_mem *mem;
    rank_status_t st = rk_team_check(__func__, team);

    if (st)
        return st;
    if (kind != RANK_MEM_HOST && kind != RANK_MEM_CUDA)
        return rk_arg_error(RANK_ERR_ARG, __func__, "kind %d is not defined", (int)kind);
    if (!ptr || !out)
        return rk_arg_null(__func__, !ptr ? "ptr" : "mem");
    if (bytes < 0)
        return rk_arg_error(RANK_ERR_COUNT, __func__, "bytes %lld is negative", (long long)bytes);
    mem = rk_mem_new(team, (size_t)bytes);
    st = kind == RANK_MEM_HOST ? find_room(mem, team, (size_t)bytes) : api_alloc_device(mem, team, kind, (size_t)bytes);
    /* as in rank_free: other ranks may regard it as complete */
    if (st && mem && !mem->heap && others_reach(mem)) {
        rk_mem_retire(mem);
        return rk_call_returns(__func__, st);
    }
    if (st) {
        rk_mem_destroy(mem);
        return rk_call_returns(__func__, st);
    }
    *ptr = mem->part[team->rank];
    *out = mem;
    return RANK_OK;
}

rank_status_t rank_free(rank_mem_t *mem)
{
    rank_status_t st;

    if (!mem)
        return rk_arg_null(__func__, "mem");
    st = rk_mem_check_any(__func__, *mem);
    if (!st && (*mem)->sort != RK_MEM_SYMMETRIC)
        st = rk_arg_error(RANK_ERR_HANDLE, __func__, "the memory is not of rank_alloc");
    if (st)
        return st;
    RK_ENTER((*mem)->ctx);
    rank_flush(*mem, RANK_ALL);
    st = rank_barrier((*mem)->team); /* no further access by other ranks */
    if (!st && (*mem)->kind) {       /* and no mapping: freeing mapped memory is undefined for legacy handles */
        rk_mem_unmap_peers(*mem);
        st = rank_barrier((*mem)->team);
    }
    /* ranks that do not know of a death may still access it: it stays mapped to the end */
    if (st && others_reach(*mem))
        rk_mem_retire(*mem);
    else
        rk_mem_destroy(*mem);
    *mem = RANK_MEM_NULL;
    return rk_call_end(__func__, st);
}

/* --------------------------------------------------------------------- registration */

enum { BOTH_RIGHTS = RANK_ACCESS_READ | RANK_ACCESS_WRITE };

static rank_status_t check_rights(const char *call, unsigned access)
{
    if (access == 0 || access & ~(unsigned)BOTH_RIGHTS)
        return rk_arg_error(RANK_ERR_ARG, call, "access %#x is not defined: give RANK_ACCESS_READ, RANK_ACCESS_WRITE or both", access);
    return RANK_OK;
}

static rank_status_t mem_register_in(const char *call, rank_ctx_t handle, void *ptr, int64_t bytes, unsigned access,
                                     rank_mem_t *out)
{
    const struct rk_kind *kind;
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(call, handle, &ctx);
    int64_t end;

    if (!st)
        st = check_rights(call, access);
    if (st)
        return st;
    if (!ptr || !out)
        return rk_arg_null(call, !ptr ? "ptr" : "mem");
    if (bytes < 0 || __builtin_add_overflow((int64_t)(uintptr_t)ptr, bytes, &end))
        return rk_arg_error(RANK_ERR_COUNT, call, "bytes %lld is negative or leaves the address space", (long long)bytes);
    if ((kind = rk_kind_of(ptr, (size_t)bytes)) != NULL)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "memory of the kind %s cannot be registered; copy it to host memory", kind->name);
    RK_ENTER(ctx);
    return ctx->closing ? RANK_ERR_CLOSED : rk_mem_register(ctx->world, ptr, (size_t)bytes, access, out);
}

rank_status_t rank_reg(void *ptr, int64_t bytes, rank_mem_t *mem)
{
    return mem_register_in(__func__, RANK_CTX_NULL, ptr, bytes, BOTH_RIGHTS, mem);
}

rank_status_t rank_ctx_reg(rank_ctx_t ctx, void *ptr, int64_t bytes, unsigned access, rank_mem_t *mem)
{
    return mem_register_in(__func__, ctx, ptr, bytes, access, mem);
}

rank_status_t rank_ctx_alloc(rank_ctx_t handle, int64_t bytes, unsigned access, void **ptr, rank_mem_t *mem)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(__func__, handle, &ctx);

    if (!st)
        st = check_rights(__func__, access);
    if (st)
        return st;
    if (!ptr || !mem)
        return rk_arg_null(__func__, !ptr ? "ptr" : "mem");
    if (bytes < 0)
        return rk_arg_error(RANK_ERR_COUNT, __func__, "bytes %lld is negative", (long long)bytes);
    RK_ENTER(ctx);
    if (ctx->closing)
        return RANK_ERR_CLOSED;
    st = rk_mem_register(ctx->world, NULL, (size_t)bytes, access, mem);
    if (!st)
        *ptr = (*mem)->mine;
    return st;
}

rank_status_t rank_mem_kind(const void *ptr, rank_mem_kind_t *kind, int *device)
{
    const struct rk_kind *found;
    int ordinal = -1;

    if (!rank_initialized() && atomic_load(&rk_contexts) == 0)
        return rk_arg_not_in(__func__);
    if (!ptr || !kind)
        return rk_arg_null(__func__, !ptr ? "ptr" : "kind");
    found = rk_kind_of(ptr, 1);
    if (found) {
        ordinal = found->device ? found->device(ptr) : 0;
        if (ordinal < 0) /* the driver fails */
            return RANK_ERR_DEVICE;
    }
    *kind = found ? found->id : RANK_MEM_HOST;
    if (device)
        *device = ordinal;
    return RANK_OK;
}

RK_PUBLIC(rank_alloc); RK_PUBLIC(rank_free); RK_PUBLIC(rank_mem_kind); RK_PUBLIC(rank_reg);
RK_PUBLIC(rank_ctx_reg); RK_PUBLIC(rank_ctx_alloc);
