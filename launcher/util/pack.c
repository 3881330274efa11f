/* SPDX-License-Identifier: BSD-3-Clause */
/* pack.c: see pack.h. */
#include "launcher/util/pack.h"

#include <stdlib.h>
#include <string.h>

#define NO_STRING UINT32_MAX

static uint8_t *pack_room(struct xr_packer *p, size_t n)
{
    if (p->failed)
        return NULL;
    if (n > p->cap - p->len) {
        size_t cap = p->cap ? p->cap : 256;
        uint8_t *data;
        while (cap - p->len < n)
            cap *= 2;
        data = realloc(p->data, cap);
        if (!data) {
            p->failed = true;
            return NULL;
        }
        p->data = data;
        p->cap = cap;
    }
    p->len += n;
    return p->data + p->len - n;
}

static void put_le(struct xr_packer *p, uint64_t v, size_t n)
{
    uint8_t *at = pack_room(p, n);

    for (size_t i = 0; at && i < n; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

void xr_pack_u32(struct xr_packer *p, uint32_t v)
{
    put_le(p, v, 4);
}

void xr_pack_u64(struct xr_packer *p, uint64_t v)
{
    put_le(p, v, 8);
}

void xr_pack_bytes(struct xr_packer *p, const void *data, size_t len)
{
    uint8_t *at;

    if (len >= NO_STRING) {
        p->failed = true;
        return;
    }
    xr_pack_u32(p, (uint32_t)len);
    at = pack_room(p, len);
    if (at && len)
        memcpy(at, data, len);
}

void xr_pack_raw(struct xr_packer *p, const void *data, size_t len)
{
    uint8_t *at = len ? pack_room(p, len) : NULL;

    if (at)
        memcpy(at, data, len);
}

void xr_pack_string(struct xr_packer *p, const char *s)
{
    if (s)
        xr_pack_bytes(p, s, strlen(s) + 1);
    else
        xr_pack_u32(p, NO_STRING);
}

void xr_pack_strings(struct xr_packer *p, char *const *v)
{
    xr_pack_u32(p, (uint32_t)xr_strv_count(v));
    for (; *v; v++)
        xr_pack_string(p, *v);
}

void xr_packer_free(struct xr_packer *p)
{
    free(p->data);
    memset(p, 0, sizeof(*p));
}

static const uint8_t *pack_take(struct xr_unpacker *u, size_t n)
{
    if (u->failed || n > u->left) {
        u->failed = true;
        return NULL;
    }
    u->at += n;
    u->left -= n;
    return u->at - n;
}

static uint64_t get_le(struct xr_unpacker *u, size_t n)
{
    const uint8_t *at = pack_take(u, n);
    uint64_t v = 0;

    for (size_t i = 0; at && i < n; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

uint32_t xr_unpack_u32(struct xr_unpacker *u)
{
    return (uint32_t)get_le(u, 4);
}

uint64_t xr_unpack_u64(struct xr_unpacker *u)
{
    return get_le(u, 8);
}

const void *xr_unpack_bytes(struct xr_unpacker *u, size_t *len)
{
    *len = xr_unpack_u32(u);
    return pack_take(u, *len);
}

const char *xr_unpack_string(struct xr_unpacker *u)
{
    uint32_t n = xr_unpack_u32(u);
    const char *s;

    if (u->failed || n == NO_STRING)
        return NULL;
    s = (const char *)pack_take(u, n);
    if (s && (n == 0 || memchr(s, '\0', n) != s + n - 1)) {
        u->failed = true;
        return NULL;
    }
    return s;
}

char **xr_unpack_strings(struct xr_unpacker *u)
{
    uint32_t n = xr_unpack_u32(u);
    char **v;

    /* Each string takes at least four bytes: reject a count that cannot be true before allocating. */
    if (u->failed || n > u->left / 4) {
        u->failed = true;
        return NULL;
    }
    v = calloc((size_t)n + 1, sizeof(*v));
    for (uint32_t i = 0; v && i < n; i++) {
        const char *s = xr_unpack_string(u);
        v[i] = s ? strdup(s) : NULL;
        if (!v[i]) {
            xr_strv_free(v);
            v = NULL;
        }
    }
    if (!v)
        u->failed = true;
    return v;
}

bool xr_unpack_done(const struct xr_unpacker *u)
{
    return !u->failed && u->left == 0;
}
