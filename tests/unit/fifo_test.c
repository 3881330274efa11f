/* SPDX-License-Identifier: BSD-3-Clause */
/* fifo_test.c: run a fifo in one process and two: full, wrapping round, deeper. */
#include "tests/unit/unit.h"

#include "lib/base/clock.h"
#include "lib/channel/shm/fifo.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

static const size_t box_sizes[] = {8192, 16384, 65536, 262144, 1000000, 4 << 20};
enum { SIZES = sizeof(box_sizes) / sizeof(box_sizes[0]) };

static void *shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static void shapes(void **state)
{
    (void)state;
    for (size_t bytes = 8192; bytes <= 64u << 20; bytes += bytes / 7) {
        struct rk_fifo_shape s = rk_fifo_shape(bytes);
        assert_true(s.cells >= 2 && (s.cells & (s.cells - 1)) == 0);
        assert_true(s.cells < 1 << 16); /* or two shared copies that are requested in it could have one generation */
        assert_true(s.ring >= 1024 && (s.ring & (s.ring - 1)) == 0);
        assert_true(sizeof(struct rk_fifo) + s.cells * sizeof(union rk_cell) <= s.ring_at);
        assert_true(s.ring_at + s.ring <= bytes);
        assert_int_equal(s.ring_at % 64, 0);
        assert_true(s.frame <= s.ring / 2); /* or a frame could wait for room for ever */
        assert_true(s.frame > RK_CELL_INLINE);
    }
}

static void copy_small(void **state)
{
    unsigned char from[64], to[98];

    (void)state;
    for (uint32_t n = 0; n <= 64; n++) {
        for (int i = 0; i < 64; i++)
            from[i] = (unsigned char)(i + 1);
        memset(to, 0xaa, sizeof(to));
        rk_copy_small(to + 1, from, n);
        assert_memory_equal(to + 1, from, n);
        assert_int_equal(to[0], 0xaa);
        for (uint32_t i = n + 1; i < 98; i++)
            assert_int_equal(to[i], 0xaa);
    }
}

/* Lengths that make trouble: none, compact in one slot to four, in a cell or not, whole frames. */
static uint32_t length(uint64_t i, uint32_t frame)
{
    static const uint32_t l[] = {0, 1, 8, 8, 9, 24, 25, 31, 32, 33, 40, 41, 56, 57, 63, 64, 65, 100};
    uint64_t k = i * 2654435761u % 23;

    return k < 18 ? l[k] : k == 18 ? frame : k == 19 ? frame - 1 : k < 22 ? 8 : (uint32_t)(i * 7919 % frame);
}

/* Most are messages of one team; more teams than there are bindings, tags that fit in no compact frame, other kinds. */
static struct rk_hdr header(uint64_t i, uint32_t frame)
{
    struct rk_hdr h = {.kind = RK_KIND_MSG, .len = length(i, frame), .tag = i, .team = 7, .src = 42, .epoch = 3};

    switch (i * 40503 % 17) {
    case 0:
        h.team = i * 0x9e3779b97f4a7c15ull;
        break;
    case 1:
        h.team = i % 5;
        h.src = (uint32_t)(i % 3);
        break;
    case 2:
        h.tag = ~i;
        break;
    case 3:
        h.tag = RK_COMPACT_TAG_MAX - i % 2;
        break;
    case 4:
        h.kind = RK_KIND_CREDIT;
        break;
    case 5:
        h.flags = 1;
        break;
    case 6:
        h.epoch = (uint16_t)i;
        break;
    default:
        break;
    }
    return h;
}

static void fill(unsigned char *p, uint32_t n, uint64_t key)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = (unsigned char)(key * 31 + i + (i >> 8));
}

static bool put(struct rk_fifo_out *o, uint64_t i, uint32_t frame, unsigned char *buf)
{
    struct rk_hdr h = header(i, frame);
    uint32_t first = (uint32_t)(i % 5 ? h.len : i % 2 ? 0 : h.len / 2);

    fill(buf, h.len, i);
    return rk_fifo_put(o, &h, buf, first, buf + first);
}

/* 0 if the frame that has come is the i-th. */
static int take(struct rk_fifo_in *in, uint64_t i, uint32_t frame, unsigned char *buf)
{
    struct rk_hdr h, want = header(i, frame);
    uint64_t behind;
    const void *p = rk_fifo_read(in, frame, &h, &behind);

    if (!p || h.tag != want.tag || h.team != want.team || h.src != want.src || h.kind != want.kind ||
        h.flags != want.flags || h.epoch != want.epoch || h.len != want.len)
        return 1;
    fill(buf, h.len, i);
    if (memcmp(buf, p, h.len) != 0)
        return 2;
    rk_fifo_consume(in, behind);
    return 0;
}

