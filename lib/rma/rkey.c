/* SPDX-License-Identifier: BSD-3-Clause */
/* rkey.c: encode and decode keys to registered memory. */
#include "lib/rma/rkey.h"
#include "lib/base/fnv.h"

#include <string.h>

uint64_t rk_key_sum(const void *key, size_t len)
{
    return rk_fnv64(RK_FNV64_START_KEYS, key, len);
}

size_t rk_key_write(struct rk_key key, const void *channel_key, void *out)
{
    unsigned char *to = out;
    size_t len = sizeof(key) + key.channel_len;
    uint64_t sum;

    key.magic = RK_KEY_MAGIC;
    key.len = (uint32_t)(len + sizeof(sum));
    memcpy(to, &key, sizeof(key));
    if (key.channel_len)
        memcpy(to + sizeof(key), channel_key, key.channel_len);
    sum = rk_key_sum(to, len);
    memcpy(to + len, &sum, sizeof(sum));
    return key.len;
}

bool rk_key_read(const void *key, size_t len, struct rk_key *out, const void **channel_key,
                 uint64_t *sum)
{
    const unsigned char *from = key;

    if (len < sizeof(*out) + sizeof(*sum) || len > RANK_RKEY_MAX)
        return false;
    memcpy(out, from, sizeof(*out));
    if (out->magic != RK_KEY_MAGIC || out->len != len ||
        out->channel_len != len - sizeof(*out) - sizeof(*sum) || out->bytes > INT64_MAX)
        return false;
    memcpy(sum, from + len - sizeof(*sum), sizeof(*sum));
    *channel_key = from + sizeof(*out);
    return *sum == rk_key_sum(from, len - sizeof(*sum));
}
