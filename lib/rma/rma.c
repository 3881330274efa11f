/* rma.c: put, get, atomics and flush of rank.h. */
#include "lib/rma/rma.h"
#include "lib/base/dtype.h"

#include <string.h>

RK_INLINE rank_status_t check_access(const struct rank_mem *mem, const void *buf, int64_t bytes,
                                     int peer, int64_t offset)
{
    rank_status_t st = rk_mem_check(mem);

    if (rk_unlikely(st))
        return st;
    if (rk_unlikely((unsigned)peer >= (unsigned)mem->team->size))
        return RANK_ERR_RANK;
    if (rk_unlikely(bytes < 0))
        return RANK_ERR_COUNT;
    if (rk_unlikely(offset < 0 || (uint64_t)offset > mem->bytes ||
                    (uint64_t)bytes > mem->bytes - (uint64_t)offset))
        return RANK_ERR_BOUNDS;
    return rk_likely(buf || bytes == 0) ? RANK_OK : RANK_ERR_ARG;
}

/* The peer of a part that is not mapped, connected. */
static rank_status_t remote(struct rank_mem *mem, int rank, struct rk_peer **out)
{
    struct rk_peer *peer = rk_team_peer(mem->team, rank);

    if (!peer)
        return RANK_ERR_NO_MEMORY;
    *out = peer;
    return mem->channel ? rk_peer_connect(peer) : RANK_ERR_UNREACHABLE;
}

rank_status_t rank_put(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    rank_status_t st = check_access(mem, src, bytes, peer, offset);
    struct rk_peer *p;

    if (rk_unlikely(st) || bytes == 0)
        return st;
    if (rk_likely(mem->part[peer] != NULL)) {
        char *to = mem->part[peer] + offset;
        /* A word is stored at once, never in pieces: peers may poll it. */
        if (bytes == 8 && ((uintptr_t)to & 7) == 0) {
            uint64_t word;
            memcpy(&word, src, sizeof(word));
            __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELAXED);
        } else {
            memcpy(to, src, (size_t)bytes);
        }
        return RANK_OK;
    }
    if ((st = remote(mem, peer, &p)))
        return st;
    return mem->channel->put(mem->channel_mem, p, peer, src, (size_t)bytes, (size_t)offset);
}

rank_status_t rank_get(void *dst, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    rank_status_t st = check_access(mem, dst, bytes, peer, offset);
    struct rk_peer *p;

    if (rk_unlikely(st) || bytes == 0)
        return st;
    if (rk_likely(mem->part[peer] != NULL)) {
        const char *from = mem->part[peer] + offset;
        if (bytes == 8 && ((uintptr_t)from & 7) == 0) {
            uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
            memcpy(dst, &word, sizeof(word));
        } else {
            /* The compiler may not reuse what an earlier get read. */
            __asm__ __volatile__("" ::: "memory");
            memcpy(dst, from, (size_t)bytes);
        }
        return RANK_OK;
    }
    if ((st = remote(mem, peer, &p)))
        return st;
    return mem->channel->get(mem->channel_mem, p, peer, dst, (size_t)bytes, (size_t)offset);
}

rank_status_t rank_flush(rank_mem_t mem, int peer)
{
    rank_status_t st = rk_mem_check(mem);
    struct rk_peer *p = NULL;

    if (st)
        return st;
    if (peer != RANK_ALL && (unsigned)peer >= (unsigned)mem->team->size)
        return RANK_ERR_RANK;
    atomic_thread_fence(memory_order_seq_cst); /* stores to mapped parts */
    if (!mem->channel || (peer != RANK_ALL && mem->part[peer]))
        return RANK_OK;
    if (peer != RANK_ALL && (st = remote(mem, peer, &p)))
        return st;
    return mem->channel->flush(mem->channel_mem, p);
}

static uint64_t add_mapped(void *at, size_t width, uint64_t v)
{
    if (width == 8)
        return __atomic_fetch_add((uint64_t *)at, v, __ATOMIC_ACQ_REL);
    return __atomic_fetch_add((uint32_t *)at, (uint32_t)v, __ATOMIC_ACQ_REL);
}

static bool is_integer(rank_dtype_t dtype)
{
    return dtype == RANK_INT32 || dtype == RANK_UINT32 || dtype == RANK_INT64 ||
           dtype == RANK_UINT64;
}

rank_status_t rank_atomic(rank_amo_t amo, rank_dtype_t dtype, const void *operand, int peer,
                          rank_mem_t mem, int64_t offset, void *result)
{
    uint64_t v = 0, before = 0;
    struct rk_peer *p;
    size_t width;
    rank_status_t st;

    if (!is_integer(dtype))
        return RANK_ERR_DTYPE;
    if (amo != RANK_AMO_ADD && amo != RANK_AMO_FETCH_ADD)
        return RANK_ERR_OP;
    width = rk_dtype_bytes[dtype];
    st = check_access(mem, operand, (int64_t)width, peer, offset);
    if (st)
        return st;
    if ((size_t)offset % width || (amo == RANK_AMO_FETCH_ADD && !result))
        return RANK_ERR_ARG;
    memcpy(&v, operand, width);
    if (rk_likely(mem->part[peer] != NULL)) {
        before = add_mapped(mem->part[peer] + offset, width, v);
    } else {
        if ((st = remote(mem, peer, &p)))
            return st;
        st = mem->channel->fetch_add(mem->channel_mem, p, peer, v, width, (size_t)offset,
                                     amo == RANK_AMO_FETCH_ADD ? &before : NULL);
        if (st)
            return st;
    }
    if (amo == RANK_AMO_FETCH_ADD)
        memcpy(result, &before, width);
    return RANK_OK;
}

rank_status_t rank_ptr(rank_mem_t mem, int peer, void **ptr)
{
    rank_status_t st = rk_mem_check(mem);

    if (st)
        return st;
    if ((unsigned)peer >= (unsigned)mem->team->size)
        return RANK_ERR_RANK;
    if (!ptr)
        return RANK_ERR_ARG;
    *ptr = mem->part[peer];
    return RANK_OK;
}
