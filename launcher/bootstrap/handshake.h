/*
 * handshake.h: what is said at a door, see door.h.
 *
 * A hello is always 64 bytes, in every version: 8 of name, the protocol's
 * number, the node's number, 16 of secret, and the version as text.
 */
#ifndef RK_LAUNCHER_BOOTSTRAP_HANDSHAKE_H
#define RK_LAUNCHER_BOOTSTRAP_HANDSHAKE_H

#include "launcher/bootstrap/setup.h"

#define RK_HELLO 64
#define RK_HELLO_VERSION 32

enum rk_hello { RK_HELLO_STRANGER, RK_HELLO_OTHER_VERSION, RK_HELLO_AGENT };

void rk_hello_make(uint8_t *word, const uint8_t *secret, uint32_t node);
/* Could the bytes up to now become one? */
bool rk_hello_begins(const uint8_t *word, size_t len);
/* version: RK_HELLO_VERSION + 1 bytes. */
enum rk_hello rk_hello_check(const uint8_t *word, const uint8_t *secret, uint32_t *node,
                             char *version);

#endif
