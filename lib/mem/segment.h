/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h: keep symmetric and registered shared memory mapped.
 *
 * Room: shared memory: memfds, segments, allocation of ranges, limits, the program's own mappings.
 * Callers: lib/node, lib/channel, lib/rma, lib/world.
 * Never: sends; waits.
 * Tests: tests/unit/allocator_test.c, tests/unit/segment_test.c, tests/mp/rma/rma_shared_memory.c, tests/mp/rma/alloc_no_memory.c.
 *
 * An allocation has one memfd a node, with a part for each rank of the team there. Messages from such memory name
 * it by the memfd's nonce and an offset, so that the receiver copies straight from its own mapping.
 *
 * Registered memory is a segment at its owner, and at processes that have opened its key and could map it
 * (user_shm.h). Messages name it by the key's nonce and the address at the owner; other processes treat it as
 * private memory. Memory that peers may not both read and write has no name for messages.
 */
#ifndef RK_MEM_SEGMENT_H
#define RK_MEM_SEGMENT_H

#include "lib/base/ctx.h"
#include "lib/base/hash_table.h"
#include "lib/base/list.h"
#include "lib/mem/memfd.h"
#include "lib/mem/user_shm.h"

/* Parts of at least this size are aligned to it, for huge pages. */
#define RK_SEGMENT_HUGE (2u << 20)

/* Space for the nonce before the first part. */
static inline size_t rk_segment_front(size_t part_bytes)
{
    return part_bytes >= RK_SEGMENT_HUGE ? RK_SEGMENT_HUGE : 4096;
}

/* Distance of parts; the gap is never backed. */
static inline size_t rk_segment_stride(size_t part_bytes)
{
    size_t unit = rk_segment_front(part_bytes);

    return part_bytes > SIZE_MAX - unit ? SIZE_MAX : (part_bytes + unit - 1) & ~(unit - 1);
}

/* Ids of registered memory: odd, with a bit for announcements, and never among the largest numbers. */
enum { RK_SEGMENT_REGISTERED = 1, RK_SEGMENT_MARK = 2 };

static inline uint64_t rk_segment_registered_id(uint64_t random)
{
    return (random >> 2 << 1 | RK_SEGMENT_REGISTERED) & ~(uint64_t)RK_SEGMENT_MARK;
}

struct rk_segment {
    uint64_t id; /* the nonce */
    char *base;
    size_t bytes;
    int fd;
    int users;      /* registered: handles of this process */
    uint64_t there; /* and its address at the owner; else 0 */
    struct rk_user_shm_map map;   /* mapping of another process's memory, or with fd of own memory (rk_segment_alloc) */
    struct rk_user_shm_card card; /* of own memory with fd: of its first byte; of a mapping: what it was mapped by */
    struct rk_segments *of;
    struct rk_link link;
    struct rk_hash_node by_id;
};

rank_status_t rk_segments_open(struct rk_ctx *ctx);
void rk_segments_close(struct rk_ctx *ctx);
/* The descriptor that rk_user_shm_find keeps. */
int *rk_segments_maps(struct rk_ctx *ctx);

/* parts of part_bytes (a multiple of the page size) each. */
rank_status_t rk_segment_create(struct rk_ctx *ctx, int parts, size_t part_bytes,
                                struct rk_segment **out, struct rk_memfd_card *card);
rank_status_t rk_segment_attach(struct rk_ctx *ctx, const struct rk_memfd_card *card,
                                struct rk_segment **out);
/* Back a piece now, near the caller; logs a line on failure. In huge pages if possible. */
rank_status_t rk_segment_back(struct rk_segment *seg, size_t offset, size_t bytes);
void rk_segment_close(struct rk_segment *seg);

/* Segment of own registered memory that others can map. NULL: out of memory. */
struct rk_segment *rk_segment_offer(struct rk_ctx *ctx, uint64_t id, void *p, size_t bytes);
/*
 * Allocate shared memory that others can map by seg->card, zeroed and backed. Its end frees it. what: for messages.
 * rk_segment_publish gives it a name.
 */
rank_status_t rk_segment_alloc(struct rk_ctx *ctx, size_t bytes, const char *what, struct rk_segment **out);
/* Returns false if out of memory. */
bool rk_segment_publish(struct rk_segment *seg, uint64_t id);
/* Messages name it no more, and it is not found any more. No-op if NULL. */
void rk_segment_withdraw(struct rk_segment *seg);
/*
 * The owner ends it: withdraw it, and put private memory in place of the mapping. Returns false if the system
 * refuses that.
 */
bool rk_segment_revoke(struct rk_segment *seg);
/*
 * Map another process's memory; id and card must have been confirmed by the owner. Shared by all handles. NULL: it
 * cannot be mapped.
 */
struct rk_segment *rk_segment_map(struct rk_ctx *ctx, uint64_t id, uint64_t there, size_t bytes,
                                  const struct rk_user_shm_card *card);

/* Segment that holds all of [p, p + bytes); NULL if none. Logarithmic. */
struct rk_segment *rk_segment_holding(struct rk_ctx *ctx, const void *p, size_t bytes);
struct rk_segment *rk_segment_by_id(struct rk_ctx *ctx, uint64_t id);

/*
 * Name [p, p + bytes) for other processes: the id of a segment, and the place there (the owner's address if it is
 * registered). False: the memory is private. A mapping of another process's memory counts as private, since its name
 * has the owner's address.
 */
bool rk_segment_name(struct rk_ctx *ctx, const void *p, size_t bytes, uint64_t *id, uint64_t *at);
/* Local mapping of memory that another process has named, without RK_SEGMENT_MARK; NULL if there is none. */
char *rk_segment_at(struct rk_ctx *ctx, uint64_t id, uint64_t at, uint64_t bytes);

#endif
