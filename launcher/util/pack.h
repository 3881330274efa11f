/*
 * pack.h: how the launcher's messages are packed.
 *
 * Little-endian fixed-width integers and length-prefixed bytes. A packer or
 * unpacker remembers its first failure, so that a message is written or read
 * in one go and checked once at its end. Nothing is read past the length given
 * and no length from the wire is trusted.
 */
#ifndef XR_LAUNCHER_UTIL_PACK_H
#define XR_LAUNCHER_UTIL_PACK_H

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
/* Bytes as they are, without their length. */
void xr_pack_raw(struct xr_packer *p, const void *data, size_t len);
/* NULL is kept apart from "". */
void xr_pack_string(struct xr_packer *p, const char *s);
/* A NULL-terminated array. */
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
/* Copies; free with xr_strings_free. */
char **xr_unpack_strings(struct xr_unpacker *u);
/* All was read and nothing is left over. */
bool xr_unpack_done(const struct xr_unpacker *u);

void xr_strings_free(char **v);

#endif
