/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret.h: load the secret of a connection and prove that both sides have it.
 *
 * Proofs are made by lib/base/auth.h. No text of this file has a byte of a secret. Thread-safe.
 */
#ifndef RK_CONN_SECRET_H
#define RK_CONN_SECRET_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes. */
enum { RK_SECRET_MIN = 16, RK_SECRET_MAX = 4096, RK_SECRET_MAC = 32 };

struct rk_secret {
    size_t bytes; /* 0: none */
    unsigned char data[RK_SECRET_MAX];
};

/*
 * Load the secret that the caller gives (given may be NULL if bytes is 0), else that of the file RANK_SECRET_FILE, else
 * none. Opens libsodium if there is a secret. rk_secret_clear ends it.
 *
 * A failed call leaves none and sets why, one line: the cause and the remedy.
 * RANK_ERR_ARG: the given one is too short or too long. RANK_ERR_CONFIG: so is that of the file, or the file is not
 * regular, not this user's, or open to others. RANK_ERR_NOT_SUPPORTED: libsodium is missing.
 */
rank_status_t rk_secret_load(const void *given, size_t bytes, struct rk_secret *out, char *why, size_t len);

/* The same of a file. One newline at its end is not part of the secret. */
rank_status_t rk_secret_load_file(const char *path, struct rk_secret *out, char *why, size_t len);

/*
 * Compute the mac of a label with its NUL, and data. label NULL: of data only.
 * Without a secret the mac is zero. RANK_ERR_NOT_SUPPORTED: libsodium is missing.
 */
rank_status_t rk_secret_prove(const struct rk_secret *secret, const char *label, const void *data, size_t len,
                              unsigned char mac[RK_SECRET_MAC]);

/* Is it the mac of these? In constant time. Without a secret only a zero mac is. */
bool rk_secret_verify(const struct rk_secret *secret, const char *label, const void *data, size_t len,
                      const unsigned char mac[RK_SECRET_MAC]);

/* Overwrite the secret with zeros. */
void rk_secret_clear(struct rk_secret *secret);

#endif
