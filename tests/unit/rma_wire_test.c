/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_wire_test.c: decode frames of one-sided calls and keys from unknown peers. */
#include "lib/data/dtype.h"
#include "lib/rma/amo.h"
#include "lib/rma/rma_wire.h"
#include "lib/rma/rkey.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

/* A question of just its length, so that a sanitizer sees a byte too many. */
static bool decodes(const struct rk_rma_request_head *ask, const void *extra, size_t extra_len, size_t data,
                    struct rk_rma_parsed_request *out)
{
    size_t len = sizeof(*ask) + extra_len + data;
    unsigned char *p = malloc(len);
    bool good;

    assert_non_null(p);
    memcpy(p, ask, sizeof(*ask));
    if (extra_len)
        memcpy(p + sizeof(*ask), extra, extra_len);
    memset(p + sizeof(*ask) + extra_len, 'x', data);
    good = rk_rma_decode_request(p, len, out);
    free(p);
    return good;
}

static void test_short_and_unknown(void **state)
{
    struct rk_rma_request_head ask = {.op = RK_RMA_PUT};
    struct rk_rma_parsed_request out;

    (void)state;
    assert_false(rk_rma_decode_request(NULL, 0, &out));
    for (size_t len = 0; len < sizeof(ask); len++)
        assert_false(rk_rma_decode_request(&ask, len, &out));
    for (int op = 0; op < 256; op++) {
        ask.op = (uint8_t)op;
        /* with nothing behind it only a put of nothing and a flush make sense */
        assert_int_equal(decodes(&ask, NULL, 0, 0, &out), op == RK_RMA_PUT || op == RK_RMA_FLUSH);
    }
}

static void test_lengths(void **state)
{
    struct rk_rma_operands operands = {1, 2};
    static const struct rk_rma_name names[3];
    struct rk_rma_signal sig = {.value = 3};
    struct rk_rma_piece want = {0, 100};
    struct rk_rma_request_head ask = {.op = RK_RMA_PUT, .offset = 9};
    struct rk_rma_parsed_request out;

    (void)state;
    assert_true(decodes(&ask, NULL, 0, 77, &out));
    assert_int_equal(out.bytes, 77);
    assert_int_equal(out.nblocks, 1); /* where the head tells */
    assert_int_equal(out.block[0].bytes, 77);
    assert_int_equal(out.block[0].offset, 9);
    ask.op = RK_RMA_GET;
    ask.n = 1;
    assert_true(decodes(&ask, &want, sizeof(want), 0, &out));
    assert_int_equal(out.bytes, 100);
    assert_false(decodes(&ask, &want, sizeof(want), 1, &out));
    want.bytes = 1ull << 40;
    assert_false(decodes(&ask, &want, sizeof(want), 0, &out));
    ask.op = RK_RMA_AMO;
    ask.dtype = RK_HANDLE_INDEX(RANK_INT64);
    assert_true(decodes(&ask, &operands, sizeof(operands), 0, &out));
    assert_int_equal(out.operands.compare, 2);
    assert_false(decodes(&ask, &operands, sizeof(operands), 8, &out));
    assert_false(decodes(&ask, &operands, sizeof(operands) - 1, 0, &out));
    ask.op = RK_RMA_SIGNAL;
    ask.amo = RANK_SIGNAL_ADD;
    assert_true(decodes(&ask, &sig, sizeof(sig), 9, &out));
    assert_int_equal(out.bytes, 9);
    assert_int_equal(out.signal.value, 3);
    ask.amo = RANK_SIGNAL_ADD + 1;
    assert_false(decodes(&ask, &sig, sizeof(sig), 9, &out));
    ask.op = RK_RMA_REVOKE;
    assert_true(decodes(&ask, &operands, sizeof(operands), 0, &out));
    assert_false(decodes(&ask, &operands, sizeof(operands), 1, &out));
    ask.op = RK_RMA_KEYS;
    assert_true(decodes(&ask, names, sizeof(names), 0, &out));
    assert_int_equal(out.bytes, sizeof(names));
    assert_false(decodes(&ask, names, sizeof(names), 1, &out));
    assert_false(decodes(&ask, NULL, 0, 0, &out));
    ask.op = RK_RMA_FLUSH;
    assert_false(decodes(&ask, NULL, 0, 1, &out));
}