/* Fill it to the brim, drain it, again and again: no frame lost, none before its time. */
static void brim(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++) {
        struct rk_fifo_shape s = rk_fifo_shape(box_sizes[k]);
        void *mem = shared(s.bytes);
        unsigned char *buf = malloc(s.frame);
        struct rk_fifo_out o;
        struct rk_fifo_in in;
        uint64_t sent = 0, got = 0;

        rk_fifo_out_init(&o, mem, &s);
        rk_fifo_in_init(&in, mem, &s);
        assert_false(rk_fifo_ready(&in));
        for (int round = 0; round < 300; round++) {
            uint64_t at = sent;
            while (put(&o, sent, s.frame, buf))
                sent++;
            assert_true(sent - at >= 1);
            assert_true(sent - got <= s.cells * (uint64_t)RK_SLOTS);
            /* drain a part, so that the next round begins anywhere */
            for (uint64_t left = round % 3 ? (sent - got) / 2 + 1 : sent - got; left > 0; left--) {
                assert_true(rk_fifo_ready(&in));
                assert_int_equal(take(&in, got, s.frame, buf), 0);
                got++;
            }
        }
        while (got < sent) {
            assert_true(rk_fifo_ready(&in));
            assert_int_equal(take(&in, got, s.frame, buf), 0);
            got++;
        }
        assert_false(rk_fifo_ready(&in));
        free(buf);
        munmap(mem, s.bytes);
    }
}

/* An empty fifo takes a whole frame wherever it stands: no place where a sender waits for ever. */
static void always_room_when_empty(void **state)
{
    struct rk_fifo_shape s = rk_fifo_shape(16384);
    void *mem = shared(s.bytes);
    unsigned char *buf = calloc(1, s.frame);
    struct rk_fifo_out o;
    struct rk_fifo_in in;

    (void)state;
    rk_fifo_out_init(&o, mem, &s);
    rk_fifo_in_init(&in, mem, &s);
    for (uint32_t step = 33; step <= s.frame; step += 61) {
        uint32_t lens[2] = {step, s.frame};
        for (int i = 0; i < 2; i++) {
            struct rk_hdr h = {.kind = 1, .len = lens[i]};
            uint64_t behind;
            assert_true(rk_fifo_put(&o, &h, buf, h.len, NULL));
            assert_true(rk_fifo_ready(&in));
            assert_non_null(rk_fifo_read(&in, s.frame, &h, &behind));
            rk_fifo_consume(&in, behind);
        }
    }
    free(buf);
    munmap(mem, s.bytes);
}

/* Small messages of one team share cells: four of 8 bytes move one line. */
static void compact(void **state)
{
    struct rk_fifo_shape s = rk_fifo_shape(16384);
    void *mem = shared(s.bytes);
    struct rk_hdr h = {.kind = RK_KIND_MSG, .len = 8, .team = 1ull << 63, .src = 5};
    unsigned char data[64] = {0};
    struct rk_fifo_out o;
    struct rk_fifo_in in;
    uint64_t behind;

    (void)state;
    rk_fifo_out_init(&o, mem, &s);
    rk_fifo_in_init(&in, mem, &s);
    for (h.tag = 0; h.tag < 9; h.tag++) {
        memcpy(data, &h.tag, sizeof(h.tag));
        assert_true(rk_fifo_put(&o, &h, data, 8, NULL));
    }
    assert_int_equal(o.next, 3); /* one full frame, that binds, and twice four */
    for (uint64_t tag = 0; tag < 9; tag++) {
        struct rk_hdr got;
        const void *p;
        assert_true(rk_fifo_ready(&in));
        p = rk_fifo_read(&in, s.frame, &got, &behind);
        assert_non_null(p);
        assert_int_equal(got.tag, tag);
        assert_memory_equal(p, &tag, 8);
        rk_fifo_consume(&in, behind);
    }
    assert_false(rk_fifo_ready(&in));
    munmap(mem, s.bytes);
}

static void write_head(struct rk_fifo_in *in, uint32_t form, uint32_t bind)
{
    atomic_store(&in->cell->slot[in->slot].head, rk_fifo_lap(in->next, in->mask) | form << 8 | bind << 16);
    assert_true(rk_fifo_ready(in));
}

