/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.c: create and free datatypes, and return their size. */
#include "lib/data/dtype.h"
#include "lib/base/handle.h"

#include <pthread.h>

enum { BLOBS_MAX = 1 << 16, INDEX_SHIFT = 32, GEN_LOW_SHIFT = 20, GEN_LOW_BITS = 4, GEN_HIGH_SHIFT = 48 };

/* The blobs of the process, by index. An object is the size, as a pointer. */
static struct rk_handles blobs;
static pthread_mutex_t blobs_lock = PTHREAD_MUTEX_INITIALIZER;

static rank_dtype_t blob_handle(uint64_t bytes, struct rk_id id)
{
    uint64_t low = id.gen & ((1u << GEN_LOW_BITS) - 1), high = (uint16_t)(id.gen >> GEN_LOW_BITS);

    return RK_DTYPE_BLOB | (bytes - 1) | low << GEN_LOW_SHIFT | (uint64_t)id.index << INDEX_SHIFT | high << GEN_HIGH_SHIFT;
}

/* Find it with the lock held, or return false. */
static bool blob_find(rank_dtype_t dtype, struct rk_id *id)
{
    uint32_t index = (uint16_t)(dtype >> INDEX_SHIFT);

    if (index >= blobs.n || !blobs.at[index].object)
        return false;
    *id = (struct rk_id){index, blobs.at[index].gen};
    return blob_handle((uintptr_t)blobs.at[index].object, *id) == dtype;
}

bool rk_dtype_is_blob(rank_dtype_t dtype)
{
    struct rk_id id;
    bool found;

    pthread_mutex_lock(&blobs_lock);
    found = blob_find(dtype, &id);
    pthread_mutex_unlock(&blobs_lock);
    return found;
}

rank_status_t rk_dtype_span_blob(const char *call, rank_dtype_t dtype, int64_t count, size_t *bytes)
{
    int64_t n;

    if (!rk_dtype_is_blob(dtype))
        return rk_arg_error(RANK_ERR_DTYPE, call, "dtype %#llx is not defined, or freed", (unsigned long long)dtype);
    if (count < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "count %lld is negative", (long long)count);
    if (__builtin_mul_overflow(count, rk_dtype_bytes(dtype), &n) || n > RK_SPAN_MAX)
        return rk_arg_error(RANK_ERR_COUNT, call, "count %lld is more than memory can hold", (long long)count);
    *bytes = (size_t)n;
    return RANK_OK;
}

int64_t rank_dtype_size(rank_dtype_t dtype)
{
    return rk_dtype_is_predefined(dtype) || rk_dtype_is_blob(dtype) ? (int64_t)rk_dtype_bytes(dtype) : RANK_ERR_DTYPE;
}

rank_status_t rank_dtype_create(int64_t bytes, rank_dtype_t *dtype)
{
    struct rk_id id;
    bool put;

    if (!dtype)
        return rk_arg_null(__func__, "dtype");
    if (bytes < 1 || bytes > RK_BLOB_MAX)
        return rk_arg_error(RANK_ERR_COUNT, __func__, "bytes %lld is not between 1 and %lld", (long long)bytes, RK_BLOB_MAX);
    pthread_mutex_lock(&blobs_lock);
    if (!blobs.n)
        rk_handles_open(&blobs);
    put = rk_handle_put(&blobs, (void *)(uintptr_t)bytes, &id);
    if (put && id.index >= BLOBS_MAX) {
        rk_handle_drop(&blobs, id);
        put = false;
    }
    pthread_mutex_unlock(&blobs_lock);
    if (!put)
        return rk_arg_error(RANK_ERR_NO_MEMORY, __func__, "no memory, or %d datatypes that are not freed", BLOBS_MAX);
    *dtype = blob_handle((uint64_t)bytes, id);
    return RANK_OK;
}

rank_status_t rank_dtype_free(rank_dtype_t *dtype)
{
    struct rk_id id;
    bool found;

    if (!dtype)
        return rk_arg_null(__func__, "dtype");
    pthread_mutex_lock(&blobs_lock);
    found = blob_find(*dtype, &id);
    if (found)
        rk_handle_drop(&blobs, id);
    pthread_mutex_unlock(&blobs_lock);
    if (!found)
        return rk_arg_error(RANK_ERR_DTYPE, __func__, "dtype %#llx is predefined, freed or none", (unsigned long long)*dtype);
    *dtype = 0;
    return RANK_OK;
}

RK_PUBLIC(rank_dtype_size); RK_PUBLIC(rank_dtype_create); RK_PUBLIC(rank_dtype_free);