static void test_which_amo(void **state)
{
    struct rk_rma_operands operands = {1, 2};
    struct rk_rma_request_head ask = {.op = RK_RMA_AMO};
    struct rk_rma_parsed_request out;

    (void)state;
    for (unsigned amo = 0; amo < 256; amo++) {
        for (unsigned dtype = 0; dtype < 256; dtype++) {
            bool integer = dtype == RK_HANDLE_INDEX(RANK_INT32) || dtype == RK_HANDLE_INDEX(RANK_UINT32) ||
                           dtype == RK_HANDLE_INDEX(RANK_INT64) ||
                           dtype == RK_HANDLE_INDEX(RANK_UINT64);
            bool real = dtype == RK_HANDLE_INDEX(RANK_F32) || dtype == RK_HANDLE_INDEX(RANK_F64);
            bool good = (integer && amo <= RK_AMO_CAS) ||
                        (real && (amo <= RANK_AMO_SWAP || amo == RK_AMO_CAS));
            ask.amo = (uint8_t)amo;
            ask.dtype = (uint8_t)dtype;
            assert_int_equal(decodes(&ask, &operands, sizeof(operands), 0, &out), good);
        }
    }
}

static void test_blocks(void **state)
{
    struct rk_rma_block b[3] = {{{1, 2}, 10, 5}, {{3, 4}, 0, 0}, {{1, 2}, 70, 8}};
    struct rk_rma_piece p[3] = {{10, 5}, {0, 0}, {70, 8}};
    struct rk_rma_parsed_request out;

    (void)state;
    for (int mems = 0; mems < 2; mems++) {
        struct rk_rma_request_head ask = {.op = RK_RMA_PUT, .n = 3, .mem = {5, 6}, .flags = mems ? RK_RMA_HAS_MEMS : 0};
        const void *blocks = mems ? (void *)b : p;
        size_t each = mems ? sizeof(b[0]) : sizeof(p[0]);
        uint64_t *first = mems ? &b[0].bytes : &p[0].bytes, *last = mems ? &b[2].bytes : &p[2].bytes;

        assert_true(decodes(&ask, blocks, 3 * each, 13, &out));
        assert_int_equal(out.bytes, 13);
        assert_int_equal(out.nblocks, 3);
        for (uint32_t i = 0; i < 3; i++) {
            struct rk_rma_block want = {mems ? b[i].mem : ask.mem, p[i].offset, p[i].bytes};
            assert_memory_equal(&out.block[i], &want, sizeof(want));
        }
        assert_false(decodes(&ask, blocks, 3 * each, 12, &out));
        assert_false(decodes(&ask, blocks, 3 * each, 14, &out));
        assert_false(decodes(&ask, blocks, 3 * each - 1, 0, &out));
        ask.n = 4; /* the data is too short to be a block */
        assert_false(decodes(&ask, blocks, 3 * each, 13, &out));
        ask.n = UINT32_MAX; /* times a block's size it wraps in 32 bits */
        assert_false(decodes(&ask, blocks, 3 * each, 13, &out));
        ask.n = RK_RMA_BLOCKS_MAX + 1;
        assert_false(decodes(&ask, NULL, 0, ask.n * each, &out));
        ask.n = 3;
        *first = UINT64_MAX - 4; /* so does the sum in 64: 13 again without a check */
        *last = 18;
        assert_false(decodes(&ask, blocks, 3 * each, 13, &out));
        ask.op = RK_RMA_GET;
        assert_false(decodes(&ask, blocks, 3 * each, 0, &out));
        *first = 5;
        assert_true(decodes(&ask, blocks, 3 * each, 0, &out));
        assert_int_equal(out.bytes, 23);
        assert_false(decodes(&ask, blocks, 3 * each, 1, &out));
        *first = UINT32_MAX; /* no reply is so long */
        assert_false(decodes(&ask, blocks, 3 * each, 0, &out));
        ask.n = 0;
        assert_false(decodes(&ask, NULL, 0, 0, &out));
        *first = 5;
        *last = 8;
    }
}

