/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fifo.h: pass frames one way between two ranks of a node.
 *
 * One producer, one consumer. A cell is one cache line of four slots. A frame is one of two kinds:
 *
 * - full: fills a cell with its header and at most 32 bytes of payload;
 * - compact: a message of at most 56 bytes with team and sender bound to a number by an earlier frame. With a header
 *   of 8 bytes it takes one to four slots, so several share a line. A compact frame goes into the current cell if
 *   it fits; else the cell is closed (SKIP) and the frame begins the next one.
 *
 * A larger payload lies in the byte ring, contiguous, in the order of the cells. The cell holds its position, and
 * how many bytes of the opposite fifo's ring its sender has consumed. When all its bytes are consumed a producer
 * restarts at the first byte of the ring. Ranks that answer each other then reuse the same cache lines.
 *
 * The first byte of a frame is its flag: the parity of the lap, 1 or 2. At the start of a cell this byte is a flag
 * in every lap and needs no clearing. The producer clears those of the other slots before it publishes the first
 * compact frame of a cell.
 *
 * The consumer counts in a line of its own, which the producer reads only when its last value leaves no room.
 *
 * Memory order: the producer's release store of a frame's first word publishes the frame; the consumer's release
 * stores of its counters return cells and bytes.
 */
#ifndef RK_CHANNEL_SHM_FIFO_H
#define RK_CHANNEL_SHM_FIFO_H

#include "lib/data/copy_small.h"
#include "lib/core/frame.h"
#include "lib/data/copy_nt.h"

#include <stdbool.h>
#include <string.h>

#define RK_CELL_BYTES 64u
#define RK_CELL_INLINE 32u

#define RK_COMPACT_MAX 56u
#define RK_BINDS 8u
#define RK_COMPACT_TAG_MAX (1ull << 40)

enum { RK_SLOT_BYTES = 16, RK_SLOTS = 4 };

/* Second byte of a frame; the first is the flag, the third a binding. */
enum { RK_FORM_FULL = 1, RK_FORM_SKIP = 2, RK_FORM_COMPACT = 0x40 /* plus the length */ };

union rk_cell {
    struct {
        struct rk_hdr hdr; /* hdr.turn holds: flag, form, new binding + 1 or 0, 0 */
        unsigned char payload[RK_CELL_INLINE];
    } full;
    struct {
        struct rk_hdr hdr;
        struct rk_in_ring {
            uint64_t place;  /* position of the payload in the byte ring */
            uint64_t behind; /* bytes consumed of the opposite ring */
        } at;
    } ring;
    struct {
        _Atomic uint64_t head; /* flag, form, binding, and 40 bits of tag */
        unsigned char payload[RK_SLOT_BYTES - 8];
    } slot[RK_SLOTS];
} RK_ALIGNED_LINE;
_Static_assert(sizeof(union rk_cell) == RK_CELL_BYTES, "a cell is a line");
_Static_assert(offsetof(union rk_cell, ring.at) >= offsetof(union rk_cell, full.payload), "behind the header");

/* The fields that a compact frame omits. */
struct rk_bind {
    uint64_t team;
    uint32_t src;
    uint16_t epoch, bound;
};

/* Start of a fifo in shared memory. All zeros is a valid initial state. */
struct rk_fifo {
    /* written by the consumer */
    _Atomic uint32_t taken RK_ALIGNED_LINE; /* cells consumed */
    _Atomic uint64_t drained;               /* bytes consumed */
    /* both sides of one large copy: see shm_rndv.c */
    _Atomic uint64_t claims RK_ALIGNED_LINE;
    _Atomic uint32_t helped;
    /* written by the producer */
    union rk_cell cells[];
};

/* Layout of a fifo's memory; equal on both sides. */
struct rk_fifo_shape {
    size_t bytes;    /* the whole fifo */
    uint32_t cells;  /* a power of two */
    uint32_t ring;   /* bytes, a power of two */
    uint32_t shallow; /* bytes of it that the producer uses at first, a power of two */
    size_t ring_at;  /* offset in the fifo */
    uint32_t frame;  /* maximum payload of a frame */
};

struct rk_fifo_shape rk_fifo_shape(size_t bytes);
/* Reserve space for a ring of this size; initially the producer uses no more than before. */
void rk_fifo_shape_deepen(struct rk_fifo_shape *shape, uint32_t ring);

