/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * register.c: register memory, and open keys to peers' registered memory.
 *
 * A peer on this node maps shared memory (user_shm.h), and uses CMA for the rest where the kernel permits. It then
 * compares the key with the record in the owner's memory. All other peers send the owner a request to verify the
 * key.
 */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/core/procs.h"
#include "lib/node/cma.h"
#include "lib/node/xpmem.h"
#include "lib/node/node.h"
#include "lib/rma/rma_internal.h"
#include "lib/rma/rkey.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { CHANNEL_KEY_MAX = RANK_RKEY_MAX - sizeof(struct rk_key) - sizeof(uint64_t) };

bool rk_key_is(const struct rank_mem *mem, uint64_t nonce, uint64_t sum)
{
    return mem->record && mem->record->nonce == nonce && mem->record->sum == sum;
}

void rk_key_record_free(struct rank_mem *mem)
{
    if (mem->record) /* later accesses must find something else; the compiler drops plain stores before a free */
        explicit_bzero(mem->record, sizeof(*mem->record));
    free(mem->record);
    mem->record = NULL;
}

/* ------------------------------------------------------------------------ owner */

/*
 * Put into the key its protection and how peers can map it; and tell the channel about messages from there, unless
 * it is rank_alloc memory.
 */
static rank_status_t register_offer(struct rank_mem *mem, struct rk_key *key)
{
    struct rk_ctx *ctx = mem->team->ctx;
    bool near = (ctx->node->nlocal > 1 && rk_engine_shares_memory(ctx)) || ctx->connects;

    key->shared.fd = -1;
    key->denied = rk_shared_find(mem->mine, mem->bytes, near ? &key->shared : NULL);
    mem->denied = (uint8_t)key->denied;
    if (key->shared.inode == 0)
        return RANK_OK;
    if (rk_segment_holding(ctx, mem->mine, mem->bytes))
        return RANK_OK;
    mem->segment = rk_segment_offer(ctx, key->nonce, mem->mine, mem->bytes);
    return mem->segment ? RANK_OK : RANK_ERR_NO_MEMORY;
}

static rank_status_t register_write_record(struct rank_mem *mem)
{
    struct rk_ctx *ctx = mem->team->ctx;
    struct rk_peer *me = rk_engine_peer(ctx, rk_team_world_rank(mem->team, mem->team->rank));
    struct rk_key_record *record = calloc(1, sizeof(*record) + RANK_RKEY_MAX);
    unsigned char channel_key[CHANNEL_KEY_MAX];
    size_t len = sizeof(channel_key);
    struct rk_key key = {.id = mem->id, .base = (uint64_t)(uintptr_t)mem->mine,
                         .bytes = mem->bytes};
    rank_status_t st;

    mem->record = record;
    if (!record || !me)
        return RANK_ERR_NO_MEMORY;
    if (ctx->node)
        rk_xpmem_offer(ctx->node);
    if (getrandom(&key.nonce, sizeof(key.nonce), 0) != (ssize_t)sizeof(key.nonce))
        return RANK_ERR_SYSTEM;
    key.nonce = rk_segment_registered_id(key.nonce);
    st = register_offer(mem, &key);
    if (st)
        return st;
    mem->channel = rk_rma_channel(ctx);
    if (mem->channel && mem->bytes) {
        st = mem->channel->mem_expose(ctx, rk_engine_state(ctx, mem->channel), mem->mine,
                                      mem->bytes, &mem->channel_mem, channel_key, &len);
        if (st)
            return st;
        key.channel_len = (uint32_t)len;
    }
    key.job = me->id.job;
    key.rank = me->id.rank;
    key.record = (uint64_t)(uintptr_t)record;
    record->len = (uint32_t)rk_key_write(key, channel_key, record->key);
    record->nonce = key.nonce;
    record->sum = rk_key_sum(record->key, record->len - sizeof(uint64_t));
    return RANK_OK;
}

rank_status_t rk_mem_register(struct rank_team *team, void *ptr, size_t bytes, struct rank_mem **out)
{
    struct rank_mem *mem = rk_mem_new(team, bytes);
    rank_status_t st;

    if (!mem)
        return RANK_ERR_NO_MEMORY;
    mem->sort = RK_MEM_REGISTERED;
    mem->deaths_reported = team->ctx->rma->deaths;
    mem->flush_reported = 0; /* no death counts there */
    mem->part[team->rank] = mem->mine = ptr;
    st = rk_mem_enter(mem);
    if (!st)
        st = rk_mem_add_accesses(mem);
    if (!st)
        st = register_write_record(mem);
    if (st) {
        rk_mem_destroy(mem);
        return st;
    }
    *out = mem;
    return RANK_OK;
}

