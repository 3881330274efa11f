/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.c: keep the segments mapped in this process. */
#include "lib/mem/segment.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct rk_segments {
    struct rk_link list; /* few, newest first */
};

rank_status_t rk_segments_open(struct rk_ctx *ctx)
{
    ctx->segments = malloc(sizeof(*ctx->segments));
    if (!ctx->segments)
        return RANK_ERR_NO_MEMORY;
    rk_list_init(&ctx->segments->list);
    return RANK_OK;
}

void rk_segments_close(struct rk_ctx *ctx)
{
    if (!ctx->segments)
        return;
    while (!rk_list_empty(&ctx->segments->list))
        rk_segment_close(rk_list_entry(ctx->segments->list.next, struct rk_segment, link));
    free(ctx->segments);
    ctx->segments = NULL;
}

/* Of memory that rk_memfd_create or rk_memfd_open has mapped, which is closed if memory is short. */
static rank_status_t segment_new(struct rk_ctx *ctx, const struct rk_memfd_card *card, int fd, void *base, struct rk_segment **out)
{
    struct rk_segment *seg = *out = calloc(1, sizeof(*seg));

    if (!seg) {
        rk_memfd_close(fd, base, card->bytes);
        return RANK_ERR_NO_MEMORY;
    }
    *seg = (struct rk_segment){.id = card->nonce, .base = base, .bytes = card->bytes, .fd = fd, .users = 1};
    if (card->bytes > RK_SEGMENT_HUGE) /* if the system has them for shared memory; else harmless */
        madvise(base, card->bytes, MADV_HUGEPAGE);
    rk_list_insert_before(ctx->segments->list.next, &seg->link);
    return RANK_OK;
}

rank_status_t rk_segment_create(struct rk_ctx *ctx, int parts, size_t part_bytes,
                                struct rk_segment **out, struct rk_memfd_card *card)
{
    size_t bytes;
    rank_status_t st;
    void *base;
    int fd;

    if (__builtin_mul_overflow((size_t)parts, rk_segment_stride(part_bytes), &bytes) ||
        __builtin_add_overflow(bytes, rk_segment_front(part_bytes), &bytes) || bytes > INT64_MAX) {
        rk_error("rank_alloc: %zu bytes for each of %d ranks are more than an address space holds",
                 part_bytes, parts);
        return RANK_ERR_NO_MEMORY;
    }
    st = rk_memfd_create(bytes, "rank_alloc", &fd, &base, card);
    return st ? st : segment_new(ctx, card, fd, base, out);
}

rank_status_t rk_segment_attach(struct rk_ctx *ctx, const struct rk_memfd_card *card,
                                struct rk_segment **out)
{
    void *base;
    int fd;
    rank_status_t st = rk_memfd_open(card, &fd, &base);

    return st ? st : segment_new(ctx, card, fd, base, out);
}

rank_status_t rk_segment_back(struct rk_segment *seg, size_t offset, size_t bytes)
{
    rank_status_t st;

    if (bytes < RK_SEGMENT_HUGE)
        return rk_memfd_commit(seg->fd, offset, bytes, RK_LOG_ERROR, "rank_alloc");
    st = rk_mem_check_room(offset + bytes, bytes, RK_LOG_ERROR, "rank_alloc");
    /* Back through the mapping: its hint for huge pages does not apply to the file. */
    if (st || madvise(seg->base + offset, bytes, MADV_POPULATE_WRITE) == 0)
        return st;
    return rk_memfd_commit(seg->fd, offset, bytes, RK_LOG_ERROR, "rank_alloc"); /* an old kernel, or the error */
}

void rk_segment_close(struct rk_segment *seg)
{
    if (!seg || --seg->users > 0)
        return;
    rk_list_remove(&seg->link);
    if (seg->there)
        rk_shared_unmap(&seg->map);
    else
        rk_memfd_close(seg->fd, seg->base, seg->bytes);
    free(seg);
}

/* After those of rank_alloc, which all ranks of the node can use. */
static struct rk_segment *registered_new(struct rk_ctx *ctx, uint64_t id, char *base, size_t bytes, uint64_t there)
{
    struct rk_segment *seg = calloc(1, sizeof(*seg));

    if (!seg)
        return NULL;
    *seg = (struct rk_segment){.id = id, .base = base, .bytes = bytes, .fd = -1, .users = 1, .there = there};
    rk_list_append(&ctx->segments->list, &seg->link);
    return seg;
}

struct rk_segment *rk_segment_offer(struct rk_ctx *ctx, uint64_t id, void *p, size_t bytes)
{
    return registered_new(ctx, id, p, bytes, (uint64_t)(uintptr_t)p);
}

struct rk_segment *rk_segment_map(struct rk_ctx *ctx, uint64_t id, uint64_t there, size_t bytes,
                                  const struct rk_shared_card *card)
{
    struct rk_segment *seg = rk_segment_by_id(ctx, id);
    struct rk_shared_map map;

    if (seg) { /* the same registration: nonces are unique */
        seg->users++;
        return seg;
    }
    if (!there || !rk_shared_map(card, bytes, &map))
        return NULL;
    seg = registered_new(ctx, id, map.base, bytes, there);
    if (!seg) {
        rk_shared_unmap(&map);
        return NULL;
    }
    seg->map = map;
    return seg;
}

struct rk_segment *rk_segment_holding(struct rk_ctx *ctx, const void *p, size_t bytes)
{
    struct rk_link *l;

    rk_list_for_each(l, &ctx->segments->list)
    {
        struct rk_segment *seg = rk_list_entry(l, struct rk_segment, link);
        if ((const char *)p >= seg->base && bytes <= seg->bytes &&
            (size_t)((const char *)p - seg->base) <= seg->bytes - bytes)
            return seg;
    }
    return NULL;
}

struct rk_segment *rk_segment_by_id(struct rk_ctx *ctx, uint64_t id)
{
    struct rk_link *l;

    rk_list_for_each(l, &ctx->segments->list)
    {
        struct rk_segment *seg = rk_list_entry(l, struct rk_segment, link);
        if (seg->id == id)
            return seg;
    }
    return NULL;
}

bool rk_segment_name(struct rk_ctx *ctx, const void *p, size_t bytes, uint64_t *id, uint64_t *at)
{
    const struct rk_segment *seg = rk_segment_holding(ctx, p, bytes);

    if (!seg || seg->map.map)
        return false;
    *id = seg->id;
    *at = seg->there ? (uint64_t)(uintptr_t)p : (uint64_t)((const char *)p - seg->base);
    return true;
}

char *rk_segment_at(struct rk_ctx *ctx, uint64_t id, uint64_t at, uint64_t bytes)
{
    const struct rk_segment *seg = rk_segment_by_id(ctx, id);

    if (!seg)
        return NULL;
    at -= seg->there;
    return at <= seg->bytes && bytes <= seg->bytes - at ? seg->base + at : NULL;
}
