/* box_test.c: a box of the shm channel: one process, two processes, full, wrapping round. */
#include "tests/unit/unit.h"

#include "lib/base/clock.h"
#include "lib/channel/shm/box.h"

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
        struct rk_box_shape s = rk_box_shape(bytes);
        assert_true(s.cells >= 2 && (s.cells & (s.cells - 1)) == 0);
        assert_true(s.ring >= 1024 && (s.ring & (s.ring - 1)) == 0);
        assert_true(sizeof(struct rk_box) + s.cells * sizeof(struct rk_cell) <= s.ring_at);
        assert_true(s.ring_at + s.ring <= bytes);
        assert_int_equal(s.ring_at % 64, 0);
        assert_true(s.frame <= s.ring / 2); /* or a frame could wait for room for ever */
        assert_true(s.frame > RK_CELL_INLINE);
    }
}

static void copy_small(void **state)
{
    unsigned char from[64], to[66];

    (void)state;
    for (uint32_t n = 0; n <= RK_CELL_INLINE; n++) {
        for (int i = 0; i < 64; i++)
            from[i] = (unsigned char)(i + 1);
        memset(to, 0xaa, sizeof(to));
        rk_copy_small(to + 1, from, n);
        assert_memory_equal(to + 1, from, n);
        assert_int_equal(to[0], 0xaa);
        for (uint32_t i = n + 1; i < 66; i++)
            assert_int_equal(to[i], 0xaa);
    }
}

/* Lengths that make trouble: none, inline or not, whole frames. */
static uint32_t length(uint64_t i, uint32_t frame)
{
    static const uint32_t l[] = {0, 1, 8, 31, 32, 33, 63, 64, 65, 100};
    uint64_t k = i * 2654435761u % 13;

    return k < 10 ? l[k] : k == 10 ? frame : k == 11 ? frame - 1 : (uint32_t)(i * 7919 % frame);
}

static void fill(unsigned char *p, uint32_t n, uint64_t key)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = (unsigned char)(key * 31 + i + (i >> 8));
}

static bool put(struct rk_box_out *o, uint64_t i, uint32_t frame, unsigned char *buf)
{
    struct rk_hdr h = {.kind = 1, .len = length(i, frame), .tag = i, .team = ~i, .src = 42};
    uint32_t first = (uint32_t)(i % 3 == 0 ? h.len : i % 3 == 1 ? 0 : h.len / 2);

    if (h.len <= RK_CELL_INLINE && first > RK_CELL_INLINE)
        first = 0;
    if (!rk_box_room(o, h.len))
        return false;
    fill(buf, h.len, i);
    rk_box_put(o, &h, buf, first, buf + first);
    return true;
}

/* 0 if the frame that has come is the i-th. */
static int take(struct rk_box_in *in, uint64_t i, uint32_t frame, unsigned char *buf)
{
    struct rk_hdr h = in->cell->hdr;
    uint64_t behind;
    const void *p = rk_box_payload(in, frame, &behind);

    if (!p || h.tag != i || h.team != ~i || h.src != 42 || h.kind != 1 || h.len != length(i, frame))
        return 1;
    fill(buf, h.len, i);
    if (memcmp(buf, p, h.len) != 0)
        return 2;
    rk_box_take(in, behind);
    return 0;
}

/* Fill it to the brim, drain it, again and again: no frame lost, none before its time. */
static void brim(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++) {
        struct rk_box_shape s = rk_box_shape(box_sizes[k]);
        void *mem = shared(s.bytes);
        unsigned char *buf = malloc(s.frame);
        struct rk_box_out o;
        struct rk_box_in in;
        uint64_t sent = 0, got = 0;

        rk_box_out_init(&o, mem, &s);
        rk_box_in_init(&in, mem, &s);
        assert_false(rk_box_ready(&in));
        for (int round = 0; round < 300; round++) {
            uint64_t at = sent;
            while (put(&o, sent, s.frame, buf))
                sent++;
            assert_true(sent - at >= 1);
            assert_true(sent - got <= s.cells);
            /* drain a part, so that the next round begins anywhere */
            for (uint64_t left = round % 3 ? (sent - got) / 2 + 1 : sent - got; left > 0; left--) {
                assert_true(rk_box_ready(&in));
                assert_int_equal(take(&in, got, s.frame, buf), 0);
                got++;
            }
        }
        while (got < sent) {
            assert_true(rk_box_ready(&in));
            assert_int_equal(take(&in, got, s.frame, buf), 0);
            got++;
        }
        assert_false(rk_box_ready(&in));
        free(buf);
        munmap(mem, s.bytes);
    }
}

