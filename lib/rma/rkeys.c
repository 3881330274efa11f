/* SPDX-License-Identifier: BSD-3-Clause */
/* rkeys.c: pack and open many keys at once. */
#include "lib/base/arg_error.h"
#include "lib/rma/rkey_list.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>

/* Check the handles; *bytes: size of their list. */
static rank_status_t check_packed(const char *call, int64_t n, const rank_mem_t *mems, size_t *bytes)
{
    if (n < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "n %lld is negative", (long long)n);
    if (n && !mems)
        return rk_arg_null(call, "mems");
    *bytes = sizeof(struct rk_key_list);
    for (int64_t i = 0; i < n; i++) {
        const struct rank_mem *mem = mems[i];

        if (!mem || (mem->magic != RK_MEM_MAGIC && mem->magic != RK_MEM_KINDS_MAGIC) || mem->sort != RK_MEM_REGISTERED)
            return rk_arg_error(RANK_ERR_HANDLE, call, "mems[%lld] is not registered memory", (long long)i);
        if (mem->ctx != mems[0]->ctx)
            return rk_arg_error(RANK_ERR_ARG, call, "mems[%lld] is of another context than mems[0]", (long long)i);
        *bytes += mem->record->len;
    }
    return RANK_OK;
}

rank_status_t rank_rkeys_pack(int64_t n, const rank_mem_t *mems, void *keys, size_t *len)
{
    unsigned char *to = keys;
    size_t bytes, room, at = sizeof(struct rk_key_list);
    rank_status_t st = check_packed(__func__, n, mems, &bytes);

    if (st)
        return st;
    if (!len)
        return rk_arg_null(__func__, "len");
    room = *len;
    *len = bytes;
    if (!keys)
        return RANK_OK;
    if (room < bytes)
        return RANK_ERR_TRUNCATED;
    for (int64_t i = 0; i < n; i++) {
        mems[i]->packed = true;
        memcpy(to + at, mems[i]->record->key, mems[i]->record->len);
        at += mems[i]->record->len;
    }
    rk_key_list_seal(keys, bytes, (uint64_t)n);
    return RANK_OK;
}

/* Open the keys that have been read: all or none. */
static rank_status_t open_all(const char *call, struct rk_key_owner *owner, const struct rk_read_key *keys, int64_t n, rank_mem_t *mems)
{
    int64_t wrong = 0, i;
    rank_status_t st;

    for (i = 0; i < n; i++) {
        if (!rk_key_is_of(owner, &keys[i].key))
            return rk_arg_error(RANK_ERR_HANDLE, call, "key %lld of the list does not belong to peer %d", (long long)i, owner->rank);
    }
    st = rk_keys_verify(owner, keys, n, &wrong);
    if (st == RANK_ERR_HANDLE)
        return rk_arg_error(st, call, "key %lld of the list is of memory that is no longer registered", (long long)wrong);
    for (i = 0; i < n && !st; i++) {
        st = rk_key_attach(owner, &keys[i], &mems[i]);
        for (; st && i > 0; i--) {
            rk_mem_destroy(mems[i - 1]);
            mems[i - 1] = RANK_MEM_NULL;
        }
    }
    return st;
}

/* Check the list; *n: keys in it. */
static rank_status_t check_opened(const char *call, const void *keys, size_t len, int64_t room, const rank_mem_t *mems, int64_t *n)
{
    uint32_t version = 0;
    uint64_t found = 0;

    if (room < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "*n %lld is negative", (long long)room);
    switch (rk_key_list_check(keys, len, &found, &version)) {
    case RK_KEY_LIST_GOOD:
        break;
    case RK_KEY_LIST_OTHER_VERSION:
        return rk_arg_error(RANK_ERR_HANDLE, call, "the list of keys has version %u, and this library reads version %d", version,
                            RK_KEY_LIST_VERSION);
    default:
        return rk_arg_error(RANK_ERR_HANDLE, call, "the %zu bytes are not a valid list of keys", len);
    }
    *n = (int64_t)found;
    if (*n > room)
        return RANK_ERR_TRUNCATED;
    return *n && !mems ? rk_arg_null(call, "mems") : RANK_OK;
}

rank_status_t rank_rkeys_open(rank_team_t team, int peer, const void *keys, size_t len, int64_t *n, rank_mem_t *mems)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = rk_team_check(__func__, team);
    struct rk_read_key *read;
    struct rk_key_owner owner;
    uint64_t whole;
    int64_t room;

    if (st)
        return st;
    if (!keys || !n)
        return rk_arg_null(__func__, !keys ? "keys" : "n");
    room = *n;
    st = check_opened(__func__, keys, len, room, mems, n);
    if (!st)
        st = rk_key_owner_find(__func__, team, peer, &owner);
    if (st || *n == 0)
        return st;
    read = malloc((size_t)*n * sizeof(*read)); /* as many as there are keys in len bytes */
    if (!read) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for %lld keys", (long long)*n);
    }
    whole = rk_key_list_read(keys, (uint64_t)*n, read);
    if (whole < (uint64_t)*n)
        st = rk_arg_error(RANK_ERR_HANDLE, __func__, "key %llu of the list is damaged", (unsigned long long)whole);
    else
        st = open_all(__func__, &owner, read, *n, mems);
    free(read);
    return st;
}

RK_PUBLIC(rank_rkeys_pack); RK_PUBLIC(rank_rkeys_open);