struct rk_fifo_out { /* producer's end */
    struct rk_fifo *box;
    char *ring;
    uint32_t mask, next, limit; /* cells: next to begin, first without room */
    uint32_t slot;              /* next free slot of the cell before next; RK_SLOTS: closed */
    uint64_t messages;          /* appended, in the line that each of them changes */
    uint64_t at, ring_limit;    /* bytes: next to fill, first without room */
    uint32_t ring_bytes;
    uint32_t used;              /* bytes of the ring in use, from its start */
    uint32_t nt_from;     /* payload of at least this size is written with nontemporal stores */
    const struct rk_fifo_in *opposite; /* the opposite fifo's consumer end, or NULL */
    struct rk_bind binds[RK_BINDS];
};

struct rk_fifo_in { /* consumer's end */
    struct rk_fifo *box;
    char *ring;
    union rk_cell *cell; /* current cell, and the slot in it */
    uint32_t slot, span; /* span: slots of the frame that rk_fifo_read returned */
    uint32_t mask, next;
    uint64_t head;       /* first word of the frame that is ready */
    uint64_t messages;   /* consumed: counted by the caller of rk_fifo_consume */
    uint64_t at;
    uint64_t reported; /* bytes of the opposite ring consumed by its consumer, as far as reported */
    uint32_t ring_bytes;
    struct rk_bind binds[RK_BINDS];
};

void rk_fifo_out_init(struct rk_fifo_out *o, void *mem, const struct rk_fifo_shape *shape);
void rk_fifo_in_init(struct rk_fifo_in *in, void *mem, const struct rk_fifo_shape *shape);

/*
 * Position of len bytes placed behind at: pieces are line-aligned and never wrap. Only the producer needs the size
 * in use: the consumer reads at the position in the cell.
 */
RK_INLINE uint64_t rk_ring_place(uint64_t at, uint32_t len, uint32_t used, uint32_t ring_bytes)
{
    uint32_t off = (uint32_t)(at & (ring_bytes - 1));

    return off + len > used ? at + (ring_bytes - off) : at;
}

RK_INLINE uint64_t rk_ring_behind(uint64_t place, uint32_t len)
{
    return (place + len + RK_CELL_BYTES - 1) & ~(uint64_t)(RK_CELL_BYTES - 1);
}

/* Flag of a cell's frames: alternates between 1 and 2, lap by lap. */
RK_INLINE uint64_t rk_fifo_lap(uint32_t next, uint32_t mask)
{
    return 1 + ((next & (mask + 1)) != 0);
}

RK_INLINE uint32_t rk_bind_index(uint64_t team)
{
    return (uint32_t)(team * 0x9e3779b97f4a7c15ull >> 61);
}

/* Slots of a compact frame. */
RK_INLINE uint32_t rk_compact_span(uint32_t len)
{
    return (len + 8 + RK_SLOT_BYTES - 1) / RK_SLOT_BYTES;
}

/* Is there a cell to begin? */
RK_INLINE bool rk_fifo_cell_room(struct rk_fifo_out *o)
{
    if (rk_unlikely(o->next == o->limit)) {
        o->limit = atomic_load_explicit(&o->box->taken, memory_order_acquire) + o->mask + 1;
        return o->next != o->limit;
    }
    return true;
}

/* Read the consumer's counters. After a restart of the ring the limit may be ahead of the consumer. */
RK_INLINE void rk_fifo_read_counters(struct rk_fifo_out *o)
{
    uint64_t limit = atomic_load_explicit(&o->box->drained, memory_order_acquire) + o->ring_bytes;

    if (limit > o->ring_limit)
        o->ring_limit = limit;
}

/* Is there room for len bytes in the byte ring? */
RK_INLINE bool rk_fifo_ring_room(struct rk_fifo_out *o, uint32_t len)
{
    uint64_t end;

    if (o->opposite && o->opposite->reported == o->at) {
        o->at = (o->at + o->ring_bytes - 1) & ~(uint64_t)(o->ring_bytes - 1);
        o->ring_limit = o->at + o->ring_bytes;
        return true;
    }
    end = rk_ring_behind(rk_ring_place(o->at, len, o->used, o->ring_bytes), len);
    if (rk_unlikely(end > o->ring_limit)) {
        rk_fifo_read_counters(o);
        return end <= o->ring_limit;
    }
    return true;
}

/* Close the current cell: send the consumer to the next. */
RK_INLINE void rk_fifo_close_cell(struct rk_fifo_out *o)
{
    if (o->slot < RK_SLOTS)
        atomic_store_explicit(&o->box->cells[(o->next - 1) & o->mask].slot[o->slot].head,
                              rk_fifo_lap(o->next - 1, o->mask) | RK_FORM_SKIP << 8,
                              memory_order_release);
    o->slot = RK_SLOTS;
}

