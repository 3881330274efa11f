/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.c: pack and check the 64 bytes that an agent sends first.
 */
#include "launcher/bootstrap/handshake.h"

#include <stdio.h>
#include <string.h>

static const char name[9] = "xrunwire";

static void put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get_u32(const uint8_t *at)
{
    struct xr_unpacker u = {at, 4, false};

    return xr_unpack_u32(&u);
}

void xr_handshake_make(uint8_t *word, const uint8_t *secret, uint32_t node)
{
    memset(word, 0, XR_HANDSHAKE);
    memcpy(word, name, 8);
    put_u32(word + 8, XR_PROTOCOL);
    put_u32(word + 12, node);
    memcpy(word + 16, secret, XR_SECRET / 2);
    snprintf((char *)word + 32, XR_HANDSHAKE_VERSION, "%s", rank_version());
}

bool xr_handshake_begins(const uint8_t *word, size_t len)
{
    return memcmp(word, name, len < 8 ? len : 8) == 0;
}

bool xr_secret_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
    uint8_t differ = 0;

    for (size_t i = 0; i < len; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

enum xr_handshake xr_handshake_check(const uint8_t *word, const uint8_t *secret, uint32_t *node,
                             char *version)
{
    if (!xr_handshake_begins(word, XR_HANDSHAKE) || !xr_secret_equal(word + 16, secret, XR_SECRET / 2))
        return XR_HANDSHAKE_INVALID;
    *node = get_u32(word + 12);
    memcpy(version, word + 32, XR_HANDSHAKE_VERSION);
    version[XR_HANDSHAKE_VERSION] = '\0';
    if (get_u32(word + 8) != XR_PROTOCOL || strcmp(version, rank_version()) != 0)
        return XR_HANDSHAKE_OTHER_VERSION;
    return XR_HANDSHAKE_AGENT;
}
