/* SPDX-License-Identifier: BSD-3-Clause */
/* iov_test.c: compare views of lists of pieces with a plain model. */
#include "tests/unit/unit.h"

#include "lib/data/iov.h"
#include "lib/data/view_stage.h"

#include <stdlib.h>

static unsigned char memory[4096];

/* The addresses of a list's bytes, in order. */
static size_t model(const rank_iov_t *iov, int n, unsigned char **at)
{
    size_t k = 0;

    for (int i = 0; i < n; i++) {
        for (int64_t b = 0; b < (iov[i].count ? iov[i].count : 1); b++) {
            for (int64_t j = 0; j < iov[i].bytes; j++)
                at[k++] = (unsigned char *)iov[i].base + b * iov[i].stride + j;
        }
    }
    return k;
}

/* A list with everything in it. */
static int example(rank_iov_t *iov)
{
    iov[0] = (rank_iov_t){.base = NULL, .bytes = 0};
    iov[1] = (rank_iov_t){.base = memory + 100, .bytes = 5, .count = 1, .stride = INT64_MIN}; /* one block: any stride */
    iov[2] = (rank_iov_t){.base = memory + 200, .bytes = 3, .count = 7, .stride = 10};
    iov[3] = (rank_iov_t){.base = NULL, .bytes = 0, .count = 9, .stride = 3};
    iov[4] = (rank_iov_t){.base = memory + 1000, .bytes = 8, .count = 4, .stride = -20};
    iov[5] = (rank_iov_t){.base = memory + 1500, .bytes = 4, .count = 3, .stride = 4}; /* one piece */
    iov[6] = (rank_iov_t){.base = memory + 1512, .bytes = 6}; /* right behind it */
    return 7;
}

static void pack_and_unpack(void **state)
{
    unsigned char *at[256], flat[256];
    struct rk_pieces p;
    struct rk_view view;
    rank_iov_t iov[8];
    int n = example(iov);
    size_t bytes, total = model(iov, n, at);

    (void)state;
    assert_int_equal(rk_pieces_check(iov, n, true, &bytes), RANK_OK);
    assert_int_equal(bytes, total);
    view = rk_pieces_view(&p, iov, n, bytes);
    assert_ptr_equal(view.ops, &rk_pieces_ops);
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t off = total; off-- > 0;) { /* backwards: the place has to go back each time */
        for (size_t len = 0; off + len <= total; len++) {
            assert_int_equal(view.ops->pack(&view, off, flat, len), RANK_OK);
            for (size_t i = 0; i < len; i++)
                assert_int_equal(flat[i], *at[off + i]);
        }
    }
    for (size_t off = 0; off < total; off++) {
        for (size_t len = 0; off + len <= total; len++) {
            unsigned char before[sizeof(memory)];
            memcpy(before, memory, sizeof(memory));
            for (size_t i = 0; i < len; i++)
                flat[i] = (unsigned char)~*at[off + i];
            view.ops->unpack(&view, off, flat, len);
            for (size_t i = 0; i < len; i++) {
                assert_int_equal(*at[off + i], flat[i]);
                before[at[off + i] - memory] = flat[i];
            }
            assert_memory_equal(before, memory, sizeof(memory));
        }
    }
}

static void lists(void **state)
{
    unsigned char *at[256];
    struct rk_pieces p;
    struct rk_view view;
    rank_iov_t iov[8];
    struct iovec out[32];
    int n = example(iov);
    size_t total = model(iov, n, at);

    (void)state;
    view = rk_pieces_view(&p, iov, n, total);
    for (int max = 1; max < 20; max++) {
        for (size_t off = 0; off < total; off++) {
            for (size_t len = 1; off + len <= total; len += 3) {
                int k = rk_view_list(&view, off, len, out, max);
                size_t sum = 0;
                assert_in_range(k, 1, max);
                for (int i = 0; i < k; i++) {
                    for (size_t j = 0; j < out[i].iov_len; j++)
                        assert_ptr_equal((unsigned char *)out[i].iov_base + j, at[off + sum++]);
                    if (i)
                        assert_ptr_not_equal((char *)out[i - 1].iov_base + out[i - 1].iov_len,
                                             out[i].iov_base);
                }
                assert_true(sum <= len);
                assert_true(sum == len || k == max);
            }
        }
    }
}

