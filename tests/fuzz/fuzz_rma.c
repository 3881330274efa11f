/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_rma.c: decode requests, replies, keys and lists of keys of one-sided calls.
 * From unknown peers. The first byte chooses. The handler reads all that is
 * announced.
 */
#include "lib/rma/rma_wire.h"
#include "lib/rma/rkey_list.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

static void read_all(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    unsigned sum = 0;

    for (size_t i = 0; i < bytes; i++)
        sum += at[i];
    __asm__ __volatile__("" : : "r"(sum)); /* the compiler must not leave the reading out */
}

static void ask(const void *p, size_t len)
{
    struct rk_rma_parsed_request q;
    size_t sum = 0;

    if (!rk_rma_decode_request(p, len, &q))
        return;
    if (q.data)
        read_all(q.data, q.bytes);
    for (uint32_t i = 0; i < q.nblocks; i++)
        sum += (size_t)q.block[i].bytes;
    if (q.nblocks && sum != q.bytes)
        abort();
    if (q.head.op == RK_RMA_AMO && !rk_amo_defined(q.head.amo, q.head.dtype))
        abort();
}

static void answer(const void *p, size_t len)
{
    struct rk_rma_reply a;
    const void *data;
    size_t bytes;

    if (!rk_rma_decode_reply(p, len, &a, &data, &bytes))
        return;
    read_all(data, bytes);
    if (a.status > 0)
        abort();
}

/* As it comes, and once more with a sum that is right. */
static void key(unsigned char *p, size_t len)
{
    const void *channel_key;
    struct rk_key k;
    uint64_t sum;

    for (int pass = 0; pass < 2; pass++) {
        if (rk_key_read(p, len, &k, &channel_key, &sum))
            read_all(channel_key, k.channel_len);
        if (len < sizeof(sum))
            return;
        sum = rk_key_sum(p, len - sizeof(sum));
        memcpy(p + len - sizeof(sum), &sum, sizeof(sum));
    }
}

/* As it comes, and once more with a head that is right. */
static void key_list(unsigned char *p, size_t len)
{
    struct rk_read_key *keys;
    uint64_t n, whole;
    uint32_t version;

    for (int pass = 0; pass < 2; pass++) {
        if (rk_key_list_check(p, len, &n, &version) == RK_KEY_LIST_GOOD) {
            keys = malloc((size_t)n * sizeof(*keys) + (n == 0));
            if (!keys)
                return;
            whole = rk_key_list_read(p, n, keys);
            for (uint64_t i = 0; i < whole; i++)
                read_all(keys[i].channel_key, keys[i].key.channel_len);
            free(keys);
        }
        if (len < sizeof(struct rk_key_list))
            return;
        rk_key_list_seal(p, len, 1 + len / (4 * sizeof(struct rk_key)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    unsigned char *p;

    if (len == 0)
        return 0;
    p = malloc(len - 1 + (len == 1));
    if (!p)
        return 0;
    memcpy(p, input + 1, len - 1);
    switch (input[0] % 4) {
    case 0:
        ask(p, len - 1);
        break;
    case 1:
        answer(p, len - 1);
        break;
    case 2:
        key(p, len - 1);
        break;
    default:
        key_list(p, len - 1);
        break;
    }
    free(p);
    return 0;
}
