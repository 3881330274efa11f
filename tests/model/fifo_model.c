/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fifo_model.c: run a fifo of the shm channel in every order of its accesses.
 *
 * The code itself (lib/channel/shm/fifo.h):
 * frames of all forms through a ring of two cells, several laps; with and without a consumer that reports, in frames of
 * its own, how far it is, and where the ring of bytes gets deeper while frames are in it. And the search is checked:
 * it has to find a fifo with a producer that does not wait for room, begins anew where the consumer still reads, or takes
 * a deeper ring for an empty one.
 */
#define MODEL_REDIRECT
#include "lib/base/compiler.h"
#include "tests/model/model.h"

#include "lib/channel/shm/fifo.h"

enum { CELLS = 2, RING = 512 };

static _Alignas(64) struct {
    unsigned char box[sizeof(struct rk_fifo) + CELLS * sizeof(union rk_cell) + RING];
    _Atomic uint64_t reported; /* in the place of the frames of the opposite fifo */
} memory;
static const struct rk_fifo_shape shape = {.bytes = sizeof(memory.box), .cells = CELLS, .ring = RING, .shallow = RING,
                                          .ring_at = sizeof(struct rk_fifo) + CELLS * sizeof(union rk_cell),
                                          .frame = RING / 4};
/* Of four lines, and then eight. */
static const struct rk_fifo_shape growing = {.bytes = sizeof(memory.box), .cells = CELLS, .ring = RING, .shallow = RING / 2,
                                            .ring_at = sizeof(struct rk_fifo) + CELLS * sizeof(union rk_cell),
                                            .frame = RING / 4};

/* Each is a sequence of lengths; those of 200 and more are of another kind, which fills a cell; 100: of another team. */
static const uint32_t sequences[][7] = {
    {8, 8, 8, 8, 8, 8, 8},
    {0, 56, 8, 24, 8, 40, 8},
    {8, 8, 200, 8, 200, 8, 8},
    {24, 60, 8, 100, 8, 61, 8},
    {32, 200, 33, 8, 56, 8, 208},
    {100, 8, 100, 56, 56, 24, 24},
    {233, 234, 0, 0, 235, 0, 0},
    {233, 266, 266, 8, 233, 266, 266},
};
/* The last is for a ring that gets deeper. */
enum { SEQUENCES = sizeof(sequences) / sizeof(sequences[0]), PERIOD = 7 };

static int sequence, frames = 12;
static const struct rk_fifo_shape *used = &shape;
static int deeper_from; /* the frame from which on a ring that is full gets deeper */
static bool impatient, telling, rash, greedy;

static struct rk_hdr header(int i)
{
    uint32_t len = sequences[sequence][i % PERIOD];
    struct rk_hdr h = {.kind = RK_KIND_MSG, .src = 1, .team = 5, .tag = (uint64_t)i, .len = len};

    if (len >= 200) {
        h.kind = RK_KIND_CREDIT;
        h.len = len - 200;
    } else if (len == 100) {
        h.team = 5 + (1ull << 61); /* and perhaps of the same binding */
        h.len = 8;
    }
    return h;
}

/* Every byte of it equals the flag of either lap. */
static void fill(unsigned char *p, int i, uint32_t n)
{
    memset(p, 1 + i % 2, n);
    if (n)
        p[n / 2] = (unsigned char)(i + 3);
}

/* As found_full in shm.c does, each time. */
static bool gets_deeper(struct rk_fifo_out *o, int i, uint32_t len)
{
    if (i < deeper_from || len <= RK_CELL_INLINE || o->used == o->ring_bytes || !rk_fifo_cell_room(o))
        return false;
    o->used *= 2;
    if (greedy) {
        o->at = (o->at + o->ring_bytes - 1) & ~(uint64_t)(o->ring_bytes - 1);
        o->ring_limit = o->at + o->ring_bytes;
    }
    return true;
}

static void produce(void)
{
    struct rk_fifo_out o;
    struct rk_fifo_in opposite = {.reported = 0};
    unsigned char data[128];

    rk_fifo_out_init(&o, memory.box, used);
    if (telling)
        o.opposite = &opposite;
    for (int i = 0; i < frames; i++) {
        struct rk_hdr h = header(i);
        fill(data, i, h.len);
        if (impatient)
            o.limit = o.next + 1;
        for (;;) {
            model_here((uint64_t)i << 32 | o.next, (uint64_t)o.limit << 48 | (uint64_t)o.used << 36 | (uint64_t)o.slot << 32 | opposite.reported,
                       o.at << 32 | o.ring_limit);
            if (telling)
                opposite.reported = rash ? o.at : atomic_load_explicit(&memory.reported, memory_order_acquire);
            if (rk_fifo_put(&o, &h, data, h.len, NULL))
                break;
            if (!gets_deeper(&o, i, h.len))
                model_block();
        }
    }
}

static void consume(void)
{
    struct rk_fifo_in in;
    unsigned char data[128];

    rk_fifo_in_init(&in, memory.box, used);
    for (int i = 0; i < frames; i++) {
        struct rk_hdr want = header(i), got;
        uint64_t behind;
        const void *p;

        for (;;) {
            model_here((uint64_t)i << 32 | in.next, in.slot, in.at);
            if (rk_fifo_ready(&in))
                break;
            model_block();
        }
        p = rk_fifo_read(&in, used->frame, &got, &behind);
        fill(data, i, want.len);
        model_expect(p && got.kind == want.kind && got.len == want.len && got.tag == want.tag &&
                         got.team == want.team && got.src == want.src && memcmp(p, data, want.len) == 0,
                     "another frame than was put");
        if (!p)
            return;
        rk_fifo_consume(&in, behind);
        if (telling)
            atomic_store_explicit(&memory.reported, in.at, memory_order_release);
    }
    model_expect(!rk_fifo_ready(&in), "a frame that was not put");
}

static void one(int which)
{
    if (which == 0)
        produce();
    else
        consume();
}

static void begin(void)
{
    memset(&memory, 0, sizeof(memory));
}

int main(void)
{
    struct model m = {.name = "a sequence of frames", .threads = 2, .thread = one, .begin = begin,
                      .memory = &memory, .bytes = sizeof(memory)};
    int failed = 0;

    for (sequence = 0; sequence < SEQUENCES - 1; sequence++)
        failed += model_check(&m, false);
    m.name = "a ring that gets deeper";
    used = &growing;
    frames = 6;
    for (deeper_from = 0; deeper_from < frames; deeper_from += 3)
        failed += model_check(&m, false);
    m.name = "a ring that gets deeper and counts as empty";
    greedy = true;
    deeper_from = 0;
    failed += model_check(&m, true);
    greedy = false;
    used = &shape;
    m.name = "the same, and the consumer reports how far it is";
    telling = true;
    frames = 9;
    for (sequence = 3; sequence < SEQUENCES - 1; sequence += sequence == 3 ? 3 : 1)
        failed += model_check(&m, false);
    m.name = "a producer that begins anew before it may";
    rash = true;
    sequence = SEQUENCES - 2;
    failed += model_check(&m, true);
    telling = rash = false;
    frames = 12;
    m.name = "a producer that does not wait for room";
    impatient = true;
    sequence = 0;
    failed += model_check(&m, true);
    return failed != 0;
}
