/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.c: keep the segments mapped in this process. */
#include "lib/mem/segment.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* A segment by its address. reach: the highest end of this and all segments before it. */
struct place {
    char *base, *reach;
    struct rk_segment *seg;
};

struct rk_segments {
    struct rk_link list; /* newest first */
    struct rk_hash_table by_id;
    struct place *places; /* by base */
    size_t nplaces, room;
    int maps; /* of rk_user_shm_find */
};

rank_status_t rk_segments_open(struct rk_ctx *ctx)
{
    ctx->segments = calloc(1, sizeof(*ctx->segments));
    if (!ctx->segments)
        return RANK_ERR_NO_MEMORY;
    rk_list_init(&ctx->segments->list);
    ctx->segments->maps = -1;
    return RANK_OK;
}

void rk_segments_close(struct rk_ctx *ctx)
{
    struct rk_segments *s = ctx->segments;

    if (!s)
        return;
    while (!rk_list_empty(&s->list)) {
        struct rk_segment *seg = rk_list_entry(s->list.next, struct rk_segment, link);
        seg->users = 1;
        rk_segment_close(seg);
    }
    rk_user_shm_find_end(&s->maps);
    rk_hash_close(&s->by_id);
    free(s->places);
    free(s);
    ctx->segments = NULL;
}

int *rk_segments_maps(struct rk_ctx *ctx)
{
    return &ctx->segments->maps;
}

/* ----------------------------------------------------------------------- by address */

/* Number of places with a base of at most p. */
static size_t places_below(const struct rk_segments *s, const char *p)
{
    size_t low = 0, high = s->nplaces;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->places[mid].base <= p)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Set the reach of the places from i on, as far as it changes. */
static void reach_from(struct rk_segments *s, size_t i)
{
    for (; i < s->nplaces; i++) {
        struct place *p = &s->places[i];
        char *reach = p->base + p->seg->bytes;

        if (i > 0 && p[-1].reach > reach)
            reach = p[-1].reach;
        if (p->reach == reach)
            return;
        p->reach = reach;
    }
}

static bool place_add(struct rk_segments *s, struct rk_segment *seg)
{
    size_t room = s->room ? s->room * 2 : 16, at;
    struct place *places;

    if (s->nplaces == s->room) {
        places = realloc(s->places, room * sizeof(*places));
        if (!places)
            return false;
        s->places = places;
        s->room = room;
    }
    at = places_below(s, seg->base);
    memmove(s->places + at + 1, s->places + at, (s->nplaces - at) * sizeof(s->places[0]));
    s->places[at] = (struct place){seg->base, NULL, seg};
    s->nplaces++;
    reach_from(s, at);
    return true;
}

static void place_drop(struct rk_segments *s, const struct rk_segment *seg)
{
    size_t at = places_below(s, seg->base);

    while (at > 0 && s->places[at - 1].seg != seg)
        at--;
    if (at == 0)
        return;
    at--;
    s->nplaces--;
    memmove(s->places + at, s->places + at + 1, (s->nplaces - at) * sizeof(s->places[0]));
    reach_from(s, at);
}

/* --------------------------------------------------------------------------- segments */

static void segment_list(struct rk_ctx *ctx, struct rk_segment *seg)
{
    seg->of = ctx->segments;
    rk_list_insert_before(ctx->segments->list.next, &seg->link);
}

bool rk_segment_publish(struct rk_segment *seg, uint64_t id)
{
    seg->id = id;
    if (!rk_hash_put(&seg->of->by_id, &seg->by_id, id))
        return false;
    if (place_add(seg->of, seg))
        return true;
    rk_hash_remove(&seg->of->by_id, &seg->by_id);
    return false;
}

void rk_segment_withdraw(struct rk_segment *seg)
{
    if (!seg || !seg->by_id.in)
        return;
    rk_hash_remove(&seg->of->by_id, &seg->by_id);
    place_drop(seg->of, seg);
}

