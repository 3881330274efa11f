/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth.h: prove that both sides have one key, and seal the frames between them.
 *
 * Proofs and derived keys are HMAC-SHA256, seals are keyed BLAKE2b with a counter, both by libsodium. It is opened by
 * the first call that needs it, so that other programs do not pay for it. Nothing here encrypts.
 *
 * Thread-safe, except that a seal has one user at a time.
 */
#ifndef RK_BASE_AUTH_H
#define RK_BASE_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes. */
enum { RK_AUTH_KEY = 32, RK_AUTH_MAC = 32, RK_SEAL_MAC = 16 };

#define RK_AUTH_MISSING "libsodium.so.23 is not installed (Debian: libsodium23)"

/* Open libsodium. Returns false if it is missing; the other calls need true. */
bool rk_auth_open(void);

/* Compute the mac of a label with its NUL, and data. label NULL: of data only. A key of any length. */
void rk_auth_mac(const void *key, size_t key_bytes, const char *label, const void *data, size_t len,
                 unsigned char mac[RK_AUTH_MAC]);
/* Compare in constant time. */
bool rk_auth_equal(const void *a, const void *b, size_t len);

/* One direction of a connection. Both sides begin with one key and count 0. */
struct rk_seal {
    unsigned char key[RK_AUTH_KEY];
    uint64_t count; /* of sealed frames */
};

/* Compute the mac of the next frame, which is its head and data. So no frame can be changed, repeated or left out. */
void rk_seal_next(struct rk_seal *seal, const void *head, size_t head_bytes, const void *data, size_t len,
                  unsigned char mac[RK_SEAL_MAC]);
/* Return whether mac is that of the next frame. Counts the frame in any case. */
bool rk_seal_check(struct rk_seal *seal, const void *head, size_t head_bytes, const void *data, size_t len,
                   const unsigned char mac[RK_SEAL_MAC]);

#endif
