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
#include "lib/base/random.h"
#include "lib/core/procs.h"
#include "lib/node/cma.h"
#include "lib/node/node.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { CHANNEL_KEY_MAX = RANK_RKEY_MAX - sizeof(struct rk_key) - sizeof(uint64_t) };

/* ------------------------------------------------------------------------ owner */

static unsigned access_denied(unsigned access)
{
    return (access & RANK_ACCESS_READ ? 0u : RK_NO_READS) | (access & RANK_ACCESS_WRITE ? 0u : RK_NO_WRITES);
}

/*
 * Put into the key the denied accesses and how peers can map it; and let messages from there name it, unless it is
 * rank_alloc memory.
 */
static rank_status_t register_offer(struct rank_mem *mem, struct rk_key *key, unsigned access)
{
    struct rk_ctx *ctx = mem->team->ctx;
    bool near = (ctx->node->nlocal > 1 && rk_engine_shares_memory(ctx)) || ctx->connects;
    const struct rk_segment *in = rk_segment_holding(ctx, mem->mine, mem->bytes);
    bool known = in && in->fd >= 0 && in->card.inode; /* of rank_ctx_alloc */
    unsigned denied;

    key->shared.fd = -1;
    denied = rk_user_shm_find(rk_segments_maps(ctx), mem->mine, mem->bytes, near && !known ? &key->shared : NULL);
    if (known) {
        key->shared = in->card;
        key->shared.at += (uint64_t)(mem->mine - in->base);
    }
    key->shared.denied = denied | access_denied(access);
    mem->denied = (uint8_t)key->shared.denied;
    if (key->shared.inode == 0 || in)
        return RANK_OK;
    mem->segment = rk_segment_offer(ctx, key->nonce, mem->mine, mem->bytes);
    if (!mem->segment)
        return RANK_ERR_NO_MEMORY;
    mem->segment->card.denied = key->shared.denied;
    return RANK_OK;
}