/* Number bound to team and sender if this message can be a compact frame; else -1. */
RK_INLINE int rk_fifo_binding(const struct rk_fifo_out *o, uint64_t team, uint32_t src, uint16_t epoch, uint64_t tag)
{
    uint32_t i = rk_bind_index(team);
    const struct rk_bind *b = &o->binds[i];

    return rk_likely(b->team == team && b->src == src && b->epoch == epoch && b->bound && tag < RK_COMPACT_TAG_MAX) ? (int)i
                                                                                                                 : -1;
}

/* Append a compact frame of at most RK_COMPACT_MAX bytes. */
RK_INLINE bool rk_fifo_put_compact(struct rk_fifo_out *o, uint32_t bind, uint64_t tag, const void *payload, uint32_t len)
{
    uint32_t span = rk_compact_span(len), at = o->slot;
    union rk_cell *c;

    if (at + span > RK_SLOTS) {
        if (rk_unlikely(!rk_fifo_cell_room(o)))
            return false;
        rk_fifo_close_cell(o);
        c = &o->box->cells[o->next & o->mask];
        o->next++;
        at = 0;
        for (uint32_t i = span; i < RK_SLOTS; i++)
            atomic_store_explicit(&c->slot[i].head, 0, memory_order_relaxed);
    } else {
        c = &o->box->cells[(o->next - 1) & o->mask];
    }
    rk_copy_small(c->slot[at].payload, payload, len);
    o->slot = at + span;
    o->messages++;
    atomic_store_explicit(&c->slot[at].head,
                          rk_fifo_lap(o->next - 1, o->mask) |
                              (uint64_t)(RK_FORM_COMPACT | len) << 8 | (uint64_t)bind << 16 | tag << 24,
                          memory_order_release);
    return true;
}

RK_INLINE bool rk_fifo_put_full(struct rk_fifo_out *o, uint32_t bind, const struct rk_hdr *hdr,
                                const void *first, uint32_t first_len, const void *second)
{
    uint32_t rest = hdr->len - first_len;
    struct rk_in_ring where;
    uint64_t place;
    union rk_cell *c;
    char *to;

    if (rk_unlikely(!rk_fifo_cell_room(o)) ||
        (hdr->len > RK_CELL_INLINE && rk_unlikely(!rk_fifo_ring_room(o, hdr->len))))
        return false;
    rk_fifo_close_cell(o);
    c = &o->box->cells[o->next & o->mask];
    if (hdr->len <= RK_CELL_INLINE) {
        rk_copy_small(c->full.payload, first, first_len);
        if (second && rest)
            rk_copy_small(c->full.payload + first_len, second, rest);
    } else {
        place = rk_ring_place(o->at, hdr->len, o->used, o->ring_bytes);
        to = o->ring + (place & (o->ring_bytes - 1));
        if (rk_unlikely(hdr->len >= o->nt_from)) {
            rk_copy_streamed(to, first, first_len);
            if (second && rest)
                rk_copy_streamed(to + first_len, second, rest);
        } else {
            memcpy(to, first, first_len);
            if (second && rest)
                memcpy(to + first_len, second, rest);
        }
        o->at = rk_ring_behind(place, hdr->len);
        where = (struct rk_in_ring){place, o->opposite ? o->opposite->at : 0};
        memcpy(&c->ring.at, &where, sizeof(where));
    }
    memcpy((char *)&c->full.hdr + 8, (const char *)hdr + 8, sizeof(*hdr) - 8);
    o->next++;
    o->messages += rk_frame_is_message(hdr->kind);
    atomic_store_explicit(&c->slot[0].head,
                          rk_fifo_lap(o->next - 1, o->mask) | RK_FORM_FULL << 8 |
                              (uint64_t)bind << 16 | (uint64_t)hdr->kind << 32 |
                              (uint64_t)hdr->flags << 40 | (uint64_t)hdr->epoch << 48,
                          memory_order_release);
    return true;
}

/* Append a frame; returns false if there is no room. The payload is in two parts; the second may be empty. */
RK_INLINE bool rk_fifo_put(struct rk_fifo_out *o, const struct rk_hdr *hdr, const void *first,
                           uint32_t first_len, const void *second)
{
    struct rk_bind *b;
    uint32_t i;

    if (rk_unlikely(hdr->kind != RK_KIND_MSG || hdr->flags))
        return rk_fifo_put_full(o, 0, hdr, first, first_len, second);
    i = rk_bind_index(hdr->team);
    b = &o->binds[i];
    if (rk_likely(b->team == hdr->team && b->src == hdr->src && b->epoch == hdr->epoch && b->bound)) {
        if (hdr->len <= RK_COMPACT_MAX && rk_likely(hdr->tag < RK_COMPACT_TAG_MAX) &&
            first_len == hdr->len)
            return rk_fifo_put_compact(o, i, hdr->tag, first, hdr->len);
        return rk_fifo_put_full(o, 0, hdr, first, first_len, second);
    }
    if (!rk_fifo_put_full(o, i + 1, hdr, first, first_len, second))
        return false;
    *b = (struct rk_bind){hdr->team, hdr->src, hdr->epoch, 1};
    return true;
}