/* What is in one piece becomes a plain view, which all the short ways take. */
static void plain(void **state)
{
    rank_iov_t one[3] = {{.base = NULL}, {.base = memory, .bytes = 8, .count = 1, .stride = 99}, {.base = NULL}};
    rank_iov_t dense = {.base = memory, .bytes = 8, .count = 5, .stride = 8};
    struct rk_pieces p;
    struct rk_view view = rk_pieces_view(&p, one, 3, 8);

    (void)state;
    assert_null(view.ops);
    assert_ptr_equal(view.base, memory);
    view = rk_pieces_view(&p, &dense, 1, 40);
    assert_null(view.ops);
    assert_int_equal(view.bytes, 40);
    view = rk_pieces_view(&p, NULL, 0, 0);
    assert_null(view.ops);
    assert_int_equal(view.bytes, 0);
}

static void copies(void **state)
{
    static unsigned char a[20000], b[20000], c[20000];
    rank_iov_t odd = {.base = a, .bytes = 3, .count = 5000, .stride = 4};
    rank_iov_t other[2] = {{.base = b + 7000, .bytes = 10000}, {.base = b, .bytes = 1000, .count = 5, .stride = 1001}};
    struct rk_pieces pa, pb;
    struct rk_view va = rk_pieces_view(&pa, &odd, 1, 15000), vb = rk_pieces_view(&pb, other, 2, 15000);
    struct rk_view flat = {c, 15000, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(a); i++)
        a[i] = (unsigned char)(i ^ i >> 7);
    assert_int_equal(rk_view_copy(&vb, &va, 15000), RANK_OK);
    assert_int_equal(rk_view_copy(&flat, &vb, 15000), RANK_OK);
    for (size_t i = 0; i < 15000; i++)
        assert_int_equal(c[i], a[i / 3 * 4 + i % 3]);
    memset(a, 0, sizeof(a));
    assert_int_equal(rk_view_copy(&va, &flat, 14999), RANK_OK);
    for (size_t i = 0; i < 14999; i++)
        assert_int_equal(c[i], a[i / 3 * 4 + i % 3]);
    assert_int_equal(a[4999 * 4 + 2], 0);
}

