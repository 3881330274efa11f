/* SPDX-License-Identifier: BSD-3-Clause */
/* fifo.c: lay out the memory of a fifo. */
#include "lib/channel/shm/fifo.h"
#include "lib/channel/shm/split_copy.h"

static uint32_t power_of_two_within(size_t n)
{
    uint32_t p = 1;

    while ((size_t)p * 2 <= n)
        p *= 2;
    return p;
}

/*
 * Header and slots fill the first pages; the byte ring is the largest power of two behind them. A frame is at most
 * a quarter of the ring, so that a sender soon finds room.
 */
struct rk_fifo_shape rk_fifo_shape(size_t bytes)
{
    struct rk_fifo_shape s;
    size_t front = sizeof(struct rk_fifo), cells_bytes;

    s.bytes = bytes;
    cells_bytes = bytes / 8 < 4096 ? 4096 : bytes / 8;
    s.cells = power_of_two_within((cells_bytes - front) / RK_CELL_BYTES);
    if (s.cells > RK_SPLIT_REQUESTS_MAX)
        s.cells = RK_SPLIT_REQUESTS_MAX;
    s.ring_at = rk_round_up(front + (size_t)s.cells * RK_CELL_BYTES, 4096);
    s.ring = power_of_two_within(bytes - s.ring_at);
    s.shallow = s.ring;
    s.frame = s.ring / 4;
    return s;
}

void rk_fifo_shape_deepen(struct rk_fifo_shape *s, uint32_t ring)
{
    if (ring <= s->ring)
        return;
    s->shallow = s->ring;
    s->ring = power_of_two_within(ring);
    s->bytes = s->ring_at + s->ring;
}

void rk_fifo_out_init(struct rk_fifo_out *o, void *mem, const struct rk_fifo_shape *shape)
{
    o->box = mem;
    o->ring = (char *)mem + shape->ring_at;
    o->mask = shape->cells - 1;
    o->next = 0;
    o->slot = RK_SLOTS;
    o->limit = shape->cells;
    o->messages = 0;
    o->at = 0;
    o->ring_limit = 0; /* until the ring is backed: see shm.c */
    o->ring_bytes = shape->ring;
    o->used = shape->shallow;
    o->nt_from = UINT32_MAX;
    o->opposite = NULL;
    memset(o->binds, 0, sizeof(o->binds));
}

void rk_fifo_in_init(struct rk_fifo_in *in, void *mem, const struct rk_fifo_shape *shape)
{
    in->box = mem;
    in->ring = (char *)mem + shape->ring_at;
    in->mask = shape->cells - 1;
    in->next = 0;
    in->slot = in->span = 0;
    in->head = in->messages = 0;
    in->cell = &in->box->cells[0];
    in->at = in->reported = 0;
    in->ring_bytes = shape->ring;
    memset(in->binds, 0, sizeof(in->binds));
}
