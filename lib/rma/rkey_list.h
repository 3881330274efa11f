/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rkey_list.h: encode many keys as one string of bytes.
 *
 * A head, then the keys as rkey.h encodes them, one behind the other. The checksum covers the head and the checksums of
 * the keys, so it costs little. No state: the fuzzer calls it directly.
 */
#ifndef RK_RMA_RKEY_LIST_H
#define RK_RMA_RKEY_LIST_H

#include "lib/rma/rkey.h"

#define RK_KEY_LIST_MAGIC 0x4c59454bu
enum { RK_KEY_LIST_VERSION = 1 };

struct rk_key_list {
    uint32_t magic, version;
    uint64_t len; /* of all, in bytes */
    uint64_t n;   /* keys */
    uint64_t sum;
};

enum rk_key_list_state { RK_KEY_LIST_GOOD, RK_KEY_LIST_OTHER_VERSION, RK_KEY_LIST_BAD };

/* A key that has been read: it points into its bytes. */
struct rk_read_key {
    struct rk_key key;
    const void *channel_key;
    uint64_t sum;
};

/* Write the head of a list of len bytes. Its n keys are in place behind it. */
void rk_key_list_seal(void *list, size_t len, uint64_t n);
/* Check the head, the lengths of the keys and the checksum. *version and *n are set if the head is whole. */
enum rk_key_list_state rk_key_list_check(const void *list, size_t len, uint64_t *n, uint32_t *version);
/* Read the keys of a good list. Returns the number of those before the first one that is damaged. */
uint64_t rk_key_list_read(const void *list, uint64_t n, struct rk_read_key *out);

#endif