/* What no sender would write is recognized, not followed. */
static void broken(void **state)
{
    struct rk_fifo_shape s = rk_fifo_shape(16384);
    void *mem = shared(s.bytes);
    struct rk_fifo_out o;
    struct rk_fifo_in in;
    struct rk_hdr h = {.kind = RK_KIND_MSG, .len = 4, .team = 1}, got;
    unsigned char data[64] = "abcd";
    uint64_t behind;

    (void)state;
    rk_fifo_out_init(&o, mem, &s);
    rk_fifo_in_init(&in, mem, &s);
    assert_true(rk_fifo_put(&o, &h, data, 4, NULL));
    in.cell->full.hdr.len = s.frame + 1;
    assert_true(rk_fifo_ready(&in));
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind));
    in.cell->full.hdr.len = UINT32_MAX;
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind));
    in.cell->full.hdr.len = 60;
    in.cell->ring.at.place = s.ring - 32;
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind)); /* over the ring's end */
    in.cell->ring.at.place = s.ring;
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind)); /* further than it can be */
    rk_fifo_consume(&in, behind); /* the next one is read all the same */
    assert_false(rk_fifo_ready(&in));

    write_head(&in, RK_FORM_COMPACT | 57, rk_bind_index(1));
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind)); /* too long */
    write_head(&in, RK_FORM_COMPACT | 8, rk_bind_index(1) ^ 1);
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind)); /* bound to nothing */
    write_head(&in, 7, 0);
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind)); /* no such form */
    write_head(&in, RK_FORM_COMPACT | 8, rk_bind_index(1));
    assert_non_null(rk_fifo_read(&in, s.frame, &got, &behind));
    rk_fifo_consume(&in, behind);
    write_head(&in, RK_FORM_COMPACT | 56, rk_bind_index(1));
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind)); /* reaches out of the cell */
    write_head(&in, RK_FORM_FULL, 0);
    assert_null(rk_fifo_read(&in, s.frame, &got, &behind)); /* begins in the middle */
    munmap(mem, s.bytes);
}

/* A ring that is deeper than the used part: the rest is not touched until its producer uses more; the consumer needs no notice
 * of that. */
static void deepens(void **state)
{
    struct rk_fifo_shape s = rk_fifo_shape(16384), deep = s;
    uint64_t sent = 0, got = 0, random = 1;
    unsigned char *buf = malloc(s.frame);
    uint32_t most = 0;
    struct rk_fifo_out o;
    struct rk_fifo_in in;
    const char *ring;
    void *mem;

    (void)state;
    rk_fifo_shape_deepen(&deep, 4096); /* it is that deep */
    assert_int_equal(deep.ring, s.ring);
    rk_fifo_shape_deepen(&deep, 65536);
    assert_int_equal(deep.ring, 65536);
    assert_int_equal(deep.shallow, s.ring);
    assert_int_equal(deep.frame, s.frame);
    mem = shared(deep.bytes);
    ring = (const char *)mem + deep.ring_at;
    rk_fifo_out_init(&o, mem, &deep);
    rk_fifo_in_init(&in, mem, &deep);
    for (int round = 0; round < 4000; round++) {
        while (put(&o, sent, s.frame, buf))
            sent++;
        if (sent - got > most)
            most = (uint32_t)(sent - got);
        assert_true(sent > got);
        for (uint32_t i = o.used; i < deep.ring; i += 64)
            assert_int_equal(ring[i], 0);
        if (round % 1000 == 999 && o.used < deep.ring)
            o.used *= 2;
        random = random * 6364136223846793005u + 1442695040888963407u;
        for (uint64_t n = 1 + (random >> 33) % (sent - got); n > 0; n--, got++) {
            assert_true(rk_fifo_ready(&in));
            assert_int_equal(take(&in, got, s.frame, buf), 0);
        }
    }
    assert_int_equal(o.used, deep.ring);
    assert_true(sent > 4000 && most > 4);
    for (; got < sent; got++) {
        assert_true(rk_fifo_ready(&in));
        assert_int_equal(take(&in, got, s.frame, buf), 0);
    }
    assert_false(rk_fifo_ready(&in));
    free(buf);
    munmap(mem, deep.bytes);
}

