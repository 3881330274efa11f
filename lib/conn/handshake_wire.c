/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake_wire.c: encode and decode the messages that open a connection. */
#include "lib/base/compiler.h"
#include "lib/conn/handshake_wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The range of a body's bytes for each type. */
static const struct shake_shape {
    const char *name, *label;
    uint16_t min, max;
} shapes[RK_SHAKE_TYPE_END] = {
    [RK_SHAKE_HELLO] = {"HELLO", NULL, RK_SHAKE_NONCE, RK_SHAKE_NONCE},
    [RK_SHAKE_CHALLENGE] = {"CHALLENGE", NULL, RK_SHAKE_NONCE + 1, RK_SHAKE_NONCE + 1},
    [RK_SHAKE_PROOF] = {"PROOF", "client", RK_SHAKE_MAC + RK_SHAKE_IDENTITY,
                        RK_SHAKE_MAC + RK_SHAKE_IDENTITY + RK_SHAKE_CARD_MAX + RK_SHAKE_HELLO_MAX},
    [RK_SHAKE_WELCOME] = {"WELCOME", "server", RK_SHAKE_MAC + RK_SHAKE_IDENTITY + RK_SHAKE_WELCOME_MORE,
                          RK_SHAKE_MAC + RK_SHAKE_IDENTITY + RK_SHAKE_WELCOME_MORE + RK_SHAKE_CARD_MAX + RK_SHAKE_HELLO_MAX},
    [RK_SHAKE_REFUSED] = {"REFUSED", NULL, 4, 4 + RK_SHAKE_TEXT_MAX},
    [RK_SHAKE_READY] = {"READY", NULL, 1, 1},
};

_Static_assert(RK_SHAKE_MAX - RK_SHAKE_HEAD <= RK_SHAKE_BODY_MAX, "a message is longer than a body may be");

static bool is_shake_type(int type)
{
    return type >= RK_SHAKE_HELLO && type < RK_SHAKE_TYPE_END;
}

const char *rk_shake_label(enum rk_shake_type type)
{
    return is_shake_type((int)type) ? shapes[type].label : NULL;
}

const char *rk_shake_type_text(int type)
{
    return is_shake_type(type) ? shapes[type].name : "?";
}

/* Where an encoder writes, or a decoder reads with end behind the last byte. */
struct shake_writer {
    unsigned char *at;
};

struct shake_reader {
    const unsigned char *at, *end;
};

static void write_int(struct shake_writer *w, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *w->at++ = (unsigned char)(v >> (8 * i));
}

static void write_bytes(struct shake_writer *w, const void *from, size_t n)
{
    memcpy(w->at, from, n);
    w->at += n;
}

/* The caller has checked that the bytes are there. */
static uint64_t read_int(struct shake_reader *r, int bytes)
{
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)*r->at++ << (8 * i);
    return v;
}

static void read_bytes(struct shake_reader *r, void *to, size_t n)
{
    memcpy(to, r->at, n);
    r->at += n;
}

static bool may_refuse_with(int64_t status)
{
    return status == RANK_ERR_REFUSED || status == RANK_ERR_SECRET || status == RANK_ERR_NO_MEMORY;
}

/* Write mac to hello of PROOF and WELCOME. */
static void write_identity(struct shake_writer *w, const struct rk_shake *in)
{
    size_t name = strnlen(in->name, RK_SHAKE_NAME - 1);
    size_t hello = in->hello_bytes < RK_SHAKE_HELLO_MAX ? in->hello_bytes : RK_SHAKE_HELLO_MAX;
    size_t card = in->card_bytes <= RK_SHAKE_CARD_MAX ? in->card_bytes : 0;

    write_bytes(w, in->mac, RK_SHAKE_MAC);
    write_int(w, in->context, 8);
    write_int(w, in->host, 8);
    write_int(w, in->pid, 4);
    write_int(w, in->uid, 4);
    write_int(w, in->window, 4);
    write_bytes(w, in->name, name);
    memset(w->at, 0, RK_SHAKE_NAME - name);
    w->at += RK_SHAKE_NAME - name;
    if (in->type == RK_SHAKE_WELCOME) {
        write_int(w, in->team, 8);
        write_int(w, in->segment, 8);
        write_int(w, in->segment_bytes, 8);
        write_int(w, in->segment_fd, 4);
    }
    write_int(w, card, 2);
    write_bytes(w, in->card, card);
    write_int(w, hello, 2);
    write_bytes(w, in->hello, hello);
}