bool rk_segment_revoke(struct rk_segment *seg)
{
    rk_segment_withdraw(seg);
    return seg->fd >= 0 || !seg->map.map || rk_user_shm_detach(&seg->map);
}

void rk_segment_close(struct rk_segment *seg)
{
    if (!seg || --seg->users > 0)
        return;
    rk_segment_withdraw(seg);
    rk_list_remove(&seg->link);
    if (seg->there)
        rk_user_shm_unmap(&seg->map);
    rk_memfd_close(seg->fd, seg->there ? NULL : seg->base, seg->bytes);
    free(seg);
}

/* Of memory that rk_memfd_create or rk_memfd_open has mapped, which is closed if memory is short. */
static rank_status_t segment_new(struct rk_ctx *ctx, const struct rk_memfd_card *card, int fd, void *base, struct rk_segment **out)
{
    struct rk_segment *seg = *out = calloc(1, sizeof(*seg));

    if (!seg) {
        rk_memfd_close(fd, base, card->bytes);
        return RANK_ERR_NO_MEMORY;
    }
    *seg = (struct rk_segment){.base = base, .bytes = card->bytes, .fd = fd, .users = 1};
    if (card->bytes > RK_SEGMENT_HUGE) /* if the system has them for shared memory; else harmless */
        madvise(base, card->bytes, MADV_HUGEPAGE);
    segment_list(ctx, seg);
    if (rk_segment_publish(seg, card->nonce))
        return RANK_OK;
    rk_segment_close(seg);
    return RANK_ERR_NO_MEMORY;
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
        return rk_fail(RANK_ERR_NO_MEMORY, "rank_alloc: %zu bytes for each of %d ranks are more than an address space holds",
                       part_bytes, parts);
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

/* Back a piece of a mapping of fd. */
static rank_status_t back_piece(int fd, char *base, size_t offset, size_t bytes, const char *what)
{
    rank_status_t st;

    if (bytes < RK_SEGMENT_HUGE)
        return rk_memfd_commit(fd, offset, bytes, RK_LOG_ERROR, what);
    st = rk_mem_check_room(offset + bytes, bytes, RK_LOG_ERROR, what);
    /* Back through the mapping: its hint for huge pages does not apply to the file. */
    if (st || madvise(base + offset, bytes, MADV_POPULATE_WRITE) == 0)
        return st;
    return rk_memfd_commit(fd, offset, bytes, RK_LOG_ERROR, what); /* an old kernel, or the error */
}

rank_status_t rk_segment_back(struct rk_segment *seg, size_t offset, size_t bytes)
{
    return back_piece(seg->fd, seg->base, offset, bytes, "rank_alloc");
}

static struct rk_segment *registered_new(struct rk_ctx *ctx, char *base, size_t bytes, uint64_t there)
{
    struct rk_segment *seg = calloc(1, sizeof(*seg));

    if (!seg)
        return NULL;
    *seg = (struct rk_segment){.base = base, .bytes = bytes, .fd = -1, .users = 1, .there = there};
    segment_list(ctx, seg);
    return seg;
}

struct rk_segment *rk_segment_offer(struct rk_ctx *ctx, uint64_t id, void *p, size_t bytes)
{
    struct rk_segment *seg = registered_new(ctx, p, bytes, (uint64_t)(uintptr_t)p);

    if (!seg || rk_segment_publish(seg, id))
        return seg;
    rk_segment_close(seg);
    return NULL;
}

/* Fill in the card of memory in own memory with a descriptor. */
static bool describe_file(struct rk_segment *seg, size_t front)
{
    struct stat st;

    if (fstat(seg->fd, &st) != 0)
        return false;
    seg->card = (struct rk_user_shm_card){
        .inode = st.st_ino, .at = front, .start = (uint64_t)(uintptr_t)seg->map.map, .end = (uint64_t)(uintptr_t)seg->map.map + seg->map.map_bytes,
        .major = major(st.st_dev), .minor = minor(st.st_dev), .pid = getpid(), .fd = seg->fd};
    return true;
}

rank_status_t rk_segment_alloc(struct rk_ctx *ctx, size_t bytes, const char *what, struct rk_segment **out)
{
    size_t front = rk_segment_front(bytes), all = rk_segment_stride(bytes ? bytes : 1);
    struct rk_memfd_card card;
    struct rk_segment *seg;
    rank_status_t st;
    void *map;
    int fd;

    if (__builtin_add_overflow(all, front, &all) || all > INT64_MAX) {
        return rk_fail(RANK_ERR_NO_MEMORY, "%s: %zu bytes are more than an address space holds", what, bytes);
    }
    st = rk_memfd_create(all, what, &fd, &map, &card);
    if (st)
        return st;
    if (all > RK_SEGMENT_HUGE)
        madvise(map, all, MADV_HUGEPAGE);
    st = back_piece(fd, map, front, rk_round_up(bytes ? bytes : 1, 4096), what);
    seg = st ? NULL : registered_new(ctx, (char *)map + front, bytes, (uint64_t)(uintptr_t)map + front);
    if (!seg) {
        rk_memfd_close(fd, map, all);
        return st ? st : RANK_ERR_NO_MEMORY;
    }
    seg->fd = fd;
    seg->map = (struct rk_user_shm_map){seg->base, map, all};
    if (!describe_file(seg, front)) {
        rk_segment_close(seg);
        return RANK_ERR_SYSTEM;
    }
    *out = seg;
    return RANK_OK;
}

struct rk_segment *rk_segment_map(struct rk_ctx *ctx, uint64_t id, uint64_t there, size_t bytes,
                                  const struct rk_user_shm_card *card)
{
    struct rk_segment *seg = rk_segment_by_id(ctx, id);
    struct rk_user_shm_map map;

    if (seg) { /* the same registration: nonces are unique */
        seg->users++;
        return seg;
    }
    if (!there || !rk_user_shm_map(card, bytes, &map))
        return NULL;
    seg = registered_new(ctx, map.base, bytes, there);
    if (!seg) {
        rk_user_shm_unmap(&map);
        return NULL;
    }
    seg->map = map;
    seg->card = *card;
    if (rk_segment_publish(seg, id))
        return seg;
    rk_segment_close(seg);
    return NULL;
}

struct rk_segment *rk_segment_holding(struct rk_ctx *ctx, const void *p, size_t bytes)
{
    const struct rk_segments *s = ctx->segments;

    for (size_t i = places_below(s, p); i > 0; i--) {
        const struct place *place = &s->places[i - 1];
        size_t in = (size_t)((const char *)p - place->base);

        if (place->reach < (const char *)p || (size_t)(place->reach - (const char *)p) < bytes)
            return NULL;
        if (in <= place->seg->bytes && bytes <= place->seg->bytes - in)
            return place->seg;
    }
    return NULL;
}

struct rk_segment *rk_segment_by_id(struct rk_ctx *ctx, uint64_t id)
{
    struct rk_hash_node *node = rk_hash_find(&ctx->segments->by_id, id);

    return node ? rk_container_of(node, struct rk_segment, by_id) : NULL;
}

bool rk_segment_name(struct rk_ctx *ctx, const void *p, size_t bytes, uint64_t *id, uint64_t *at)
{
    const struct rk_segment *seg = rk_segment_holding(ctx, p, bytes);

    if (!seg || (seg->map.map && seg->fd < 0) || seg->card.denied)
        return false;
    *id = seg->id;
    *at = seg->there ? (uint64_t)(uintptr_t)p : (uint64_t)((const char *)p - seg->base);
    return true;
}

char *rk_segment_at(struct rk_ctx *ctx, uint64_t id, uint64_t at, uint64_t bytes)
{
    const struct rk_segment *seg = rk_segment_by_id(ctx, id);

    if (!seg || seg->card.denied) /* the caller may write there */
        return NULL;
    at -= seg->there;
    return at <= seg->bytes && bytes <= seg->bytes - at ? seg->base + at : NULL;
}