/* Where each reports to the other how far it is, both begin anew; in bursts of any length nothing is lost. */
static void answers(void **state)
{
    struct rk_fifo_shape s = rk_fifo_shape(65536);
    void *mem[2] = {shared(s.bytes), shared(s.bytes)};
    unsigned char *buf = malloc(s.frame);
    struct rk_fifo_out o[2];
    struct rk_fifo_in in[2]; /* in[k] is what o[1 - k] puts */
    uint64_t sent[2] = {0, 0}, got[2] = {0, 0};
    struct rk_hdr h = {.kind = RK_KIND_MSG, .len = 1000, .team = 1};
    const void *first = NULL, *p;
    uint64_t behind;

    (void)state;
    for (int k = 0; k < 2; k++) {
        rk_fifo_out_init(&o[k], mem[k], &s);
        rk_fifo_in_init(&in[1 - k], mem[k], &s);
        o[k].opposite = &in[k];
    }
    for (int round = 0; round < 3000; round++) {
        int k = round % 2;

        for (int n = 1 + round % 7 * (round % 5); n > 0 && put(&o[k], sent[k], s.frame, buf); n--)
            sent[k]++;
        /* some stay behind, now and then */
        for (uint64_t left = sent[k] - got[k] - (round % 11 == 0 && sent[k] > got[k]); left > 0; left--) {
            assert_true(rk_fifo_ready(&in[1 - k]));
            assert_int_equal(take(&in[1 - k], got[k], s.frame, buf), 0);
            got[k]++;
        }
    }
    for (int k = 0; k < 2; k++) {
        for (; got[k] < sent[k]; got[k]++) {
            assert_true(rk_fifo_ready(&in[1 - k]));
            assert_int_equal(take(&in[1 - k], got[k], s.frame, buf), 0);
        }
        assert_false(rk_fifo_ready(&in[1 - k]));
    }
    /* Ping and pong: the same lines each time. */
    for (int i = 0; i < 20; i++) {
        assert_true(rk_fifo_put(&o[i % 2], &h, buf, h.len, NULL));
        assert_true(rk_fifo_ready(&in[1 - i % 2]));
        p = rk_fifo_read(&in[1 - i % 2], s.frame, &h, &behind);
        assert_non_null(p);
        rk_fifo_consume(&in[1 - i % 2], behind);
        if (i % 2 == 0 && i >= 2) {
            if (!first)
                first = p;
            assert_ptr_equal(p, first);
        }
    }
    free(buf);
    munmap(mem[0], s.bytes);
    munmap(mem[1], s.bytes);
}

/* The counters run over 2^32: the laps go on in turn. */
static void counter_wraps(void **state)
{
    struct rk_fifo_shape s = rk_fifo_shape(16384);
    void *mem = shared(s.bytes);
    unsigned char *buf = malloc(s.frame);
    struct rk_fifo_out o;
    struct rk_fifo_in in;
    uint64_t sent = 0, got = 0;
    uint32_t start = UINT32_MAX - 3 * s.cells + 1; /* a multiple of cells, as ever */

    (void)state;
    rk_fifo_out_init(&o, mem, &s);
    rk_fifo_in_init(&in, mem, &s);
    o.next = in.next = start;
    o.limit = start + s.cells;
    atomic_store(&o.box->taken, start);
    for (uint32_t i = 0; i < s.cells; i++) /* what the round before left */
        atomic_store(&o.box->cells[i].slot[0].head, rk_fifo_lap(start - s.cells, o.mask));
    in.cell = &in.box->cells[start & in.mask];
    while (got < 10 * s.cells) {
        while (put(&o, sent, s.frame, buf))
            sent++;
        while (rk_fifo_ready(&in)) {
            assert_int_equal(take(&in, got, s.frame, buf), 0);
            got++;
        }
        assert_int_equal(got, sent);
    }
    free(buf);
    munmap(mem, s.bytes);
}

struct pair {
    struct rk_fifo_shape s;
    void *mem;
    uint64_t n;
};

static int producer(void *arg)
{
    struct pair *p = arg;
    unsigned char *buf = malloc(p->s.frame);
    struct rk_fifo_out o;

    rk_fifo_out_init(&o, p->mem, &p->s);
    for (uint64_t i = 0; i < p->n;) {
        if (put(&o, i, p->s.frame, buf))
            i++;
        else
            sched_yield();
    }
    free(buf);
    return 0;
}

/* Two processes at full speed, fifos small and large. */
static void two_processes(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++) {
        struct pair p = {.s = rk_fifo_shape(box_sizes[k]), .n = 40000};
        unsigned char *buf;
        struct rk_fifo_in in;
        uint64_t got = 0, deadline;
        pid_t child;
        int bad = 0;

        if (p.s.frame > 20000)
            p.n = 4000;
        p.mem = shared(p.s.bytes);
        buf = malloc(p.s.frame);
        child = unit_spawn(producer, &p);
        rk_fifo_in_init(&in, p.mem, &p.s);
        deadline = rk_clock_ns() + 60000000000u;
        while (got < p.n && !bad && rk_clock_ns() < deadline) {
            if (!rk_fifo_ready(&in)) {
                sched_yield();
                continue;
            }
            bad = take(&in, got, p.s.frame, buf);
            got += !bad;
        }
        if (got < p.n)
            kill(child, SIGKILL);
        assert_int_equal(unit_reap(child), 0);
        assert_int_equal(bad, 0);
        assert_int_equal(got, p.n);
        free(buf);
        munmap(p.mem, p.s.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),        cmocka_unit_test(copy_small),
        cmocka_unit_test(brim),          cmocka_unit_test(always_room_when_empty),
        cmocka_unit_test(compact),       cmocka_unit_test(broken),
        cmocka_unit_test(answers),
        cmocka_unit_test(deepens),
        cmocka_unit_test(counter_wraps), cmocka_unit_test(two_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
