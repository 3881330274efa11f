/* SPDX-License-Identifier: BSD-3-Clause */
/* setup.c: see setup.h. */
#include "launcher/bootstrap/setup.h"
#include "launcher/bootstrap/handshake.h"
#include "launcher/util/shell_words.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NODES (1u << 17)
#define MAX_BYTES (64u << 20)

void xr_setup_clear(struct xr_setup *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->names && i < s->shape.nodes; i++)
        free(s->names[i]);
    free(s->names);
    xr_strv_free(s->addresses);
    xr_strv_free(s->ssh_args);
    free(s->agent);
    free(s->program);
    free(s->library_path);
    free(s->interface);
    memset(s, 0, sizeof(*s));
}

/* Return whether node needs the name of node i. */
static bool needs_name(const struct xr_setup *s, uint32_t node, uint32_t i)
{
    return node == XR_NODE_ALL || xr_kary_is_below(&s->shape, node, i);
}

void xr_setup_pack(const struct xr_setup *s, uint32_t node, struct xr_packer *p)
{
    static char *const none[] = {NULL};
    uint8_t key[RK_AUTH_KEY];

    if (!xr_handshake_key(&s->shape, s->secret_node, s->secret, node == XR_NODE_ALL ? s->secret_node : node, key))
        p->failed = true;
    xr_pack_bytes(p, key, RK_AUTH_KEY);
    xr_pack_u32(p, node);
    xr_pack_u32(p, s->shape.nodes);
    xr_pack_u32(p, s->shape.fanout);
    xr_pack_u32(p, s->shape.head);
    xr_pack_strings(p, s->addresses ? s->addresses : none);
    xr_pack_u32(p, s->port);
    xr_pack_string(p, s->agent);
    xr_pack_strings(p, s->ssh_args ? s->ssh_args : none);
    xr_pack_string(p, s->program);
    xr_pack_string(p, s->library_path);
    xr_pack_string(p, s->interface);
    for (uint32_t i = 0; i < s->shape.nodes; i++) {
        if (needs_name(s, node, i))
            xr_pack_string(p, s->names[i]);
    }
}

static char *setup_copy(struct xr_unpacker *u, bool needed)
{
    const char *s = xr_unpack_string(u);
    char *c = s ? strdup(s) : NULL;

    if ((s && !c) || (!s && needed))
        u->failed = true;
    return c;
}

rank_status_t xr_setup_unpack(struct xr_unpacker *u, struct xr_setup *out)
{
    const void *secret;
    size_t len;

    memset(out, 0, sizeof(*out));
    secret = xr_unpack_bytes(u, &len);
    if (!secret || len != RK_AUTH_KEY)
        return RANK_ERR_ARG;
    memcpy(out->secret, secret, RK_AUTH_KEY);
    out->node = xr_unpack_u32(u);
    out->shape.nodes = xr_unpack_u32(u);
    out->shape.fanout = xr_unpack_u32(u);
    out->shape.head = xr_unpack_u32(u);
    if (u->failed || out->shape.nodes > MAX_NODES || out->shape.fanout == 0 ||
        (out->shape.head && out->shape.head >= out->shape.nodes) ||
        (out->node >= out->shape.nodes && out->node != XR_NODE_ALL)) {
        out->shape.nodes = 0;
        return RANK_ERR_ARG;
    }
    out->secret_node = out->node == XR_NODE_ALL ? XR_NODE_FRONT : out->node;
    out->addresses = xr_unpack_strings(u);
    out->port = xr_unpack_u32(u);
    out->agent = setup_copy(u, true);
    out->ssh_args = xr_unpack_strings(u);
    out->program = setup_copy(u, true);
    out->library_path = setup_copy(u, false);
    out->interface = setup_copy(u, false);
    out->names = calloc(out->shape.nodes, sizeof(*out->names));
    if (!out->names)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < out->shape.nodes && !u->failed; i++) {
        if (needs_name(out, out->node, i))
            out->names[i] = setup_copy(u, true);
    }
    return xr_unpack_done(u) && out->port <= 65535 ? RANK_OK : RANK_ERR_ARG;
}

