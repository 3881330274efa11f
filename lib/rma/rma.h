/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h: describe memory that peers may put to and get from.
 *
 * Room: one-sided operations: put, get, atomics, signals, registered memory, symmetric heap.
 * Callers: the program; lib/world, which creates the objects.
 * Never: matches messages; sends but through lib/core and the channels.
 * Tests: tests/unit/rma_wire_test.c, tests/unit/dead_memory_test.c, tests/mp/rma.
 *
 * A memory object has a part for each rank of the team. Parts of ranks on this node are mapped: operations are
 * loads and stores. Others have an access path: UCP's puts and gets (where enabled), CMA, or frames that the owner
 * executes (rma_wire.h). Atomics on unmapped memory, and signals, are always executed by the owner: its CPU is the
 * one atomic domain that all share.
 *
 * lib/world/api_alloc.c, which needs collectives, or register.c creates the object.
 */
#ifndef RK_RMA_RMA_H
#define RK_RMA_RMA_H

#include "lib/mem/segment.h"
#include "lib/p2p/team.h"

#define RK_MEM_MAGIC 0x6d656d31u
/* In a process with kinds of memory besides host memory: the fast paths reject it. */
#define RK_MEM_KINDS_MAGIC 0x6d656d32u
/* Memory that is no host memory: only calls that use rk_mem_check_any accept it. */
#define RK_MEM_DEVICE_MAGIC 0x6d656d33u
/* An opened key; its owner has ended the registration: only rank_rkey_close accepts it. */
#define RK_MEM_REVOKED_MAGIC 0x6d656d34u

/* How an unmapped part is reached: path.c. */
enum rk_path_kind {
    RK_PATH_NONE,   /* not: there is no part at this rank, or it is mapped */
    RK_PATH_MAPPED, /* copies, after a check of the rights: the part is mapped, and not for both reads and writes */
    RK_PATH_CMA,    /* process_vm_readv and its like */
    RK_PATH_RDMA,   /* put and get of the channel */
    RK_PATH_FRAMES
};

struct rk_path {
    uint8_t kind;    /* enum rk_path_kind, for puts and gets */
    struct rk_id id; /* the owner's id of the memory */
    int index;       /* the channel's index of the part */
    int pid;         /* CMA: pid of the owner, */
    uint64_t base;   /* and address of the part there */
    char *mapped;    /* MAPPED: where */
};

enum rk_mem_sort { RK_MEM_SYMMETRIC, RK_MEM_REGISTERED, RK_MEM_OPENED };

struct rank_mem {
    uint32_t magic;
    uint8_t sort;         /* enum rk_mem_sort */
    uint8_t denied;       /* of registered memory: RK_NO_READS, RK_NO_WRITES for peers, which its key has, too */
    bool packed;          /* REGISTERED: peers may have its key */
    uint16_t until_check; /* calls on mapped parts until the next check for deaths (owner_death.c); */
    uint64_t looked_ns;   /* time of the last check */
    struct rk_ctx *ctx;
    struct rank_team *team;
    size_t bytes;             /* requested size of a part */
    const struct rk_kind *kind; /* of all parts; NULL: host memory */
    struct rk_segment *segment; /* own segment, if any; registered memory: where it is mapped */
    /* or the heap that it is a part of (sym_heap.h), with the paths, channel_mem and id there; */
    struct rk_heap *heap;
    size_t shift;           /* its offset in each part of the heap; frames and channel count from the start of that */
    char **part;            /* [team size] mapped address, or NULL */
    struct rk_path *paths; /* [npaths], team size; NULL: all parts are mapped */
    int npaths;
    const struct rk_channel *channel; /* for unmapped parts; NULL if none */
    struct rk_channel_mem *channel_mem;
    char *mine;               /* own part, if any; then id is its id for peers, */
    struct rk_id id;
    struct rk_hash_node by_id; /* in rk_rma.mem_ids; */
    int partner;              /* and the number of the other rank, if it is memory of a team of two; or -1 */
    struct rk_key_record *record; /* REGISTERED: the record that peers read (register.c) */
    struct rk_link requests; /* nonblocking operations in progress */
    int deaths_reported;     /* deaths reported by a wait: in the team; REGISTERED: of any process */
    uint32_t nlists;         /* transfers of lists that name it, with those that are persistent; */
    uint32_t list_index;     /* and its place in the list that is being checked: xfer_plan.c */
    uint64_t list_serial;
    int list_rank;
    int flush_reported;      /* deaths of owners reported by a flush of all */
    struct rk_link link;     /* in the context's list */
    struct rk_hash_node by_nonce; /* OPENED: in rk_rma.opened, by the nonce of the key */
    int owner;               /* OPENED: the owner's rank in the team */
};

/* Of a peer that is no rank of the team: RK_PEER_NULL, or an error. */
RK_INLINE rank_status_t rk_mem_peer_else(const char *call, int peer, const struct rank_mem *mem)
{
    return peer == RANK_PROC_NULL ? RK_PEER_NULL
                                  : rk_arg_error(RANK_ERR_RANK, call, "peer %d is out of range (team size %d)", peer, mem->team->size);
}

/* For builds with RK_CHECK_OVERLAP. */
RK_INLINE rank_status_t rk_mem_overlaps(const char *call)
{
    return rk_arg_error(RANK_ERR_ARG, call, "the buffer overlaps the memory that it is moved to or from");
}

