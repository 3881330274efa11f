/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.c: see conn.h. */
#include "launcher/overlay/conn.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/log.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER 12 /* u32 payload length, u32 kind, u32 node that it is for */
#define DRAINED (256 << 10)
#define WRITE_AT_ONCE (256 << 10)
#define FIRST_BUFFER (16 << 10)
#define GROWN_BUFFER (256 << 10) /* for much traffic; a longer message gets what it needs */

struct xr_conn {
    struct bufferevent *bev; /* for writing only */
    /* Reading is separate: a bufferevent reads 4 KiB per call, however much is there. */
    struct event *readable;
    uint8_t *in;
    size_t len, cap;
    struct xr_seals seals;
    size_t seal_bytes; /* of each frame; 0: they are not sealed */
    bool full; /* the last read filled the buffer: there is more */
    const struct xr_conn_ops *ops;
    void *arg;
    bool in_call; /* inside a callback: close is deferred until it returns */
    bool closing;
    bool lost; /* a message could not be queued */
};

static void conn_destroy(struct xr_conn *wire)
{
    if (wire->readable)
        event_free(wire->readable);
    free(wire->in);
    if (wire->bev) {
        /* libevent closes the socket only when its loop runs again, which may be never. */
        shutdown(bufferevent_getfd(wire->bev), SHUT_RDWR);
        bufferevent_free(wire->bev);
    }
    free(wire);
}

static void broke(struct xr_conn *wire, const char *why)
{
    event_del(wire->readable);
    bufferevent_disable(wire->bev, EV_WRITE);
    wire->ops->on_close(wire->arg, why);
}

/* The bytes of a frame with this payload. */
static size_t frame_bytes(const struct xr_conn *wire, uint32_t len)
{
    return HEADER + (size_t)len + wire->seal_bytes;
}

/* Return whether the mac of the frame is that of the next one. */
static bool is_sealed(struct xr_conn *wire, const uint8_t *frame, uint32_t len)
{
    return !wire->seal_bytes ||
           rk_seal_check(&wire->seals.in, frame, HEADER, frame + HEADER, len, frame + HEADER + len);
}

/* Deliver complete messages. Returns NULL, or why the connection must be closed. */
static const char *conn_deliver(struct xr_conn *wire)
{
    const char *why = NULL;
    size_t at = 0;

    while (!why && !wire->closing && wire->len - at >= HEADER) {
        struct xr_unpacker h = {wire->in + at, HEADER, false}, body;
        uint32_t len = xr_unpack_u32(&h), kind = xr_unpack_u32(&h), node = xr_unpack_u32(&h);

        if (len > XR_MESSAGE_MAX) {
            why = "a message makes no sense";
            break;
        }
        if (wire->len - at < frame_bytes(wire, len))
            break;
        if (!is_sealed(wire, wire->in + at, len)) {
            why = "a message was changed on its way";
            break;
        }
        body = (struct xr_unpacker){wire->in + at + HEADER, len, false};
        if (!wire->ops->on_message(wire->arg, node, kind, &body)) {
            rk_debug("refused a message %s (%u) of %u bytes", xr_message_name(kind), kind, len);
            why = "a message makes no sense";
        }
        at += frame_bytes(wire, len);
    }
    wire->len -= at;
    memmove(wire->in, wire->in + at, wire->len);
    return why;
}

/* Make room for the whole of the current message, and more if the last read filled the buffer. */
static bool make_room(struct xr_conn *wire)
{
    struct xr_unpacker h = {wire->in, HEADER, false};
    size_t want = wire->cap ? wire->cap : FIRST_BUFFER;
    size_t message = wire->len >= HEADER ? frame_bytes(wire, xr_unpack_u32(&h)) : 0;
    uint8_t *in;

    if (message > want)
        want = message;
    if (wire->full && want < GROWN_BUFFER)
        want = GROWN_BUFFER;
    wire->full = false;
    if (want == wire->cap)
        return true;
    in = realloc(wire->in, want);
    if (!in)
        return wire->len < wire->cap;
    wire->in = in;
    wire->cap = want;
    return true;
}

/* End the connection. why: a failure, or NULL for an orderly end. */
static void conn_end(struct xr_conn *wire, const char *why)
{
    wire->in_call = true;
    broke(wire, why);
    wire->in_call = false;
    if (wire->closing)
        conn_destroy(wire);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct xr_conn *wire = arg;
    const char *why;
    ssize_t n;

    (void)what;
    if (!make_room(wire)) {
        conn_end(wire, "out of memory");
        return;
    }
    n = read(fd, wire->in + wire->len, wire->cap - wire->len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_end(wire, n == 0 || errno == ECONNRESET ? NULL : strerror(errno));
        return;
    }
    wire->len += (size_t)n;
    wire->full = wire->len == wire->cap;
    wire->in_call = true;
    if (wire->ops->on_bytes)
        wire->ops->on_bytes(wire->arg);
    why = conn_deliver(wire);
    if (why && !wire->closing)
        broke(wire, why);
    wire->in_call = false;
    if (wire->closing)
        conn_destroy(wire);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct xr_conn *wire = arg;

    (void)bev;
    if (!wire->ops->on_drained)
        return;
    wire->in_call = true;
    wire->ops->on_drained(wire->arg);
    wire->in_call = false;
    if (wire->closing)
        conn_destroy(wire);
}

