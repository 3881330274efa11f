/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack.h: pack and unpack the launcher's messages.
 *
 * Room: helpers that depend on no other room of the launcher.
 * Called by: every room but iof.
 * Never: holds state of a job; writes to the user.
 * Tests: tests/launcher/unit/launcher_test.c, tests/fuzz/fuzz_wire.c, fuzz_files.c.
 *
 * Little-endian fixed-width integers and length-prefixed bytes. A packer or
 * unpacker keeps its first failure, so one check at the end of a message suffices.
 * Nothing is read past the given length, and no received length is trusted.
 */
#ifndef XR_LAUNCHER_UTIL_PACK_H
#define XR_LAUNCHER_UTIL_PACK_H

#include "launcher/util/strv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_packer {
    uint8_t *data;
    size_t len, cap;
    bool failed; /* out of memory */
};

void xr_pack_u32(struct xr_packer *p, uint32_t v);
void xr_pack_u64(struct xr_packer *p, uint64_t v);
void xr_pack_bytes(struct xr_packer *p, const void *data, size_t len);
/* Append bytes without their length. */
void xr_pack_raw(struct xr_packer *p, const void *data, size_t len);
/* NULL and "" are distinct. */
void xr_pack_string(struct xr_packer *p, const char *s);
/* Append a NULL-terminated array. */
void xr_pack_strings(struct xr_packer *p, char *const *v);
void xr_packer_free(struct xr_packer *p);

struct xr_unpacker {
    const uint8_t *at;
    size_t left;
    bool failed; /* truncated, malformed or out of memory */
};

uint32_t xr_unpack_u32(struct xr_unpacker *u);
uint64_t xr_unpack_u64(struct xr_unpacker *u);
/* Points into the message; NULL on failure. */
const void *xr_unpack_bytes(struct xr_unpacker *u, size_t *len);
/* Points into the message; the terminating NUL is checked. */
const char *xr_unpack_string(struct xr_unpacker *u);
/* Returns copies; caller frees with xr_strv_free. */
char **xr_unpack_strings(struct xr_unpacker *u);
/* Return whether all was read without failure and nothing is left. */
bool xr_unpack_done(const struct xr_unpacker *u);

#endif
