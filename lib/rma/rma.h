/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h: memory that peers may put to and get from.
 *
 * A part for each rank of the team. Parts of ranks on this node are mapped:
 * one-sided operations on them are loads and stores. To all others there is a
 * way: UCP's puts and gets (where UCX is asked for them), the kernel's copies between processes, or frames
 * that the owner of the memory acts on (frame.h). Atomics on what is not
 * mapped, and signals, are always the owner's to do: its CPU's atomics are the
 * one domain that all share.
 *
 * The object is made by lib/world/api_alloc.c, which needs collectives, or by
 * register.c.
 */
#ifndef RK_RMA_RMA_H
#define RK_RMA_RMA_H

#include "lib/mem/segment.h"
#include "lib/p2p/team.h"

#define RK_MEM_MAGIC 0x6d656d31u

enum rk_way_how {
    RK_WAY_NONE,    /* this rank has no part */
    RK_WAY_CHANNEL, /* the channel's put and get */
    RK_WAY_CMA,     /* process_vm_readv and its like */
    RK_WAY_FRAMES
};

/* To a part that is not mapped. */
struct rk_way {
    uint8_t how;     /* enum rk_way_how: puts and gets */
    struct rk_id id; /* the owner's name for the memory */
    int index;       /* the channel's for the part */
    int pid;         /* CMA: the owner, */
    uint64_t base;   /* and where the part lies there; */
    struct rk_xpmem *attached; /* the part itself, where XPMEM has it; or NULL */
};

enum rk_mem_sort { RK_MEM_SYMMETRIC, RK_MEM_REGISTERED, RK_MEM_OPENED };

struct rank_mem {
    uint32_t magic;
    uint8_t sort;             /* enum rk_mem_sort */
    uint8_t denied;           /* of registered memory: RK_NO_READS, RK_NO_WRITES, to peers */
    uint16_t looks;           /* calls on mapped parts until one looks who has died (owner_death.c); */
    uint64_t looked_ns;       /* when the last one did */
    struct rk_ctx *ctx;
    struct rank_team *team;
    size_t bytes;             /* of a part, as asked for */
    struct rk_segment *segment; /* its own, if it has one; of registered memory, where it is mapped */
    struct rk_heap *heap;   /* or what it is a piece of (sym_heap.h), with the ways, channel_mem and name there; */
    size_t shift;             /* it begins here in each part. For frames and the channel offsets count from the part's beginning */
    char **part;              /* [team size] mapped address, or NULL */
    struct rk_way *ways;      /* [nways], the team's size; NULL: all parts are mapped */
    int nways;
    const struct rk_channel *channel; /* for parts that are not mapped; NULL if none */
    struct rk_channel_mem *channel_mem;
    char *mine;               /* my part, if I have one; then id is its name for peers */
    struct rk_id id;
    struct rk_key_record *record; /* REGISTERED: what peers look for (register.c) */
    struct rk_link requests;  /* nonblocking ones that are under way */
    int deaths_told;          /* deaths that a wait has reported: in the team, REGISTERED: of anybody */
    int flush_told;           /* and that a flush of all has, of owners of parts */
    struct rk_link link;      /* in the context's list */
};

RK_INLINE rank_status_t rk_mem_peer_bad(const char *call, int peer, const struct rank_mem *mem)
{
    return rk_arg_error(RANK_ERR_RANK, call, "peer %d is out of range (team size %d)", peer, mem->team->size);
}

/* For builds that look for it (RK_CHECK_OVERLAP). */
RK_INLINE rank_status_t rk_mem_overlaps(const char *call)
{
    return rk_arg_error(RANK_ERR_ARG, call, "the buffer overlaps the memory that it is moved to or from");
}

RK_INLINE rank_status_t rk_mem_check(const char *call, const struct rank_mem *mem)
{
    return rk_likely(mem && mem->magic == RK_MEM_MAGIC) ? RANK_OK : rk_arg_handle(call, "memory", mem);
}