RK_INLINE void rk_fifo_next_cell(struct rk_fifo_in *in)
{
    in->next++;
    in->slot = 0;
    in->cell = &in->box->cells[in->next & in->mask];
    __builtin_prefetch(&in->box->cells[(in->next + 1) & in->mask]);
    atomic_store_explicit(&in->box->taken, in->next, memory_order_release);
}

/* Has the next frame arrived? */
RK_INLINE bool rk_fifo_ready(struct rk_fifo_in *in)
{
    for (;;) {
        uint64_t head = atomic_load_explicit(&in->cell->slot[in->slot].head, memory_order_acquire);

        if ((head & 0xff) != rk_fifo_lap(in->next, in->mask))
            return false;
        in->head = head;
        if (rk_likely((head >> 8 & 0xff) != RK_FORM_SKIP))
            return true;
        rk_fifo_next_cell(in);
    }
}

/* Is the ready frame compact? */
RK_INLINE bool rk_fifo_is_compact(const struct rk_fifo_in *in)
{
    return (in->head >> 8 & 0xff) >= RK_FORM_COMPACT;
}

/*
 * Its binding and length; the tag is in->head >> 24, the payload follows the head. NULL if the frame is malformed.
 */
RK_INLINE const struct rk_bind *rk_fifo_compact(struct rk_fifo_in *in, uint32_t *len)
{
    const struct rk_bind *b = &in->binds[(in->head >> 16 & 0xff) % RK_BINDS];

    *len = (uint32_t)(in->head >> 8 & 0xff) - RK_FORM_COMPACT;
    in->span = rk_compact_span(*len);
    if (rk_likely(in->slot + in->span <= RK_SLOTS && b->bound))
        return b;
    in->span = RK_SLOTS - in->slot;
    return NULL;
}

/*
 * Header and payload of the ready frame, and the end of it in the byte ring. NULL if it is malformed: the peer's
 * memory is corrupt.
 */
RK_INLINE const void *rk_fifo_read(struct rk_fifo_in *in, uint32_t frame_max, struct rk_hdr *hdr,
                                   uint64_t *behind)
{
    uint32_t form = (uint32_t)(in->head >> 8 & 0xff), bind = (uint32_t)(in->head >> 16 & 0xff), off;
    uint64_t place;

    *behind = in->at;
    in->span = RK_SLOTS - in->slot;
    if (rk_likely(rk_fifo_is_compact(in))) {
        uint32_t len;
        const struct rk_bind *b = rk_fifo_compact(in, &len);

        if (rk_unlikely(!b))
            return NULL;
        *hdr = (struct rk_hdr){.kind = RK_KIND_MSG,
                               .epoch = b->epoch,
                               .src = b->src,
                               .len = len,
                               .team = b->team,
                               .tag = in->head >> 24};
        return in->cell->slot[in->slot].payload;
    }
    if (rk_unlikely(form != RK_FORM_FULL || in->slot != 0))
        return NULL;
    *hdr = in->cell->full.hdr;
    if (bind)
        in->binds[(bind - 1) % RK_BINDS] = (struct rk_bind){hdr->team, hdr->src, hdr->epoch, 1};
    if (hdr->len <= RK_CELL_INLINE)
        return in->cell->full.payload;
    if (hdr->len > frame_max)
        return NULL;
    place = in->cell->ring.at.place;
    off = (uint32_t)(place & (in->ring_bytes - 1));
    if (rk_unlikely(place - in->at >= in->ring_bytes || off + hdr->len > in->ring_bytes))
        return NULL;
    in->reported = in->cell->ring.at.behind;
    *behind = rk_ring_behind(place, hdr->len);
    return in->ring + off;
}

/* Return the space of the frame that was read. */
RK_INLINE void rk_fifo_consume(struct rk_fifo_in *in, uint64_t behind)
{
    in->slot += in->span;
    if (in->slot >= RK_SLOTS)
        rk_fifo_next_cell(in);
    if (behind != in->at) {
        in->at = behind;
        atomic_store_explicit(&in->box->drained, behind, memory_order_release);
    }
}

#endif
