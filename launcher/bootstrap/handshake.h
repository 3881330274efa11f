/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h: authenticate an agent at a listener, see listener.h.
 *
 * A handshake has 64 bytes in every version: 8 of name, the protocol's number, the
 * node's number, 16 of secret, and the version as text.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_HANDSHAKE_H
#define XR_LAUNCHER_BOOTSTRAP_HANDSHAKE_H

#include "launcher/bootstrap/setup.h"

#define XR_HANDSHAKE 64
#define XR_HANDSHAKE_VERSION 32

enum xr_handshake { XR_HANDSHAKE_INVALID, XR_HANDSHAKE_OTHER_VERSION, XR_HANDSHAKE_AGENT };

/* Compare in constant time. */
bool xr_secret_equal(const uint8_t *a, const uint8_t *b, size_t len);

void xr_handshake_make(uint8_t *word, const uint8_t *secret, uint32_t node);
/* Return whether the received bytes may be the start of a handshake. */
bool xr_handshake_begins(const uint8_t *word, size_t len);
/* Check a whole handshake. version: XR_HANDSHAKE_VERSION + 1 bytes. */
enum xr_handshake xr_handshake_check(const uint8_t *word, const uint8_t *secret, uint32_t *node,
                             char *version);

#endif
