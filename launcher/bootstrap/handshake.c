/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.c: make and check the messages of a handshake. See handshake.h. */
#include "launcher/bootstrap/handshake.h"
#include "lib/base/random.h"

#include <stdio.h>
#include <string.h>

#define PROTOCOL 8 /* offsets in HELLO */
#define NODE 12
#define AGENT_NONCE 16
#define VERSION (AGENT_NONCE + XR_HANDSHAKE_NONCE)
_Static_assert(VERSION + XR_HANDSHAKE_VERSION == XR_HANDSHAKE_HELLO, "the fields fill HELLO");
_Static_assert(RK_AUTH_MAC == RK_AUTH_KEY, "a mac is the key of a child");

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

bool xr_handshake_key(const struct xr_kary *shape, uint32_t top, const uint8_t *top_key, uint32_t node, uint8_t *key)
{
    uint32_t i;

    memcpy(key, top_key, RK_AUTH_KEY);
    while (top != node) {
        uint8_t number[4], next[RK_AUTH_KEY];

        i = xr_kary_way(shape, top, node);
        if (i == XR_NODE_FRONT)
            return false;
        top = xr_kary_child(shape, top, i);
        put_u32(number, top);
        rk_auth_mac(key, RK_AUTH_KEY, "xrun node", number, sizeof(number), next);
        memcpy(key, next, sizeof(next));
    }
    return true;
}

static void handshake_mac(const struct xr_handshake *h, const char *label, uint8_t *mac)
{
    rk_auth_mac(h->key, sizeof(h->key), label, h->transcript, sizeof(h->transcript), mac);
}

static bool is_mac(const struct xr_handshake *h, const char *label, const uint8_t *mac)
{
    uint8_t expected[RK_AUTH_MAC];

    handshake_mac(h, label, expected);
    return rk_auth_equal(mac, expected, sizeof(expected));
}

bool xr_handshake_hello(struct xr_handshake *h, uint32_t node)
{
    memset(h->transcript, 0, sizeof(h->transcript));
    memcpy(h->transcript, name, 8);
    put_u32(h->transcript + PROTOCOL, XR_PROTOCOL);
    put_u32(h->transcript + NODE, node);
    snprintf((char *)h->transcript + VERSION, XR_HANDSHAKE_VERSION, "%s", rank_version());
    return rk_random_secret(h->transcript + AGENT_NONCE, XR_HANDSHAKE_NONCE);
}

bool xr_handshake_prove(struct xr_handshake *h, const uint8_t *answer, uint8_t *proof)
{
    memcpy(h->transcript + XR_HANDSHAKE_HELLO, answer, XR_HANDSHAKE_NONCE);
    if (!is_mac(h, "xrun parent", answer + XR_HANDSHAKE_NONCE))
        return false;
    handshake_mac(h, "xrun agent", proof);
    return true;
}

bool xr_handshake_is_accepted(const struct xr_handshake *h, const uint8_t *accept)
{
    return is_mac(h, "xrun accept", accept);
}

bool xr_handshake_begins(const uint8_t *bytes, size_t len)
{
    return memcmp(bytes, name, len < 8 ? len : 8) == 0;
}

uint32_t xr_handshake_node(const struct xr_handshake *h)
{
    return get_u32(h->transcript + NODE);
}

bool xr_handshake_answer(struct xr_handshake *h, uint8_t *answer)
{
    if (!rk_random_secret(answer, XR_HANDSHAKE_NONCE))
        return false;
    memcpy(h->transcript + XR_HANDSHAKE_HELLO, answer, XR_HANDSHAKE_NONCE);
    handshake_mac(h, "xrun parent", answer + XR_HANDSHAKE_NONCE);
    return true;
}

bool xr_handshake_is_proved(const struct xr_handshake *h, const uint8_t *proof)
{
    return is_mac(h, "xrun agent", proof);
}

void xr_handshake_accept(const struct xr_handshake *h, uint8_t *accept)
{
    handshake_mac(h, "xrun accept", accept);
}

bool xr_handshake_same_version(const struct xr_handshake *h, char *version)
{
    memcpy(version, h->transcript + VERSION, XR_HANDSHAKE_VERSION);
    version[XR_HANDSHAKE_VERSION] = '\0';
    return get_u32(h->transcript + PROTOCOL) == XR_PROTOCOL && strcmp(version, rank_version()) == 0;
}

void xr_handshake_seals(const struct xr_handshake *h, bool parent, struct xr_seals *out)
{
    *out = (struct xr_seals){.out = {.count = 0}};
    handshake_mac(h, "xrun down", parent ? out->out.key : out->in.key);
    handshake_mac(h, "xrun up", parent ? out->in.key : out->out.key);
}
