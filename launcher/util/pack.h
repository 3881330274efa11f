/*
 * pack.h: how the launcher's messages are packed.
 *
 * Little-endian fixed-width integers and length-prefixed bytes. A packer or
 * unpacker remembers its first failure, so that a message is written or read
 * in one go and checked once at its end. Nothing is read past the length given
 * and no length from the wire is trusted.
 */
#ifndef RK_LAUNCHER_UTIL_PACK_H
#define RK_LAUNCHER_UTIL_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rk_packer {
    uint8_t *data;
    size_t len, cap;
    bool failed; /* out of memory */
};

void rk_pack_u32(struct rk_packer *p, uint32_t v);
void rk_pack_u64(struct rk_packer *p, uint64_t v);
void rk_pack_bytes(struct rk_packer *p, const void *data, size_t len);
/* Bytes as they are, without their length. */
void rk_pack_raw(struct rk_packer *p, const void *data, size_t len);
/* NULL is kept apart from "". */
void rk_pack_string(struct rk_packer *p, const char *s);
/* A NULL-terminated array. */
void rk_pack_strings(struct rk_packer *p, char *const *v);
void rk_packer_free(struct rk_packer *p);

struct rk_unpacker {
    const uint8_t *at;
    size_t left;
    bool failed; /* truncated, malformed or out of memory */
};

uint32_t rk_unpack_u32(struct rk_unpacker *u);
uint64_t rk_unpack_u64(struct rk_unpacker *u);
/* Points into the message; NULL on failure. */
const void *rk_unpack_bytes(struct rk_unpacker *u, size_t *len);
/* Points into the message; the terminating NUL is checked. */
const char *rk_unpack_string(struct rk_unpacker *u);
/* Copies; free with rk_strings_free. */
char **rk_unpack_strings(struct rk_unpacker *u);
/* All was read and nothing is left over. */
bool rk_unpack_done(const struct rk_unpacker *u);

void rk_strings_free(char **v);

#endif
