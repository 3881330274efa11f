/*
 * box.h: a one-way box between two ranks of a node: a ring of cells, a ring of bytes.
 *
 * One producer, one consumer. A cell is one cache line: a frame's header and
 * up to 32 bytes of payload. Its first word is the flag: cell number p (counted
 * from 0 for ever) bears p + 1 once it is filled, so nothing has to be cleared
 * and a message of up to 32 bytes moves exactly one line. Longer payload lies
 * in the byte ring, contiguous, in the order of the cells. Both sides compute
 * where it begins from the lengths alone.
 *
 * The consumer says how far it is in a line of its own, which the producer
 * reads only when its last reading leaves no room.
 *
 * Memory order: the producer's release store of the flag publishes cell and
 * payload; the consumer's release stores of its counters give them back.
 */
#ifndef RK_CHANNEL_SHM_BOX_H
#define RK_CHANNEL_SHM_BOX_H

#include "lib/channel/frame.h"

#include <stdbool.h>
#include <string.h>

#define RK_CELL_BYTES 64u
#define RK_CELL_INLINE 32u

struct rk_cell {
    struct rk_hdr hdr; /* hdr.turn is the flag */
    unsigned char payload[RK_CELL_INLINE];
} RK_ALIGNED_LINE;
_Static_assert(sizeof(struct rk_cell) == RK_CELL_BYTES, "a cell is a line");

/* The front of a box in shared memory. Zero is its right initial state. */
struct rk_box {
    /* written by the consumer */
    _Atomic uint32_t taken RK_ALIGNED_LINE; /* cells consumed */
    _Atomic uint64_t drained;               /* bytes consumed */
    /* both sides of one large copy: see rndv.c */
    _Atomic uint64_t claims RK_ALIGNED_LINE;
    _Atomic uint32_t helped;
    /* written by the producer */
    _Atomic uint32_t has_bytes RK_ALIGNED_LINE; /* the byte ring is backed */
    struct rk_cell cells[];
};

/* How a box's memory is divided; the same on both sides. */
struct rk_box_shape {
    size_t bytes;    /* the whole box */
    uint32_t cells;  /* a power of two */
    uint32_t ring;   /* bytes, a power of two */
    size_t ring_at;  /* offset in the box */
    uint32_t frame;  /* most payload of one frame */
};

struct rk_box_shape rk_box_shape(size_t bytes);

struct rk_box_out { /* the producer's end */
    struct rk_box *box;
    char *ring;
    uint32_t mask, next, limit; /* cells: next to fill, first that may not be filled */
    uint64_t at, ring_limit;    /* bytes: next to fill, first that may not be */
    uint32_t ring_bytes;
};

struct rk_box_in { /* the consumer's end */
    struct rk_box *box;
    char *ring;
    struct rk_cell *cell; /* the one to look at */
    uint32_t mask, next;
    uint64_t at;
    uint32_t ring_bytes;
};

void rk_box_out_init(struct rk_box_out *o, void *mem, const struct rk_box_shape *shape);
void rk_box_in_init(struct rk_box_in *in, void *mem, const struct rk_box_shape *shape);

/* Where len bytes begin that are to be placed behind at: pieces are aligned to lines and never
 * wrap. */
RK_INLINE uint64_t rk_ring_place(uint64_t at, uint32_t len, uint32_t ring_bytes)
{
    uint32_t off = (uint32_t)(at & (ring_bytes - 1));

    return off + len > ring_bytes ? at + (ring_bytes - off) : at;
}

RK_INLINE uint64_t rk_ring_behind(uint64_t place, uint32_t len)
{
    return (place + len + RK_CELL_BYTES - 1) & ~(uint64_t)(RK_CELL_BYTES - 1);
}

