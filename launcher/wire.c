/* wire.c: see wire.h. */
#include "launcher/wire.h"
#include "launcher/message.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER 12 /* u32 payload length, u32 kind, u32 node that it is for */
#define DRAINED (256 << 10)
#define READ_AT_ONCE (256 << 10)

struct rk_wire {
    struct bufferevent *bev;
    const struct rk_wire_ops *ops;
    void *arg;
    bool in_call; /* inside a callback: closing is put off until it returns */
    bool closing;
    bool lost; /* a message could not be queued */
};

static void destroy(struct rk_wire *wire)
{
    if (wire->bev) {
        /* libevent closes it only when its loop runs again, which may be never. */
        shutdown(bufferevent_getfd(wire->bev), SHUT_RDWR);
        bufferevent_free(wire->bev);
    }
    free(wire);
}

static void broke(struct rk_wire *wire, const char *why)
{
    bufferevent_disable(wire->bev, EV_READ | EV_WRITE);
    wire->ops->on_close(wire->arg, why);
}

/* Hand out what is complete. Returns false if the wire shall be given up. */
static bool deliver(struct rk_wire *wire)
{
    struct evbuffer *in = bufferevent_get_input(wire->bev);

    while (!wire->closing && evbuffer_get_length(in) >= HEADER) {
        uint8_t head[HEADER];
        struct rk_unpacker h = {head, HEADER, false}, body;
        uint32_t len, kind, node;

        evbuffer_copyout(in, head, HEADER);
        len = rk_unpack_u32(&h);
        kind = rk_unpack_u32(&h);
        node = rk_unpack_u32(&h);
        if (len > RK_MESSAGE_MAX)
            return false;
        if (evbuffer_get_length(in) < HEADER + (size_t)len)
            break;
        body = (struct rk_unpacker){evbuffer_pullup(in, (ssize_t)(HEADER + (size_t)len)), len,
                                    false};
        if (!body.at)
            return false;
        body.at += HEADER;
        if (!wire->ops->on_message(wire->arg, node, kind, &body))
            return false;
        evbuffer_drain(in, HEADER + (size_t)len);
    }
    return true;
}

static void run(struct rk_wire *wire)
{
    wire->in_call = true;
    if (!deliver(wire) && !wire->closing)
        broke(wire, "a message makes no sense");
    wire->in_call = false;
    if (wire->closing)
        destroy(wire);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    run(arg);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct rk_wire *wire = arg;

    (void)bev;
    if (!wire->ops->on_drained)
        return;
    wire->in_call = true;
    wire->ops->on_drained(wire->arg);
    wire->in_call = false;
    if (wire->closing)
        destroy(wire);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct rk_wire *wire = arg;

    /* The other end is gone, but what it said before may still be there to be read; reading
     * comes to the end of it by itself. */
    if (what & BEV_EVENT_WRITING) {
        bufferevent_disable(bev, EV_WRITE);
        return;
    }
    if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
        return;
    wire->in_call = true;
    if (wire->lost)
        broke(wire, "out of memory");
    else
        broke(wire, what & BEV_EVENT_EOF || errno == ECONNRESET ? NULL : strerror(errno));
    wire->in_call = false;
    if (wire->closing)
        destroy(wire);
}

rank_status_t rk_wire_open(struct event_base *base, int fd, const struct rk_wire_ops *ops,
                           void *arg, struct rk_wire **out)
{
    struct rk_wire *wire = calloc(1, sizeof(*wire));

    if (!wire)
        return RANK_ERR_NO_MEMORY;
    evutil_make_socket_nonblocking(fd);
    wire->ops = ops;
    wire->arg = arg;
    wire->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!wire->bev) {
        free(wire);
        return RANK_ERR_NO_MEMORY;
    }
    bufferevent_setcb(wire->bev, on_read, on_write, on_event, wire);
    bufferevent_setwatermark(wire->bev, EV_WRITE, DRAINED, 0);
    bufferevent_set_max_single_read(wire->bev, READ_AT_ONCE);
    bufferevent_set_max_single_write(wire->bev, READ_AT_ONCE);
    bufferevent_enable(wire->bev, EV_READ | EV_WRITE);
    *out = wire;
    return RANK_OK;
}

void rk_wire_close(struct rk_wire *wire)
{
    if (!wire || wire->closing)
        return;
    wire->closing = true;
    if (!wire->in_call)
        destroy(wire);
}

static void lose(struct rk_wire *wire)
{
    /* Out of memory loses a message; giving up the wire is the honest end. */
    wire->lost = true;
    bufferevent_trigger_event(wire->bev, BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
}

void rk_wire_forward(struct rk_wire *wire, uint32_t node, uint32_t kind, const void *data,
                     size_t len)
{
    struct rk_packer head = {0};

    rk_pack_u32(&head, (uint32_t)len);
    rk_pack_u32(&head, kind);
    rk_pack_u32(&head, node);
    if (head.failed || wire->lost || bufferevent_write(wire->bev, head.data, head.len) ||
        (len && bufferevent_write(wire->bev, data, len)))
        lose(wire);
    rk_packer_free(&head);
}

void rk_wire_send_to(struct rk_wire *wire, uint32_t node, uint32_t kind, struct rk_packer *payload)
{
    if (payload && payload->failed)
        lose(wire);
    else
        rk_wire_forward(wire, node, kind, payload ? payload->data : NULL, payload ? payload->len : 0);
    if (payload)
        rk_packer_free(payload);
}

void rk_wire_send(struct rk_wire *wire, uint32_t kind, struct rk_packer *payload)
{
    rk_wire_send_to(wire, RK_NODE_FRONT, kind, payload);
}

void rk_wire_finish(struct rk_wire *wire)
{
    shutdown(bufferevent_getfd(wire->bev), SHUT_WR);
}

size_t rk_wire_backlog(const struct rk_wire *wire)
{
    return evbuffer_get_length(bufferevent_get_output(wire->bev));
}