static rank_status_t check_sort(const char *call, const rank_mem_t *mem, enum rk_mem_sort sort)
{
    rank_status_t st;

    if (!mem)
        return rk_arg_null(call, "mem");
    st = rk_mem_check(call, *mem);
    if (!st && (*mem)->sort != sort)
        st = rk_arg_error(RANK_ERR_HANDLE, call, "the memory is not of rank_%s", sort == RK_MEM_OPENED ? "rkey_open" : "reg");
    return st;
}

/* End the memory; flush: its operations before. */
static rank_status_t register_end(const char *call, rank_mem_t *mem, enum rk_mem_sort sort, bool flush)
{
    rank_status_t st = check_sort(call, mem, sort);

    if (st)
        return st;
    RK_ENTER((*mem)->ctx);
    st = flush ? rank_flush(*mem, RANK_ALL) : RANK_OK;
    rk_mem_destroy(*mem);
    *mem = RANK_MEM_NULL;
    return st;
}

rank_status_t rank_dereg(rank_mem_t *mem)
{
    return register_end(__func__, mem, RK_MEM_REGISTERED, false);
}

rank_status_t rank_rkey_close(rank_mem_t *mem)
{
    return register_end(__func__, mem, RK_MEM_OPENED, true);
}

rank_status_t rank_rkey_pack(rank_mem_t mem, void *key, size_t *len)
{
    rank_status_t st = check_sort(__func__, &mem, RK_MEM_REGISTERED);

    if (st)
        return st;
    if (!key || !len)
        return rk_arg_null(__func__, !key ? "key" : "len");
    if (*len < mem->record->len)
        return RANK_ERR_TRUNCATED;
    memcpy(key, mem->record->key, mem->record->len);
    *len = mem->record->len;
    return RANK_OK;
}

/* ---------------------------------------------------------------------- opener */

static rank_status_t register_query_owner(struct rk_peer *peer, const struct rk_key *key, uint64_t sum)
{
    struct rk_rma_operands what = {key->nonce, sum};
    struct rk_origin_op job;

    rk_origin_init(&job, peer, RK_RMA_KEY, key->id);
    job.ask.flags = RK_RMA_WANTS_REPLY;
    rk_origin_add(&job, &what, sizeof(what));
    return rk_origin_run(&job, RK_REQ_KEY);
}

/* Does CMA work to and from a peer of this node? */
static bool cma_reaches(const struct rk_peer *peer, int *pid)
{
    const struct rk_node_slot *slot;

    if (!peer->node || !peer->channel->shares_memory || rk_conf.cma == RK_CONF_CMA_OFF)
        return false;
    slot = &peer->node->slots[peer->slot];
    *pid = slot->pid;
    return rk_cma_works(slot->pid, slot->probe_addr, slot->probe_word);
}

/* Compare the key with its record in the owner's memory. */
static rank_status_t compare_record(int pid, const struct rk_key *key, uint64_t sum)
{
    struct rk_key_record there;
    rank_status_t st = rk_cma_read(pid, &there, key->record, sizeof(there));

    if (st == RANK_ERR_PEER_DEAD)
        return st;
    return !st && there.nonce == key->nonce && there.sum == sum && there.len == key->len
               ? RANK_OK
               : RANK_ERR_HANDLE;
}

/* Attach all of it by XPMEM; NULL if that fails. */
static struct rk_xpmem *attached(const struct rk_peer *peer, const struct rk_key *key)
{
    struct rk_xpmem *x = rk_xpmem_of(peer->node, peer->slot);

    if (rk_xpmem_begin(x, key->base, key->bytes) && rk_xpmem_end(x))
        return x;
    rk_xpmem_close(x);
    return NULL;
}

static rank_status_t register_attach(struct rank_mem *mem, struct rk_peer *peer, const struct rk_key *key,
                            const void *channel_key)
{
    struct rk_ctx *ctx = mem->team->ctx;
    rank_status_t st;

    mem->channel = peer->channel;
    st = mem->channel->mem_expose(ctx, rk_engine_state(ctx, mem->channel), NULL, 0,
                                  &mem->channel_mem, NULL, NULL);
    if (!st)
        st = mem->channel->mem_attach(mem->channel_mem, peer, 0, channel_key, key->channel_len,
                                      key->base);
    return st;
}