/* For memory without RK_MEM_MAGIC, which may be no handle: check it, and that a buffer of up to its bytes is host memory. */
RK_COLD rank_status_t rk_mem_check_kind(const char *call, const struct rank_mem *mem, const void *buf, int64_t bytes);
/* The same for calls that accept memory of any kind and check buffers later. */
RK_COLD rank_status_t rk_mem_check_any_kind(const char *call, const struct rank_mem *mem);
/* Is it such memory, and of another kind than host memory, or the buffer? Then calls move it by rk_stage_move. */
RK_COLD bool rk_mem_stages(const struct rank_mem *mem, const void *buf, int64_t bytes);
/* Put or get between memory of any kinds. It is complete on return. */
RK_COLD rank_status_t rk_stage_move(const char *call, bool put, void *local, int64_t bytes, int peer, struct rank_mem *mem,
                                    int64_t offset);

/* Memory of a process with host memory only? Calls on it are compiled apart, without a query for the kind. */
RK_INLINE bool rk_mem_is_plain(const struct rank_mem *mem)
{
    return mem && mem->magic == RK_MEM_MAGIC;
}

RK_INLINE rank_status_t rk_mem_check(const char *call, const struct rank_mem *mem)
{
    return rk_likely(mem && mem->magic == RK_MEM_MAGIC) ? RANK_OK : rk_mem_check_kind(call, mem, NULL, 0);
}

RK_INLINE rank_status_t rk_mem_check_any(const char *call, const struct rank_mem *mem)
{
    return rk_likely(rk_mem_is_plain(mem)) ? RANK_OK : rk_mem_check_any_kind(call, mem);
}

/* The memory is checked, and buf may be of any kind. */
RK_INLINE rank_status_t rk_mem_check_range(const char *call, const struct rank_mem *mem, const void *buf,
                                           int64_t bytes, int peer, int64_t offset)
{
    if (rk_unlikely((unsigned)peer >= (unsigned)mem->team->size))
        return rk_mem_peer_else(call, peer, mem);
    if (rk_unlikely(bytes < 0))
        return rk_arg_error(RANK_ERR_COUNT, call, "bytes %lld is negative", (long long)bytes);
    if (rk_unlikely(offset < 0 || (uint64_t)offset > mem->bytes ||
                    (uint64_t)bytes > mem->bytes - (uint64_t)offset))
        return rk_arg_error(RANK_ERR_BOUNDS, call, "%lld bytes at offset %lld leave the memory of %zu bytes",
                            (long long)bytes, (long long)offset, mem->bytes);
    return rk_likely(buf || bytes == 0) ? RANK_OK : rk_arg_null(call, "the buffer");
}

RK_INLINE rank_status_t rk_mem_check_access(const char *call, const struct rank_mem *mem, const void *buf,
                                            int64_t bytes, int peer, int64_t offset)
{
    rank_status_t st;

    if (rk_unlikely(!rk_mem_is_plain(mem)) && (st = rk_mem_check_kind(call, mem, buf, bytes)) != RANK_OK)
        return st;
    return rk_mem_check_range(call, mem, buf, bytes, peer, offset);
}

/* Report access to protected registered memory; returns RANK_ERR_ARG. */
rank_status_t rk_mem_is_denied(unsigned what);
/* Report an unaligned word of registered memory; returns RANK_ERR_ARG. */
rank_status_t rk_mem_word_is_unaligned(int64_t offset, size_t width);

/* For builds with RK_CHECK_OVERLAP, checked arguments: does the caller's buffer overlap the accessed range? */
RK_INLINE bool rk_mem_lies_on(const struct rank_mem *mem, const void *buf, int64_t bytes, int peer, int64_t offset)
{
    return RK_CHECK_OVERLAP && mem->part[peer] &&
           rk_overlap(mem->part[peer] + offset, (size_t)bytes, buf, (size_t)bytes);
}

/* Copy to and from mapped memory. A word is moved by one access, since peers may poll it. */
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
        /* Keep the compiler from reusing an earlier get. */
        __asm__ __volatile__("" ::: "memory");
        __builtin_memcpy(dst, from, bytes);
    }
}

extern const struct rk_room rk_room_rma;

/* Object for a team, without parts; NULL if out of memory. */
struct rank_mem *rk_mem_new(struct rank_team *team, size_t bytes);
/* Frees what this process holds of it; accepts a partly built object. No-op if NULL. */
void rk_mem_destroy(struct rank_mem *mem);
/* The team ends: end the transfers of lists by it with RANK_ERR_CLOSED. */
void rk_mem_end_lists(struct rank_team *team);
/* The team ends: close the keys that are opened on it. */
void rk_mem_close_opened(const struct rank_team *team);
/* Unmap the parts of other ranks. No-op for host memory. */
void rk_mem_unmap_peers(struct rank_mem *mem);
/* Invalidate the handle; memory and id stay for peers until the room closes. */
void rk_mem_retire(struct rank_mem *mem);
/* Give the own part, mem->mine, an id, so that frames find it. */
rank_status_t rk_mem_enter(struct rank_mem *mem);
/* Allocate the access paths, all RK_PATH_NONE. */
rank_status_t rk_mem_add_paths(struct rank_mem *mem);

/*
 * register.c: register memory of this rank for peers, and allocate it first if ptr is NULL. team: the world. access:
 * what peers may do, RANK_ACCESS_*.
 */
rank_status_t rk_mem_register(struct rank_team *team, void *ptr, size_t bytes, unsigned access, struct rank_mem **out);
/* What rank_conn_info reports of a peer. */
struct rk_rma_counts {
    uint64_t refused;           /* its requests that failed here */
    uint64_t transfers, blocks; /* lists that began here */
};
void rk_rma_count(struct rk_ctx *ctx, const struct rk_peer *peer, struct rk_rma_counts *out);

/* A channel with puts and gets, or NULL: frames are used. */
const struct rk_channel *rk_rma_channel(struct rk_ctx *ctx);
/* Has this open channel puts and gets? */
bool rk_rma_moves(struct rk_ctx *ctx, const struct rk_channel *channel);

#endif