size_t rk_shake_encode(const struct rk_shake *in, unsigned char out[RK_SHAKE_MAX])
{
    struct shake_writer w = {out + RK_SHAKE_HEAD}, head = {out};
    size_t bytes;

    switch (in->type) {
    case RK_SHAKE_HELLO:
    case RK_SHAKE_CHALLENGE:
        write_bytes(&w, in->nonce, RK_SHAKE_NONCE);
        if (in->type == RK_SHAKE_CHALLENGE)
            write_int(&w, in->secret_wanted, 1);
        break;
    case RK_SHAKE_PROOF:
    case RK_SHAKE_WELCOME:
        write_identity(&w, in);
        break;
    case RK_SHAKE_REFUSED:
        write_int(&w, (uint32_t)(may_refuse_with(in->status) ? in->status : RANK_ERR_REFUSED), 4);
        write_bytes(&w, in->text, strnlen(in->text, RK_SHAKE_TEXT_MAX));
        break;
    case RK_SHAKE_READY:
        write_int(&w, in->takes, 1);
        break;
    case RK_SHAKE_TYPE_END:
        break;
    }
    bytes = (size_t)(w.at - out);
    write_int(&head, RK_SHAKE_MAGIC, 4);
    write_int(&head, RK_SHAKE_VERSION, 2);
    write_int(&head, in->type, 2);
    write_int(&head, bytes - RK_SHAKE_HEAD, 4);
    return bytes;
}

/* Bytes of UTF-8 stay. */
static void replace_controls(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
}

static RK_PRINTF(2, 3) ssize_t shake_invalid(struct rk_shake *out, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(out->why, sizeof(out->why), fmt, args);
    va_end(args);
    return -1;
}

/* Check the head as far as it is there. Sets the type and returns the body's bytes if all of it is, else 0. */
static ssize_t check_shake_head(const unsigned char *data, size_t len, struct rk_shake *out)
{
    struct shake_reader r;
    unsigned version, type;
    uint32_t bytes;

    for (size_t i = 0; i < 4 && i < len; i++)
        if (data[i] != (unsigned char)(RK_SHAKE_MAGIC >> (8 * i)))
            return shake_invalid(out, "the other side is not a listener or client of librank; check host and port");
    out->need = RK_SHAKE_HEAD;
    if (len < 6)
        return 0;
    r = (struct shake_reader){data + 4, data + len};
    version = (unsigned)read_int(&r, 2);
    if (version != RK_SHAKE_VERSION)
        return shake_invalid(out, "the other side has version %u of the handshake, this side has version %u; "
                                  "use the same release of librank on both", version, RK_SHAKE_VERSION);
    if (len < RK_SHAKE_HEAD)
        return 0;
    type = (unsigned)read_int(&r, 2);
    bytes = (uint32_t)read_int(&r, 4);
    if (!is_shake_type((int)type))
        return shake_invalid(out, "a message of the handshake has the unknown type %u", type);
    if (bytes < shapes[type].min || bytes > shapes[type].max)
        return shake_invalid(out, "%s has a body of %u bytes, not %u to %u", shapes[type].name, (unsigned)bytes,
                             (unsigned)shapes[type].min, (unsigned)shapes[type].max);
    out->type = (enum rk_shake_type)type;
    return (ssize_t)bytes;
}