/* The same for memory that rk_segment_alloc has made. */
static rank_status_t register_allocated(struct rank_mem *mem, struct rk_key *key, unsigned access)
{
    mem->segment->card.denied = mem->denied = (uint8_t)access_denied(access);
    key->shared = mem->segment->card;
    return rk_segment_publish(mem->segment, key->nonce) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

static rank_status_t register_write_record(struct rank_mem *mem, unsigned access)
{
    struct rk_ctx *ctx = mem->team->ctx;
    struct rk_peer *me = rk_engine_peer(ctx, rk_team_world_rank(mem->team, mem->team->rank));
    unsigned char channel_key[CHANNEL_KEY_MAX];
    size_t len = sizeof(channel_key);
    struct rk_key_record *record;
    struct rk_key key = {.id = mem->id, .base = (uint64_t)(uintptr_t)mem->mine,
                         .bytes = mem->bytes};
    rank_status_t st;

    if (!me)
        return RANK_ERR_NO_MEMORY;
    if (!rk_random_secret(&key.nonce, sizeof(key.nonce)))
        return RANK_ERR_SYSTEM;
    key.nonce = rk_segment_registered_id(key.nonce);
    st = mem->segment ? register_allocated(mem, &key, access) : register_offer(mem, &key, access);
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
    mem->record = record = calloc(1, sizeof(*record) + sizeof(key) + key.channel_len + sizeof(uint64_t));
    if (!record)
        return RANK_ERR_NO_MEMORY;
    key.job = me->id.job;
    key.rank = me->id.rank;
    key.record = (uint64_t)(uintptr_t)record;
    record->len = (uint32_t)rk_key_write(key, channel_key, record->key);
    record->nonce = key.nonce;
    record->sum = rk_key_sum(record->key, record->len - sizeof(uint64_t));
    return RANK_OK;
}

rank_status_t rk_mem_register(struct rank_team *team, void *ptr, size_t bytes, unsigned access, struct rank_mem **out)
{
    struct rank_mem *mem = rk_mem_new(team, bytes);
    rank_status_t st;

    if (!mem)
        return RANK_ERR_NO_MEMORY;
    mem->sort = RK_MEM_REGISTERED;
    if (!ptr) {
        st = rk_segment_alloc(team->ctx, bytes, "rank_ctx_alloc", &mem->segment);
        if (st) {
            rk_mem_destroy(mem);
            return st;
        }
        ptr = mem->segment->base;
    }
    mem->deaths_reported = team->ctx->rma->deaths;
    mem->flush_reported = 0; /* no death counts there */
    mem->part[team->rank] = mem->mine = ptr;
    st = rk_mem_enter(mem);
    if (!st)
        st = rk_mem_add_paths(mem);
    if (!st)
        st = register_write_record(mem, access);
    if (st) {
        rk_mem_destroy(mem);
        return st;
    }
    *out = mem;
    return RANK_OK;
}

/* End the memory; flush: its operations before. */
static rank_status_t register_end(const char *call, rank_mem_t *mem, enum rk_mem_sort sort, bool flush)
{
    rank_status_t st = rk_mem_check_sort(call, mem, sort);

    if (st)
        return st;
    RK_ENTER((*mem)->ctx);
    st = rk_mem_check_sort(call, mem, sort); /* another thread may have ended it meanwhile */
    if (st)
        return st;
    if ((*mem)->packed)
        rk_revoke_posted(*mem);
    st = flush && (*mem)->magic != RK_MEM_REVOKED_MAGIC ? rank_flush(*mem, RANK_ALL) : RANK_OK;
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
    rank_status_t st = rk_mem_check_sort(__func__, &mem, RK_MEM_REGISTERED);

    if (st)
        return st;
    if (!key || !len)
        return rk_arg_null(__func__, !key ? "key" : "len");
    if (*len < mem->record->len)
        return RANK_ERR_TRUNCATED;
    mem->packed = true;
    memcpy(key, mem->record->key, mem->record->len);
    *len = mem->record->len;
    return RANK_OK;
}

/* ---------------------------------------------------------------------- verification */

enum { COMPARED = 128 /* records that are read at a time */ };

/* Compare keys with their records in the owner's memory. */
static rank_status_t compare_records(const struct rk_key_owner *owner, const struct rk_read_key *keys, int64_t n, int64_t *wrong)
{
    struct rk_key_record there[COMPARED];
    struct iovec from[COMPARED];

    for (int64_t at = 0; at < n; at += COMPARED) {
        int k = n - at < COMPARED ? (int)(n - at) : COMPARED;
        struct iovec to = {there, (size_t)k * sizeof(there[0])};
        bool all;

        for (int i = 0; i < k; i++)
            from[i] = (struct iovec){(void *)(uintptr_t)keys[at + i].key.record, sizeof(there[0])};
        all = rk_cma_move(owner->pid, false, &to, 1, from, k);
        for (int i = 0; i < k; i++) {
            const struct rk_read_key *key = &keys[at + i];
            rank_status_t st = all ? RANK_OK : rk_cma_read(owner->pid, &there[i], key->key.record, sizeof(there[0]));

            if (st == RANK_ERR_PEER_DEAD)
                return st;
            *wrong = at + i;
            if (st || there[i].nonce != key->key.nonce || there[i].sum != key->sum || there[i].len != key->key.len)
                return RANK_ERR_HANDLE;
        }
    }
    return RANK_OK;
}

/* Let the owner compare, in requests of many keys. */
static rank_status_t query_owner(const struct rk_key_owner *owner, const struct rk_read_key *keys, int64_t n, int64_t *wrong)
{
    struct rk_rma_name names[RK_RMA_NAMES_MAX];
    size_t room = (rk_origin_frame_max(owner->peer) - sizeof(struct rk_rma_request_head)) / sizeof(names[0]);
    int64_t most = room < RK_RMA_NAMES_MAX ? (int64_t)room : RK_RMA_NAMES_MAX;
    rank_status_t st = RANK_OK;

    for (int64_t at = 0; at < n && !st; at += most) {
        int64_t k = n - at < most ? n - at : most;
        struct rk_origin_op op;

        for (int64_t i = 0; i < k; i++)
            names[i] = (struct rk_rma_name){keys[at + i].key.id, keys[at + i].key.nonce, keys[at + i].sum};
        rk_origin_init(&op, owner->peer, RK_RMA_KEYS, keys[at].key.id);
        op.head.flags = RK_RMA_WANTS_REPLY;
        rk_origin_move(&op, names, (size_t)k * sizeof(names[0]), 0);
        st = rk_origin_run(&op, RK_REQ_KEY);
        *wrong = at + (int64_t)(op.before < (uint64_t)k ? op.before : 0);
    }
    return st;
}

static const struct rank_mem *own_memory(const struct rk_key_owner *owner, const struct rk_read_key *key)
{
    const struct rank_mem *it = rk_mem_named(owner->team->ctx->rma, key->key.id);

    return it && rk_key_is(it, key->key.nonce, key->sum) ? it : NULL;
}

static rank_status_t compare_own(const struct rk_key_owner *owner, const struct rk_read_key *keys, int64_t n, int64_t *wrong)
{
    for (*wrong = 0; *wrong < n; ++*wrong) {
        if (!own_memory(owner, &keys[*wrong]))
            return RANK_ERR_HANDLE;
    }
    return RANK_OK;
}

rank_status_t rk_keys_verify(struct rk_key_owner *owner, const struct rk_read_key *keys, int64_t n, int64_t *wrong)
{
    rank_status_t st = rk_path_probe(owner);

    *wrong = 0;
    if (st)
        return st;
    return (owner->self ? compare_own : owner->cma ? compare_records : query_owner)(owner, keys, n, wrong);
}

rank_status_t rk_key_owner_find(const char *call, struct rank_team *team, int rank, struct rk_key_owner *out)
{
    if ((unsigned)rank >= (unsigned)team->size)
        return rk_arg_error(RANK_ERR_RANK, call, "peer %d is out of range (team size %d)", rank, team->size);
    *out = (struct rk_key_owner){.team = team, .peer = rk_team_peer(team, rank), .rank = rank, .self = rank == team->rank};
    return out->peer ? RANK_OK : RANK_ERR_NO_MEMORY;
}

bool rk_key_is_of(const struct rk_key_owner *owner, const struct rk_key *key)
{
    return rk_procid_hash((struct rk_procid){key->job, key->rank}) == rk_procs_owner(owner->peer->ctx, owner->peer->number);
}

/* ---------------------------------------------------------------------- opener */

rank_status_t rk_key_attach(const struct rk_key_owner *owner, const struct rk_read_key *key, struct rank_mem **out)
{
    struct rank_mem *mem = rk_mem_new(owner->team, (size_t)key->key.bytes);
    rank_status_t st;

    if (!mem)
        return RANK_ERR_NO_MEMORY;
    mem->sort = RK_MEM_OPENED;
    mem->flush_reported = 0; /* of its owner only */
    mem->denied = (uint8_t)key->key.shared.denied;
    mem->owner = owner->rank;
    st = rk_hash_put(&mem->ctx->rma->opened, &mem->by_nonce, key->key.nonce) ? rk_mem_add_paths(mem) : RANK_ERR_NO_MEMORY;
    if (!st)
        st = rk_path_choose(mem, owner, key, owner->self ? own_memory(owner, key) : NULL);
    if (st) {
        rk_mem_destroy(mem);
        return st;
    }
    *out = mem;
    return RANK_OK;
}

rank_status_t rank_rkey_open(rank_team_t team, int peer, const void *key, size_t len,
                             rank_mem_t *out)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = rk_team_check(__func__, team);
    struct rk_key_owner owner;
    struct rk_read_key read;
    int64_t wrong;

    if (st)
        return st;
    if (!key || !out)
        return rk_arg_null(__func__, !key ? "key" : "mem");
    st = rk_key_owner_find(__func__, team, peer, &owner);
    if (st)
        return st;
    if (!rk_key_read(key, len, &read.key, &read.channel_key, &read.sum))
        return rk_arg_error(RANK_ERR_HANDLE, __func__, "the %zu bytes are not a valid key: pass all that rank_rkey_pack has written", len);
    if (!rk_key_is_of(&owner, &read.key))
        return rk_arg_error(RANK_ERR_HANDLE, __func__, "the key is of another process than peer %d of this team", peer);
    st = rk_keys_verify(&owner, &read, 1, &wrong);
    if (st == RANK_ERR_HANDLE)
        return rk_arg_error(st, __func__, "the key is of memory that is no longer registered");
    return st ? st : rk_key_attach(&owner, &read, out);
}

RK_PUBLIC(rank_dereg); RK_PUBLIC(rank_rkey_pack); RK_PUBLIC(rank_rkey_open); RK_PUBLIC(rank_rkey_close);