bool xr_setup_become(struct xr_setup *s, const char *name)
{
    for (uint32_t i = 0; i < s->shape.nodes; i++) {
        if (s->names[i] && strcmp(s->names[i], name) == 0) {
            uint8_t key[RK_AUTH_KEY];
            bool found = xr_handshake_key(&s->shape, s->secret_node, s->secret, i, key);

            memcpy(s->secret, key, RK_AUTH_KEY);
            s->node = s->secret_node = i;
            return found;
        }
    }
    return false;
}

bool xr_setup_read_all(int fd, int ms, uint8_t *data, size_t len)
{
    while (len) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, ms);
        ssize_t n;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        n = read(fd, data, len);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* -------------------------------------------------------- version header */

static const char greeting[9] = "xrunword";

#define VERSION 32 /* bytes; texts end with a zero, or with their field */
#define HOST 64
#define GREETING (8 + 4 + VERSION + HOST + 4)

static void own_name(char *to)
{
    memset(to, 0, HOST + 1);
    if (gethostname(to, HOST))
        snprintf(to, HOST, "localhost");
}

void xr_setup_send(const struct xr_setup *s, uint32_t node, struct xr_packer *p)
{
    char version[VERSION + 1] = "", host[HOST + 1];
    struct xr_packer words = {0};

    xr_setup_pack(s, node, &words);
    snprintf(version, sizeof(version), "%s", rank_version());
    own_name(host);
    xr_pack_raw(p, greeting, 8);
    xr_pack_u32(p, XR_PROTOCOL);
    xr_pack_raw(p, version, VERSION);
    xr_pack_raw(p, host, HOST);
    xr_pack_u32(p, (uint32_t)words.len);
    xr_pack_raw(p, words.data, words.len);
    p->failed = p->failed || words.failed;
    xr_packer_free(&words);
}

/* Copy a text field; it may be shown to the user. */
static void take_text(char *to, const uint8_t *from, size_t len)
{
    memcpy(to, from, len);
    to[len] = '\0';
    xr_shell_words_show(to);
}

static rank_status_t read_rest(int fd, int ms, uint32_t len, struct xr_setup *out)
{
    uint8_t *data = len <= MAX_BYTES ? malloc(len ? len : 1) : NULL;
    struct xr_unpacker u = {data, len, false};
    rank_status_t st = RANK_ERR_ARG;

    if (data)
        st = xr_setup_read_all(fd, ms, data, len) ? xr_setup_unpack(&u, out) : RANK_ERR_SYSTEM;
    free(data);
    return st;
}

rank_status_t xr_setup_read(int fd, int ms, struct xr_setup *out, char *err, size_t errlen)
{
    char version[VERSION + 1], host[HOST + 1], own[HOST + 1];
    uint8_t head[GREETING];
    struct xr_unpacker u;
    rank_status_t st;
    uint32_t protocol;

    memset(out, 0, sizeof(*out));
    snprintf(err, errlen, "standard input does not hold an agent's setup (does a start-up file of the login shell read it?)");
    if (!xr_setup_read_all(fd, ms, head, 8) || memcmp(head, greeting, 8) != 0 ||
        !xr_setup_read_all(fd, ms, head + 8, GREETING - 8))
        return RANK_ERR_ARG;
    u = (struct xr_unpacker){head + 8, 4, false};
    protocol = xr_unpack_u32(&u);
    take_text(version, head + 12, VERSION);
    take_text(host, head + 12 + VERSION, HOST);
    u = (struct xr_unpacker){head + GREETING - 4, 4, false};
    st = protocol == XR_PROTOCOL ? read_rest(fd, ms, xr_unpack_u32(&u), out) : RANK_ERR_ARG;
    own_name(own);
    /* The parent detects another version with the same protocol at its listener. */
    if (protocol != XR_PROTOCOL || (st && strcmp(version, rank_version()) != 0))
        snprintf(err, errlen,
                 "xrun is version %s (protocol %u) on %s, and version %s (protocol %u) on %s, which starts it; install "
                 "one of them on both (--prefix says where xrun is on the hosts)",
                 rank_version(), XR_PROTOCOL, own, version, protocol, host);
    return st;
}