/* Room for a frame of len payload bytes? */
RK_INLINE bool rk_box_room(struct rk_box_out *o, uint32_t len)
{
    if (rk_unlikely(o->next == o->limit)) {
        o->limit = atomic_load_explicit(&o->box->taken, memory_order_acquire) + o->mask + 1;
        if (o->next == o->limit)
            return false;
    }
    if (len > RK_CELL_INLINE) {
        uint64_t end = rk_ring_behind(rk_ring_place(o->at, len, o->ring_bytes), len);
        if (rk_unlikely(end > o->ring_limit)) {
            o->ring_limit = atomic_load_explicit(&o->box->drained, memory_order_acquire) +
                            o->ring_bytes;
            if (end > o->ring_limit)
                return false;
        }
    }
    return true;
}

/* Copy that the compiler turns into a few moves for the sizes that matter most. */
RK_INLINE void rk_copy_small(void *to, const void *from, uint32_t n)
{
    if (n == 8) {
        memcpy(to, from, 8);
    } else if (n >= 16) {
        memcpy(to, from, 16);
        memcpy((char *)to + n - 16, (const char *)from + n - 16, 16);
    } else if (n > 8) {
        memcpy(to, from, 8);
        memcpy((char *)to + n - 8, (const char *)from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy((char *)to + n - 4, (const char *)from + n - 4, 4);
    } else if (n) {
        ((char *)to)[0] = ((const char *)from)[0];
        ((char *)to)[n / 2] = ((const char *)from)[n / 2];
        ((char *)to)[n - 1] = ((const char *)from)[n - 1];
    }
}

/* Put a frame; there is room. The payload is in two pieces, the second may be empty. */
RK_INLINE void rk_box_put(struct rk_box_out *o, const struct rk_hdr *hdr, const void *first,
                          uint32_t first_len, const void *second)
{
    struct rk_cell *c = &o->box->cells[o->next & o->mask];
    uint32_t rest = hdr->len - first_len;

    if (rk_likely(hdr->len <= RK_CELL_INLINE)) {
        rk_copy_small(c->payload, first, first_len);
        if (second && rest)
            rk_copy_small(c->payload + first_len, second, rest);
    } else {
        uint64_t place = rk_ring_place(o->at, hdr->len, o->ring_bytes);
        char *to = o->ring + (place & (o->ring_bytes - 1));
        memcpy(to, first, first_len);
        if (second && rest)
            memcpy(to + first_len, second, rest);
        o->at = rk_ring_behind(place, hdr->len);
    }
    memcpy((char *)&c->hdr + 4, (const char *)hdr + 4, sizeof(*hdr) - 4);
    o->next++;
    atomic_store_explicit((_Atomic uint32_t *)&c->hdr.turn, o->next, memory_order_release);
}

/* Has the next frame come? */
RK_INLINE bool rk_box_ready(const struct rk_box_in *in)
{
    return atomic_load_explicit((_Atomic uint32_t *)&in->cell->hdr.turn, memory_order_acquire) ==
           in->next + 1;
}

/*
 * The payload of the frame that has come, and how far the byte ring is behind
 * it. NULL for a length that no sender of ours would write: the peer's memory
 * is broken.
 */
RK_INLINE const void *rk_box_payload(const struct rk_box_in *in, uint32_t frame_max,
                                     uint64_t *behind)
{
    uint32_t len = in->cell->hdr.len;
    uint64_t place;

    *behind = in->at;
    if (rk_likely(len <= RK_CELL_INLINE))
        return in->cell->payload;
    if (len > frame_max)
        return NULL;
    place = rk_ring_place(in->at, len, in->ring_bytes);
    *behind = rk_ring_behind(place, len);
    return in->ring + (place & (in->ring_bytes - 1));
}

/* Give the frame's room back. */
RK_INLINE void rk_box_take(struct rk_box_in *in, uint64_t behind)
{
    in->next++;
    in->cell = &in->box->cells[in->next & in->mask];
    atomic_store_explicit(&in->box->taken, in->next, memory_order_release);
    if (behind != in->at) {
        in->at = behind;
        atomic_store_explicit(&in->box->drained, behind, memory_order_release);
    }
}

#endif
