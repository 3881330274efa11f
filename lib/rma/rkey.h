/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rkey.h: encode a key to registered memory for messages.
 *
 * A key is bound to its owner, one registration (a random number) and its checksum. It is trusted only when its
 * owner, or the record in the owner's memory, confirms it. No state: the fuzzer calls it directly.
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
    uint32_t len;         /* total length, with the channel's part and the checksum */
    uint64_t nonce;
    uint64_t job;         /* of the owner */
    uint32_t rank;
    uint32_t channel_len; /* 0: the owner's channel has no puts and gets */
    struct rk_id id;      /* the owner's id of the memory */
    uint64_t base, bytes; /* at the owner */
    uint64_t record;      /* address of a struct rk_key_record there */
    struct rk_user_shm_card shared; /* for ranks of the node: how to map it, if possible; and the denied accesses */
};                        /* followed by the channel's part and the checksum */

/* Kept by the owner while the memory is registered. */
struct rk_key_record {
    uint64_t nonce, sum;
    uint32_t len;
    unsigned char key[];
};

uint64_t rk_key_sum(const void *key, size_t len);
/* Append the channel's part and the checksum; returns the length. The caller provides enough space. */
size_t rk_key_write(struct rk_key key, const void *channel_key, void *out);
/* Returns false if it is no key or damaged. */
bool rk_key_read(const void *key, size_t len, struct rk_key *out, const void **channel_key,
                 uint64_t *sum);

#endif
