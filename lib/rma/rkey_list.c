/* SPDX-License-Identifier: BSD-3-Clause */
/* rkey_list.c: encode and decode lists of keys. */
#include "lib/rma/rkey_list.h"
#include "lib/base/fnv.h"

#include <string.h>

enum { KEY_MIN = sizeof(struct rk_key) + sizeof(uint64_t) };

/* Length of the key at at, which has at least KEY_MIN bytes behind it; 0: more than left, or malformed. */
static size_t key_length(const unsigned char *at, size_t left)
{
    uint32_t len;

    memcpy(&len, at + offsetof(struct rk_key, len), sizeof(len));
    return len >= KEY_MIN && len <= left && len <= RANK_RKEY_MAX ? len : 0;
}

/* Returns false unless exactly n keys lie behind the head. */
static bool list_sum(const void *list, size_t len, uint64_t n, uint64_t *sum)
{
    const unsigned char *at = (const unsigned char *)list + sizeof(struct rk_key_list);
    size_t left = len - sizeof(struct rk_key_list);
    uint64_t h = rk_key_sum(list, offsetof(struct rk_key_list, sum));

    for (; n && left >= KEY_MIN; n--) {
        size_t one = key_length(at, left);
        uint64_t key_sum;

        if (one == 0)
            return false;
        memcpy(&key_sum, at + one - sizeof(key_sum), sizeof(key_sum));
        h = rk_fnv64(h, &key_sum, sizeof(key_sum));
        at += one;
        left -= one;
    }
    *sum = h;
    return n == 0 && left == 0;
}

void rk_key_list_seal(void *list, size_t len, uint64_t n)
{
    struct rk_key_list head = {RK_KEY_LIST_MAGIC, RK_KEY_LIST_VERSION, len, n, 0};

    memcpy(list, &head, sizeof(head));
    list_sum(list, len, n, &head.sum);
    memcpy(list, &head, sizeof(head));
}

enum rk_key_list_state rk_key_list_check(const void *list, size_t len, uint64_t *n, uint32_t *version)
{
    struct rk_key_list head;
    uint64_t sum;

    if (len < sizeof(head))
        return RK_KEY_LIST_BAD;
    memcpy(&head, list, sizeof(head));
    if (head.magic != RK_KEY_LIST_MAGIC)
        return RK_KEY_LIST_BAD;
    *version = head.version;
    *n = head.n;
    if (head.version != RK_KEY_LIST_VERSION)
        return RK_KEY_LIST_OTHER_VERSION;
    return head.len == len && list_sum(list, len, head.n, &sum) && sum == head.sum ? RK_KEY_LIST_GOOD : RK_KEY_LIST_BAD;
}

uint64_t rk_key_list_read(const void *list, uint64_t n, struct rk_read_key *out)
{
    const unsigned char *at = (const unsigned char *)list + sizeof(struct rk_key_list);

    for (uint64_t i = 0; i < n; i++) {
        size_t one = key_length(at, RANK_RKEY_MAX);

        if (!rk_key_read(at, one, &out[i].key, &out[i].channel_key, &out[i].sum))
            return i;
        at += one;
    }
    return n;
}
