/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h: authenticate an agent and its parent to each other.
 *
 *     agent   HELLO    64 bytes: 8 of name, u32 protocol, u32 node, nonce, version as text
 *     parent  ANSWER   nonce, mac of "xrun parent"
 *     agent   PROOF    mac of "xrun agent"
 *     parent  ACCEPT   mac of "xrun accept"; an agent that gets none connects again
 *
 * Macs cover HELLO and the parent's nonce, by the key of the agent's node. The form is the same in every version, so that
 * a parent reports an agent of another version only if that has proved its key. Both sides then have a key for each
 * direction, by which they seal their frames (overlay/conn.h). Keys are never sent.
 *
 * The key of the front end is random. A node's key is a mac of its number by the key of its parent: an agent can
 * compute those of its descendants, and no others.
 */
#ifndef XR_LAUNCHER_BOOTSTRAP_HANDSHAKE_H
#define XR_LAUNCHER_BOOTSTRAP_HANDSHAKE_H

#include "launcher/bootstrap/setup.h"
#include "lib/base/auth.h"

/* Bytes. */
enum {
    XR_HANDSHAKE_HELLO = 64,
    XR_HANDSHAKE_NONCE = 16,
    XR_HANDSHAKE_ANSWER = XR_HANDSHAKE_NONCE + RK_AUTH_MAC,
    XR_HANDSHAKE_PROOF = RK_AUTH_MAC,
    XR_HANDSHAKE_ACCEPT = RK_AUTH_MAC,
    XR_HANDSHAKE_VERSION = 32,
};

struct xr_handshake {
    uint8_t transcript[XR_HANDSHAKE_HELLO + XR_HANDSHAKE_NONCE]; /* HELLO, the parent's nonce */
    uint8_t key[RK_AUTH_KEY];
};

/*
 * Compute the key of a node from the key of another one, top. Returns false if node is neither top nor below it.
 * libsodium is open.
 */
bool xr_handshake_key(const struct xr_kary *shape, uint32_t top, const uint8_t *top_key, uint32_t node, uint8_t *key);

/* The agent's side. h->key is set. Make HELLO, which is at h->transcript. Returns false with errno without random bytes. */
bool xr_handshake_hello(struct xr_handshake *h, uint32_t node);
/* Check ANSWER and make PROOF. Returns false if the parent has another key. */
bool xr_handshake_prove(struct xr_handshake *h, const uint8_t *answer, uint8_t *proof);
/* Check ACCEPT. */
bool xr_handshake_is_accepted(const struct xr_handshake *h, const uint8_t *accept);

/* The parent's side. Return whether the bytes may be the begin of HELLO. */
bool xr_handshake_begins(const uint8_t *bytes, size_t len);
/* The node that a whole HELLO names. */
uint32_t xr_handshake_node(const struct xr_handshake *h);
/* h->key is that of the node. Make ANSWER. Returns false with errno if there are no random bytes. */
bool xr_handshake_answer(struct xr_handshake *h, uint8_t *answer);
/* Check PROOF. */
bool xr_handshake_is_proved(const struct xr_handshake *h, const uint8_t *proof);
void xr_handshake_accept(const struct xr_handshake *h, uint8_t *accept);
/* Return whether the agent is of this version. version gets its text: XR_HANDSHAKE_VERSION + 1 bytes. */
bool xr_handshake_same_version(const struct xr_handshake *h, char *version);

/* The keys of both directions, after the proofs. */
void xr_handshake_seals(const struct xr_handshake *h, bool parent, struct xr_seals *out);

#endif
