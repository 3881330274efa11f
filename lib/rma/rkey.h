/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rkey.h: a key to registered memory, as it travels in a message.
 *
 * It is bound to its owner, one registration (a random number), and itself (a
 * checksum). What has the look of a key is believed only when its owner, or
 * what lies in the owner's memory, says the same.
 */
#ifndef RK_RMA_RKEY_H
#define RK_RMA_RKEY_H

#include "lib/core/frame.h"
#include "lib/core/peer.h"
#include "lib/mem/user_shm.h"

#include <stdbool.h>

#define RK_KEY_MAGIC 0x59454b52u

struct rk_key {
    uint32_t magic;
    uint32_t len;         /* of all, the channel's part and the sum included */
    uint64_t nonce;
    uint64_t job;         /* the owner */
    uint32_t rank;
    uint32_t channel_len; /* 0: the owner has no channel with puts and gets */
    struct rk_id id;      /* the owner's name for the memory */
    uint64_t base, bytes; /* there */
    uint64_t record;      /* the address of a struct rk_key_record there */
    struct rk_shared_card shared; /* how ranks of the node can map it, if they can */
    uint32_t denied, pad; /* what peers must not do there: RK_NO_READS, RK_NO_WRITES */
};                        /* the channel's part follows, then the sum of all before it */

/* What the owner keeps as long as the memory is registered. */
struct rk_key_record {
    uint64_t nonce, sum;
    uint32_t len;
    unsigned char key[];
};

uint64_t rk_key_sum(const void *key, size_t len);
/* Complete a key with the channel's part; returns its length. There is room. */
size_t rk_key_write(struct rk_key key, const void *channel_key, void *out);
/* False: no key, or a damaged one. */
bool rk_key_read(const void *key, size_t len, struct rk_key *out, const void **channel_key,
                 uint64_t *sum);

#endif