static void refused(void **state)
{
    const struct {
        rank_iov_t v;
        rank_status_t sent, received;
    } t[] = {
        {{.base = memory, .bytes = -1}, RANK_ERR_COUNT, RANK_ERR_COUNT},
        {{.base = memory, .bytes = 1, .count = -1}, RANK_ERR_COUNT, RANK_ERR_COUNT},
        {{.base = NULL, .bytes = 1}, RANK_ERR_ARG, RANK_ERR_ARG},
        {{.base = NULL, .bytes = 0, .count = INT64_MAX, .stride = INT64_MIN}, RANK_OK, RANK_OK},
        {{.base = memory, .bytes = INT64_MAX}, RANK_ERR_COUNT, RANK_ERR_COUNT},
        {{.base = memory, .bytes = 1 << 30, .count = 1ll << 40, .stride = 1 << 30}, RANK_ERR_COUNT, RANK_ERR_COUNT},
        {{.base = memory, .bytes = 1, .count = INT64_MAX, .stride = 2}, RANK_ERR_COUNT, RANK_ERR_COUNT},
        {{.base = memory, .bytes = 1, .count = 2, .stride = INT64_MAX}, RANK_ERR_COUNT, RANK_ERR_COUNT},
        {{.base = memory, .bytes = 1, .count = 2, .stride = INT64_MIN}, RANK_ERR_COUNT, RANK_ERR_COUNT},
        {{.base = memory, .bytes = 8, .count = 2, .stride = 7}, RANK_OK, RANK_ERR_ARG},
        {{.base = memory, .bytes = 8, .count = 2, .stride = -7}, RANK_OK, RANK_ERR_ARG},
        {{.base = memory, .bytes = 8, .count = 2, .stride = 0}, RANK_OK, RANK_ERR_ARG},
        {{.base = memory, .bytes = 8, .count = 1, .stride = 0}, RANK_OK, RANK_OK},
        {{.base = memory, .bytes = 8, .count = 2, .stride = 8}, RANK_OK, RANK_OK},
    };
    rank_iov_t two[2] = {{.base = memory, .bytes = INT64_MAX / 2}, {.base = memory, .bytes = INT64_MAX / 2}};
    size_t bytes;

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        assert_int_equal(rk_pieces_check(&t[i].v, 1, false, &bytes), t[i].sent);
        assert_int_equal(rk_pieces_check(&t[i].v, 1, true, &bytes), t[i].received);
    }
    assert_int_equal(rk_pieces_check(NULL, 1, false, &bytes), RANK_ERR_ARG);
    assert_int_equal(rk_pieces_check(NULL, -1, false, &bytes), RANK_ERR_COUNT);
    assert_int_equal(rk_pieces_check(NULL, 0, false, &bytes), RANK_OK);
    two[0].bytes = two[1].bytes = 1ll << 62; /* each by itself fits */
    assert_int_equal(rk_pieces_check(&two[0], 1, false, &bytes), RANK_OK);
    assert_int_equal(rk_pieces_check(two, 2, false, &bytes), RANK_ERR_COUNT);
}

/* Two columns between each other are fine; two that meet are not, where that is checked. */
static void overlap(void **state)
{
    rank_iov_t v[2] = {{.base = memory, .bytes = 8, .count = 10, .stride = 32},
                       {.base = memory + 8, .bytes = 8, .count = 10, .stride = 32}};
    size_t bytes;

    (void)state;
    assert_int_equal(rk_pieces_check(v, 2, true, &bytes), RANK_OK);
    v[1].base = memory + 7;
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
    assert_int_equal(rk_pieces_check(v, 2, true, &bytes), RANK_ERR_ARG);
#endif
    assert_int_equal(rk_pieces_check(v, 2, false, &bytes), RANK_OK);
}

/* -------------------------------------------------------------------- staged views */

/* Payload with copies that count, and fail from one on. */
static int ncopies, failing_copy;

static rank_status_t counted_copy(void *to, const void *from, size_t bytes)
{
    if (++ncopies == failing_copy)
        return RANK_ERR_DEVICE;
    memcpy(to, from, bytes);
    return RANK_OK;
}

static rank_status_t counted_pack(const struct rk_view *view, size_t offset, void *to, size_t bytes)
{
    return counted_copy(to, (const char *)view->base + offset, bytes);
}

static rank_status_t counted_unpack(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    return counted_copy((char *)view->base + offset, from, bytes);
}