static void test_answers(void **state)
{
    unsigned char p[sizeof(struct rk_rma_reply) + 5] = {0};
    struct rk_rma_reply a = {.status = RANK_ERR_BOUNDS, .before = 9}, out;
    const void *data;
    size_t bytes;

    (void)state;
    memcpy(p, &a, sizeof(a));
    assert_true(rk_rma_decode_reply(p, sizeof(p), &out, &data, &bytes));
    assert_int_equal(bytes, 5);
    assert_ptr_equal(data, p + sizeof(a));
    assert_int_equal(out.before, 9);
    for (size_t len = 0; len < sizeof(a); len++)
        assert_false(rk_rma_decode_reply(p, len, &out, &data, &bytes));
    a.status = 1;
    memcpy(p, &a, sizeof(a));
    assert_false(rk_rma_decode_reply(p, sizeof(p), &out, &data, &bytes));
    a.status = INT32_MIN;
    memcpy(p, &a, sizeof(a));
    assert_false(rk_rma_decode_reply(p, sizeof(p), &out, &data, &bytes));
    assert_false(rk_rma_decode_reply(NULL, 0, &out, &data, &bytes));
}

static void test_keys(void **state)
{
    unsigned char buf[RANK_RKEY_MAX], bad[RANK_RKEY_MAX];
    struct rk_key key = {.nonce = 1, .job = 2, .rank = 3, .channel_len = 100, .bytes = 77}, out;
    unsigned char part[100];
    const void *channel_key;
    uint64_t sum;
    size_t len;

    (void)state;
    memset(part, 0xab, sizeof(part));
    len = rk_key_write(key, part, buf);
    assert_true(rk_key_read(buf, len, &out, &channel_key, &sum));
    assert_int_equal(out.channel_len, 100);
    assert_int_equal(out.bytes, 77);
    assert_memory_equal(channel_key, part, sizeof(part));
    for (size_t i = 0; i < len * 8; i++) {
        memcpy(bad, buf, len);
        bad[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_false(rk_key_read(bad, len, &out, &channel_key, &sum));
    }
    for (size_t i = 0; i < len; i++)
        assert_false(rk_key_read(buf, i, &out, &channel_key, &sum));
    assert_false(rk_key_read(buf, RANK_RKEY_MAX + 1, &out, &channel_key, &sum));
    key.bytes = 1ull << 63; /* well made, and still no size */
    len = rk_key_write(key, part, buf);
    assert_false(rk_key_read(buf, len, &out, &channel_key, &sum));
}

static void test_amo(void **state)
{
    uint64_t word = 0xffffffff00000005ull, r;
    uint32_t *low = (uint32_t *)(void *)&word;
    double d = 1.5;
    uint64_t bits;

    (void)state;
    r = rk_amo_apply(low, RANK_AMO_FETCH_ADD, RK_HANDLE_INDEX(RANK_INT32), (uint64_t)-6, 0);
    assert_int_equal(r, 5);
    assert_int_equal(word, UINT64_MAX); /* no borrow from the neighbour */
    assert_int_equal(rk_amo_apply(&word, RANK_AMO_FETCH_AND, RK_HANDLE_INDEX(RANK_UINT64), 0xff, 0), UINT64_MAX);
    assert_int_equal(rk_amo_apply(&word, RK_AMO_CAS, RK_HANDLE_INDEX(RANK_UINT64), 1, 0xfe), 0xff);
    assert_int_equal(word, 0xff);
    assert_int_equal(rk_amo_apply(&word, RK_AMO_CAS, RK_HANDLE_INDEX(RANK_UINT64), 1, 0xff), 0xff);
    assert_int_equal(word, 1);
    memcpy(&word, &d, sizeof(d));
    d = 2.25;
    memcpy(&bits, &d, sizeof(d));
    rk_amo_apply(&word, RANK_AMO_ADD, RK_HANDLE_INDEX(RANK_F64), bits, 0);
    memcpy(&d, &word, sizeof(d));
    assert_true(d == 3.75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_and_unknown), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_which_amo),         cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_answers),           cmocka_unit_test(test_keys),
        cmocka_unit_test(test_amo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
