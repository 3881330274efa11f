/*
 * segment.h: symmetric allocations as they are mapped in this process.
 *
 * One memfd a node and allocation, a part for each rank of the team on that
 * node. Messages from such memory name it by the memfd's nonce and an offset,
 * so that the receiver copies straight from its own mapping.
 */
#ifndef RK_MEM_SEGMENT_H
#define RK_MEM_SEGMENT_H

#include "lib/base/ctx.h"
#include "lib/base/list.h"
#include "lib/mem/memfd.h"

/* A part of this size or more begins on such a boundary, so that huge pages can hold it. */
#define RK_SEGMENT_HUGE (2u << 20)

/* Room for the nonce before the first part. */
static inline size_t rk_segment_front(size_t part_bytes)
{
    return part_bytes >= RK_SEGMENT_HUGE ? RK_SEGMENT_HUGE : 4096;
}

/* From one part to the next; what lies between is never backed. */
static inline size_t rk_segment_stride(size_t part_bytes)
{
    size_t unit = rk_segment_front(part_bytes);

    return part_bytes > SIZE_MAX - unit ? SIZE_MAX : (part_bytes + unit - 1) & ~(unit - 1);
}

struct rk_segment {
    uint64_t id; /* the nonce */
    char *base;
    size_t bytes;
    int fd;
    struct rk_link link;
};

rank_status_t rk_segments_open(struct rk_ctx *ctx);
void rk_segments_close(struct rk_ctx *ctx);

/* parts of part_bytes (a multiple of the page size) each. */
rank_status_t rk_segment_create(struct rk_ctx *ctx, int parts, size_t part_bytes,
                                struct rk_segment **out, struct rk_memfd_card *card);
rank_status_t rk_segment_attach(struct rk_ctx *ctx, const struct rk_memfd_card *card,
                                struct rk_segment **out);
/* Memory behind some of it, now, near who calls; one line if there is none. In huge pages where it can be. */
rank_status_t rk_segment_back(struct rk_segment *seg, size_t offset, size_t bytes);
void rk_segment_close(struct rk_segment *seg);

/* Which segment holds all of [p, p + bytes)? NULL if none. */
struct rk_segment *rk_segment_holding(struct rk_ctx *ctx, const void *p, size_t bytes);
struct rk_segment *rk_segment_by_id(struct rk_ctx *ctx, uint64_t id);

#endif