/* Map what the owner, or its record, has confirmed. Then no path is needed. */
static bool map_part(struct rank_mem *mem, int rank, const struct rk_peer *peer, const struct rk_key *key)
{
    struct rk_ctx *ctx = mem->team->ctx;

    if (key->shared.inode == 0 || !peer->node || !peer->channel->shares_memory ||
        key->shared.pid != peer->node->slots[peer->slot].pid)
        return false;
    mem->segment = rk_segment_map(ctx, key->nonce, key->base, mem->bytes, &key->shared);
    if (!mem->segment)
        return false;
    mem->part[rank] = mem->segment->base;
    mem->ways[rank].how = RK_ACCESS_NONE;
    return true;
}

static rank_status_t find_way(struct rank_mem *mem, int rank, struct rk_peer *peer,
                              const struct rk_key *key, const void *channel_key, uint64_t sum)
{
    struct rk_access *way = &mem->ways[rank];
    rank_status_t st = rk_peer_connect(peer);

    if (st)
        return st;
    way->id = key->id;
    way->base = key->base;
    if (cma_reaches(peer, &way->pid)) {
        way->how = RK_ACCESS_CMA;
        st = compare_record(way->pid, key, sum);
        if (!st && !map_part(mem, rank, peer, key) && key->bytes)
            way->attached = attached(peer, key);
        return st;
    }
    st = register_query_owner(peer, key, sum);
    if (st)
        return st;
    way->how = RK_ACCESS_FRAMES;
    if (map_part(mem, rank, peer, key))
        return RANK_OK;
    if (!key->channel_len || !rk_rma_moves(mem->team->ctx, peer->channel))
        return RANK_OK;
    way->how = RK_ACCESS_CHANNEL;
    return register_attach(mem, peer, key, channel_key);
}

static rank_status_t own(struct rank_mem *mem, int rank, const struct rk_key *key, uint64_t sum)
{
    const struct rank_mem *it = rk_handle_get(&mem->team->ctx->rma->mem_ids, key->id);

    if (!it || !rk_key_is(it, key->nonce, sum))
        return RANK_ERR_HANDLE;
    mem->part[rank] = it->mine;
    return RANK_OK;
}

rank_status_t rank_rkey_open(rank_team_t team, int peer, const void *key, size_t len,
                             rank_mem_t *out)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = rk_team_check(__func__, team);
    const void *channel_key;
    struct rank_mem *mem;
    struct rk_peer *p;
    struct rk_key k;
    uint64_t sum;

    if (st)
        return st;
    if ((unsigned)peer >= (unsigned)team->size)
        return rk_arg_error(RANK_ERR_RANK, __func__, "peer %d is out of range (team size %d)", peer, team->size);
    if (!key || !out)
        return rk_arg_null(__func__, !key ? "key" : "mem");
    p = rk_team_peer(team, peer);
    if (!p)
        return RANK_ERR_NO_MEMORY;
    if (!rk_key_read(key, len, &k, &channel_key, &sum) ||
        rk_procid_hash((struct rk_procid){k.job, k.rank}) != rk_procs_owner(p->ctx, p->number))
        return rk_arg_error(RANK_ERR_HANDLE, __func__, "the key of %zu bytes is none of peer %d", len, peer);
    mem = rk_mem_new(team, (size_t)k.bytes);
    if (!mem)
        return RANK_ERR_NO_MEMORY;
    mem->sort = RK_MEM_OPENED;
    mem->flush_reported = 0; /* of its owner only */
    mem->denied = (uint8_t)k.denied;
    st = rk_mem_add_accesses(mem);
    if (!st)
        st = peer == team->rank ? own(mem, peer, &k, sum)
                                : find_way(mem, peer, p, &k, channel_key, sum);
    if (st) {
        rk_mem_destroy(mem);
        return st;
    }
    *out = mem;
    return RANK_OK;
}

RK_PUBLIC(rank_dereg); RK_PUBLIC(rank_rkey_pack); RK_PUBLIC(rank_rkey_open); RK_PUBLIC(rank_rkey_close);