static void conn_on_event(struct bufferevent *bev, short what, void *arg)
{
    struct xr_conn *wire = arg;

    /* The peer closed, but data it sent before may still be unread. Reading reaches the end by itself. */
    if (!wire->lost)
        bufferevent_disable(bev, EV_WRITE);
    else if (what & BEV_EVENT_ERROR)
        conn_end(wire, "out of memory");
}

rank_status_t xr_conn_open(struct event_base *base, int fd, const struct xr_seals *seals, const struct xr_conn_ops *ops,
                           void *arg, struct xr_conn **out)
{
    struct xr_conn *wire = calloc(1, sizeof(*wire));

    if (!wire)
        return RANK_ERR_NO_MEMORY;
    evutil_make_socket_nonblocking(fd);
    if (seals) {
        wire->seals = *seals;
        wire->seal_bytes = RK_SEAL_MAC;
    }
    wire->ops = ops;
    wire->arg = arg;
    wire->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    wire->readable = wire->bev ? event_new(base, fd, EV_READ | EV_PERSIST, on_readable, wire) : NULL;
    if (!wire->readable || event_add(wire->readable, NULL)) {
        if (wire->readable)
            event_free(wire->readable);
        if (wire->bev) {
            bufferevent_setfd(wire->bev, -1); /* the caller keeps the descriptor */
            bufferevent_free(wire->bev);
        }
        free(wire);
        return RANK_ERR_NO_MEMORY;
    }
    bufferevent_setcb(wire->bev, NULL, on_write, conn_on_event, wire);
    bufferevent_setwatermark(wire->bev, EV_WRITE, DRAINED, 0);
    bufferevent_set_max_single_write(wire->bev, WRITE_AT_ONCE);
    bufferevent_disable(wire->bev, EV_READ);
    bufferevent_enable(wire->bev, EV_WRITE);
    *out = wire;
    return RANK_OK;
}

void xr_conn_close(struct xr_conn *wire)
{
    if (!wire || wire->closing)
        return;
    wire->closing = true;
    if (!wire->in_call)
        conn_destroy(wire);
}

static void conn_lose(struct xr_conn *wire)
{
    /* Out of memory would lose a message, so close the connection instead. */
    wire->lost = true;
    bufferevent_trigger_event(wire->bev, BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
}

void xr_conn_forward(struct xr_conn *wire, uint32_t node, uint32_t kind, const void *data,
                     size_t len)
{
    struct xr_packer head = {0};
    uint8_t mac[RK_SEAL_MAC] = {0};

    xr_pack_u32(&head, (uint32_t)len);
    xr_pack_u32(&head, kind);
    xr_pack_u32(&head, node);
    if (wire->seal_bytes && !head.failed)
        rk_seal_next(&wire->seals.out, head.data, head.len, data, len, mac);
    if (head.failed || wire->lost || bufferevent_write(wire->bev, head.data, head.len) ||
        (len && bufferevent_write(wire->bev, data, len)) ||
        (wire->seal_bytes && bufferevent_write(wire->bev, mac, sizeof(mac))))
        conn_lose(wire);
    xr_packer_free(&head);
}

void xr_conn_send_to(struct xr_conn *wire, uint32_t node, uint32_t kind, struct xr_packer *payload)
{
    if (payload && payload->failed)
        conn_lose(wire);
    else
        xr_conn_forward(wire, node, kind, payload ? payload->data : NULL, payload ? payload->len : 0);
    if (payload)
        xr_packer_free(payload);
}

void xr_conn_send(struct xr_conn *wire, uint32_t kind, struct xr_packer *payload)
{
    xr_conn_send_to(wire, XR_NODE_FRONT, kind, payload);
}

void xr_conn_flush(struct xr_conn *wire)
{
    struct evbuffer *out = bufferevent_get_output(wire->bev);

    /* A bufferevent freezes the front of its buffer. An error here recurs in the loop, which handles it. */
    evbuffer_unfreeze(out, 1);
    while (evbuffer_get_length(out) && evbuffer_write(out, bufferevent_getfd(wire->bev)) > 0)
        continue;
    evbuffer_freeze(out, 1);
}

void xr_conn_shutdown_write(struct xr_conn *wire)
{
    shutdown(bufferevent_getfd(wire->bev), SHUT_WR);
}

int xr_conn_fd(const struct xr_conn *wire)
{
    return bufferevent_getfd(wire->bev);
}

size_t xr_conn_backlog(const struct xr_conn *wire)
{
    return evbuffer_get_length(bufferevent_get_output(wire->bev));
}