/* Read PROOF and WELCOME. Returns false with the reason if malformed. */
static bool read_identity(struct shake_reader *r, struct rk_shake *out)
{
    size_t name;

    read_bytes(r, out->mac, RK_SHAKE_MAC);
    out->context = read_int(r, 8);
    out->host = read_int(r, 8);
    out->pid = (uint32_t)read_int(r, 4);
    out->uid = (uint32_t)read_int(r, 4);
    out->window = (uint32_t)read_int(r, 4);
    read_bytes(r, out->name, RK_SHAKE_NAME);
    name = strnlen(out->name, RK_SHAKE_NAME);
    for (size_t i = name; i < RK_SHAKE_NAME; i++)
        if (out->name[i])
            name = RK_SHAKE_NAME;
    if (name == RK_SHAKE_NAME) {
        out->name[0] = '\0';
        return shake_invalid(out, "the name in %s is not filled up with NUL", shapes[out->type].name) == 0;
    }
    replace_controls(out->name, name);
    if (out->type == RK_SHAKE_WELCOME) {
        out->team = read_int(r, 8);
        out->segment = read_int(r, 8);
        out->segment_bytes = read_int(r, 8);
        out->segment_fd = (uint32_t)read_int(r, 4);
    }
    out->card_bytes = (uint16_t)read_int(r, 2);
    if (out->card_bytes > RK_SHAKE_CARD_MAX || r->end - r->at < out->card_bytes + 2) {
        unsigned has = out->card_bytes;

        out->card_bytes = 0;
        return shake_invalid(out, "%s announces a card of %u bytes, and %u follow", shapes[out->type].name, has,
                             (unsigned)(r->end - r->at)) == 0;
    }
    read_bytes(r, out->card, out->card_bytes);
    out->hello_bytes = (uint16_t)read_int(r, 2);
    if (out->hello_bytes != r->end - r->at || out->hello_bytes > RK_SHAKE_HELLO_MAX) {
        unsigned has = out->hello_bytes;

        out->hello_bytes = 0;
        return shake_invalid(out, "%s announces a hello of %u bytes and has %u", shapes[out->type].name, has,
                             (unsigned)(r->end - r->at)) == 0;
    }
    read_bytes(r, out->hello, out->hello_bytes);
    return true;
}

static bool read_refusal(struct shake_reader *r, struct rk_shake *out)
{
    int32_t status = (int32_t)(uint32_t)read_int(r, 4);
    size_t len = (size_t)(r->end - r->at);

    if (!may_refuse_with(status))
        return shake_invalid(out, "REFUSED has the status %d", (int)status) == 0;
    out->status = (rank_status_t)status;
    read_bytes(r, out->text, len);
    replace_controls(out->text, len);
    return true;
}

ssize_t rk_shake_next(const void *data, size_t len, struct rk_shake *out)
{
    struct shake_reader r;
    ssize_t body;
    bool valid = true;

    memset(out, 0, sizeof(*out));
    body = check_shake_head(data, len, out);
    if (body <= 0)
        return body;
    out->need = RK_SHAKE_HEAD + (size_t)body;
    if (len < out->need)
        return 0;
    r.at = (const unsigned char *)data + RK_SHAKE_HEAD;
    r.end = r.at + body;
    switch (out->type) {
    case RK_SHAKE_HELLO:
    case RK_SHAKE_CHALLENGE:
        read_bytes(&r, out->nonce, RK_SHAKE_NONCE);
        if (out->type == RK_SHAKE_CHALLENGE) {
            if (*r.at > 1)
                return shake_invalid(out, "CHALLENGE wants %u secrets", (unsigned)*r.at);
            out->secret_wanted = *r.at;
        }
        break;
    case RK_SHAKE_PROOF:
    case RK_SHAKE_WELCOME:
        valid = read_identity(&r, out);
        break;
    case RK_SHAKE_REFUSED:
        valid = read_refusal(&r, out);
        break;
    case RK_SHAKE_READY:
        if (*r.at > RK_SHAKE_TAKES_CARD)
            return shake_invalid(out, "READY takes the unknown way %u", (unsigned)*r.at);
        out->takes = *r.at;
        break;
    case RK_SHAKE_TYPE_END:
        break;
    }
    return valid ? (ssize_t)out->need : -1;
}

size_t rk_shake_signed(const unsigned char client[RK_SHAKE_NONCE], const unsigned char server[RK_SHAKE_NONCE],
                       const void *message, size_t len, unsigned char out[RK_SHAKE_SIGNED_MAX])
{
    const unsigned char *at = message;
    struct shake_writer w = {out};
    unsigned type;

    if (len < RK_SHAKE_HEAD + RK_SHAKE_MAC || len > RK_SHAKE_MAX)
        return 0;
    type = at[6] | (unsigned)at[7] << 8;
    if (!rk_shake_label((enum rk_shake_type)type))
        return 0;
    write_bytes(&w, client, RK_SHAKE_NONCE);
    write_bytes(&w, server, RK_SHAKE_NONCE);
    write_bytes(&w, at, RK_SHAKE_HEAD);
    write_bytes(&w, at + RK_SHAKE_HEAD + RK_SHAKE_MAC, len - RK_SHAKE_HEAD - RK_SHAKE_MAC);
    return (size_t)(w.at - out);
}