/* Frames of any length, in order and out of order, take a copy for each long piece. */
static void staged(void **state)
{
    static const struct rk_view_ops counted = {.pack = counted_pack, .unpack = counted_unpack};
    enum { BYTES = 5 * RK_VIEW_STAGE / 2, FRAME = 8100 };
    unsigned char *payload = malloc(BYTES), *flat = malloc(BYTES);
    struct rk_view view = {payload, BYTES, &counted}, plain = {payload, BYTES, NULL};

    (void)state;
    rk_view_stage_open(&plain, BYTES);
    assert_null(plain.ops);
    assert_int_equal(rk_view_stage_close(&plain, true), RANK_OK);
    for (int i = 0; i < BYTES; i++)
        payload[i] = (unsigned char)(i * 13 + i / 997);
    ncopies = failing_copy = 0;
    rk_view_stage_open(&view, BYTES);
    for (size_t at = 0, n; at < BYTES; at += n) {
        n = BYTES - at < FRAME ? BYTES - at : FRAME;
        assert_int_equal(rk_copy_out(flat + at, &view, at, n), RANK_OK);
    }
    assert_int_equal(ncopies, 3);
    assert_memory_equal(flat, payload, BYTES);
    for (size_t at = BYTES - FRAME; at > FRAME; at -= FRAME) /* backwards */
        assert_int_equal(rk_copy_out(flat + at, &view, at, FRAME), RANK_OK);
    assert_memory_equal(flat, payload, BYTES);
    assert_int_equal(rk_view_stage_close(&view, true), RANK_OK);
    assert_ptr_equal(view.ops, &counted);
    assert_ptr_equal(view.base, payload);

    for (int turn = 0; turn < 2; turn++) { /* in order; then the last quarter first, and without its end */
        size_t first = turn ? BYTES / 4 * 3 : 0, end = turn ? BYTES - 5 : BYTES;

        memset(payload, 0, BYTES);
        ncopies = 0;
        rk_view_stage_open(&view, BYTES);
        for (size_t at = first, n; at < end; at += n) {
            n = end - at < FRAME ? end - at : FRAME;
            assert_int_equal(rk_copy_in(&view, at, flat + at, n), RANK_OK);
        }
        for (size_t at = 0, n; at < first; at += n) {
            n = first - at < FRAME ? first - at : FRAME;
            assert_int_equal(rk_copy_in(&view, at, flat + at, n), RANK_OK);
        }
        assert_int_equal(rk_view_stage_close(&view, true), RANK_OK);
        assert_memory_equal(flat, payload, end);
        assert_true(ncopies <= 5);
    }

    failing_copy = ncopies + 2;
    rk_view_stage_open(&view, BYTES);
    assert_int_equal(rk_copy_out(flat, &view, 0, FRAME), RANK_OK);
    assert_int_equal(rk_copy_out(flat, &view, RK_VIEW_STAGE - 9, FRAME), RANK_ERR_DEVICE);
    rk_view_stage_close(&view, false);
    failing_copy = ncopies + 1;
    rk_view_stage_open(&view, BYTES);
    assert_int_equal(rk_copy_in(&view, 0, flat, FRAME), RANK_OK);
    assert_int_equal(rk_view_stage_close(&view, true), RANK_ERR_DEVICE);
    free(payload);
    free(flat);
}

/* The mean length of blocks that lie apart. */
static void mean_block(void **state)
{
    char mem[400];
    struct rk_pieces p;
    rank_iov_t strided[] = {{.base = mem, .bytes = 8, .count = 10, .stride = 16}, {.base = NULL, .bytes = 0, .count = 9}, {.base = mem + 200, .bytes = 20}};
    rank_iov_t whole[] = {{.base = mem, .bytes = 10, .count = 10, .stride = 10}, {.base = mem + 200, .bytes = 60}};
    struct rk_view view;

    (void)state;
    view = rk_pieces_view(&p, strided, 3, 100);
    assert_int_equal(rk_pieces_block(&view), 100 / 11);
    view = rk_pieces_view(&p, strided, 1, 80);
    assert_int_equal(rk_pieces_block(&view), 8);
    view = rk_pieces_view(&p, whole, 2, 160);
    assert_int_equal(rk_pieces_block(&view), 80);
    view = rk_pieces_view(&p, whole, 1, 100);
    assert_true(rk_pieces_block(&view) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_and_unpack), cmocka_unit_test(lists),   cmocka_unit_test(plain),
        cmocka_unit_test(copies),          cmocka_unit_test(refused), cmocka_unit_test(overlap),
        cmocka_unit_test(staged),           cmocka_unit_test(mean_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