RK_INLINE rank_status_t rk_mem_check_access(const char *call, const struct rank_mem *mem, const void *buf,
                                            int64_t bytes, int peer, int64_t offset)
{
    rank_status_t st = rk_mem_check(call, mem);

    if (rk_unlikely(st))
        return st;
    if (rk_unlikely((unsigned)peer >= (unsigned)mem->team->size))
        return rk_mem_peer_bad(call, peer, mem);
    if (rk_unlikely(bytes < 0))
        return rk_arg_error(RANK_ERR_COUNT, call, "bytes %lld is negative", (long long)bytes);
    if (rk_unlikely(offset < 0 || (uint64_t)offset > mem->bytes ||
                    (uint64_t)bytes > mem->bytes - (uint64_t)offset))
        return rk_arg_error(RANK_ERR_BOUNDS, call, "%lld bytes at offset %lld leave the memory of %zu bytes",
                            (long long)bytes, (long long)offset, mem->bytes);
    return rk_likely(buf || bytes == 0) ? RANK_OK : rk_arg_null(call, "the buffer");
}

/* Says that registered memory was protected (one of them), when it was registered: RANK_ERR_ARG. */
rank_status_t rk_mem_is_denied(unsigned what);
/* Says which word of registered memory cannot be updated, and why: RANK_ERR_ARG. */
rank_status_t rk_mem_word_is_odd(int64_t offset, size_t width);

/* For builds that look for it (RK_CHECK_OVERLAP), of checked arguments: is the caller's buffer a piece of the very memory that it is
 * put to, or that is to be got into it? */
RK_INLINE bool rk_mem_lies_on(const struct rank_mem *mem, const void *buf, int64_t bytes, int peer, int64_t offset)
{
    return RK_CHECK_OVERLAP && mem->part[peer] &&
           rk_overlap(mem->part[peer] + offset, (size_t)bytes, buf, (size_t)bytes);
}

/* Into and out of mapped memory: a word is moved at once, never in pieces, for peers may poll it. */
RK_INLINE void rk_mapped_put(char *to, const void *src, size_t bytes)
{
    if (bytes == 8 && ((uintptr_t)to & 7) == 0) {
        uint64_t word;
        __builtin_memcpy(&word, src, sizeof(word));
        __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELAXED);
    } else if (bytes == 4 && ((uintptr_t)to & 3) == 0) {
        uint32_t word;
        __builtin_memcpy(&word, src, sizeof(word));
        __atomic_store_n((uint32_t *)(void *)to, word, __ATOMIC_RELAXED);
    } else {
        __builtin_memcpy(to, src, bytes);
    }
}

RK_INLINE void rk_mapped_get(void *dst, const char *from, size_t bytes)
{
    if (bytes == 8 && ((uintptr_t)from & 7) == 0) {
        uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
        __builtin_memcpy(dst, &word, sizeof(word));
    } else if (bytes == 4 && ((uintptr_t)from & 3) == 0) {
        uint32_t word = __atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_ACQUIRE);
        __builtin_memcpy(dst, &word, sizeof(word));
    } else {
        /* The compiler may not reuse what an earlier get read. */
        __asm__ __volatile__("" ::: "memory");
        __builtin_memcpy(dst, from, bytes);
    }
}

rank_status_t rk_rma_open(struct rk_ctx *ctx);
/* Destroys what users still hold, before the channels close. */
void rk_rma_close(struct rk_ctx *ctx);
/* Make all memory that users hold invalid handles. Takes no lock: for a forked child. */
void rk_rma_spoil(struct rk_ctx *ctx);

/* An object for a team, with no parts yet; NULL when out of memory. */
struct rank_mem *rk_mem_new(struct rank_team *team, size_t bytes);
/* Frees what this process holds of it; NULL and half-made are fine. */
void rk_mem_destroy(struct rank_mem *mem);
/* The handle is no good any more; its memory and its name stay for those who reach for it, until rk_rma_close. */
void rk_mem_retire(struct rank_mem *mem);
/* Give my part, mem->mine, a name, so that frames find it. */
rank_status_t rk_mem_enter(struct rank_mem *mem);
/* Room for ways, all of them RK_WAY_NONE. */
rank_status_t rk_mem_add_ways(struct rank_mem *mem);

/* A channel with puts and gets of its own, or NULL: frames do it. */
const struct rk_channel *rk_rma_channel(struct rk_ctx *ctx);
/* Has this one, which is open, puts and gets? */
bool rk_rma_moves(struct rk_ctx *ctx, const struct rk_channel *channel);

#endif