/* An empty box takes a whole frame wherever it stands: no place where a sender waits for ever. */
static void always_room_when_empty(void **state)
{
    struct rk_box_shape s = rk_box_shape(16384);
    void *mem = shared(s.bytes);
    unsigned char *buf = calloc(1, s.frame);
    struct rk_box_out o;
    struct rk_box_in in;

    (void)state;
    rk_box_out_init(&o, mem, &s);
    rk_box_in_init(&in, mem, &s);
    for (uint32_t step = 33; step <= s.frame; step += 61) {
        uint32_t lens[2] = {step, s.frame};
        for (int i = 0; i < 2; i++) {
            struct rk_hdr h = {.kind = 1, .len = lens[i]};
            uint64_t behind;
            assert_true(rk_box_room(&o, h.len));
            rk_box_put(&o, &h, buf, h.len, NULL);
            assert_true(rk_box_ready(&in));
            assert_non_null(rk_box_payload(&in, s.frame, &behind));
            rk_box_take(&in, behind);
        }
    }
    free(buf);
    munmap(mem, s.bytes);
}

/* A length that no sender would write is told apart, not followed. */
static void broken_length(void **state)
{
    struct rk_box_shape s = rk_box_shape(16384);
    void *mem = shared(s.bytes);
    struct rk_box_out o;
    struct rk_box_in in;
    struct rk_hdr h = {.kind = 1, .len = 4};
    uint64_t behind;

    (void)state;
    rk_box_out_init(&o, mem, &s);
    rk_box_in_init(&in, mem, &s);
    rk_box_put(&o, &h, "abcd", 4, NULL);
    in.cell->hdr.len = s.frame + 1;
    assert_null(rk_box_payload(&in, s.frame, &behind));
    in.cell->hdr.len = UINT32_MAX;
    assert_null(rk_box_payload(&in, s.frame, &behind));
    munmap(mem, s.bytes);
}

/* The counters run over 2^32: the flag of a cell is its number for ever, modulo that. */
static void counter_wraps(void **state)
{
    struct rk_box_shape s = rk_box_shape(16384);
    void *mem = shared(s.bytes);
    unsigned char *buf = malloc(s.frame);
    struct rk_box_out o;
    struct rk_box_in in;
    uint64_t sent = 0, got = 0;
    uint32_t start = UINT32_MAX - 3 * s.cells + 1; /* a multiple of cells, as ever */

    (void)state;
    rk_box_out_init(&o, mem, &s);
    rk_box_in_init(&in, mem, &s);
    o.next = in.next = start;
    o.limit = start + s.cells;
    atomic_store(&o.box->taken, start);
    for (uint32_t i = 0; i < s.cells; i++) /* what the round before left */
        o.box->cells[i].hdr.turn = start - s.cells + i + 1;
    in.cell = &in.box->cells[start & in.mask];
    while (got < 10 * s.cells) {
        while (put(&o, sent, s.frame, buf))
            sent++;
        while (rk_box_ready(&in)) {
            assert_int_equal(take(&in, got, s.frame, buf), 0);
            got++;
        }
        assert_int_equal(got, sent);
    }
    free(buf);
    munmap(mem, s.bytes);
}

struct pair {
    struct rk_box_shape s;
    void *mem;
    uint64_t n;
};

static int producer(void *arg)
{
    struct pair *p = arg;
    unsigned char *buf = malloc(p->s.frame);
    struct rk_box_out o;

    rk_box_out_init(&o, p->mem, &p->s);
    for (uint64_t i = 0; i < p->n;) {
        if (put(&o, i, p->s.frame, buf))
            i++;
        else
            sched_yield();
    }
    free(buf);
    return 0;
}

/* Two processes at full speed, boxes small and large. */
static void two_processes(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++) {
        struct pair p = {.s = rk_box_shape(box_sizes[k]), .n = 40000};
        unsigned char *buf;
        struct rk_box_in in;
        uint64_t got = 0, deadline;
        pid_t child;
        int bad = 0;

        if (p.s.frame > 20000)
            p.n = 4000;
        p.mem = shared(p.s.bytes);
        buf = malloc(p.s.frame);
        child = unit_spawn(producer, &p);
        rk_box_in_init(&in, p.mem, &p.s);
        deadline = rk_clock_ns() + 60000000000u;
        while (got < p.n && !bad && rk_clock_ns() < deadline) {
            if (!rk_box_ready(&in)) {
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
        cmocka_unit_test(broken_length), cmocka_unit_test(counter_wraps),
        cmocka_unit_test(two_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
