/* SPDX-License-Identifier: BSD-3-Clause */
/* line_relay.c: see line_relay.h. */
#include "launcher/iof/line_relay.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE (64 << 10)
#define LINE_MAX_KEPT (256 << 10) /* longer lines are passed on in pieces */

#define LAST_ROUNDS 32 /* more than a pipe holds */

struct xr_relay {
    int fd;
    struct event *ev;
    struct evbuffer *in;
    const struct xr_relay_ops *ops;
    void *arg;
};

/* Pass complete lines on; all: also an incomplete one. */
static void pass(struct xr_relay *r, bool all)
{
    size_t len = evbuffer_get_length(r->in);
    const char *data = len ? (const char *)evbuffer_pullup(r->in, -1) : NULL, *nl;

    if (!data)
        return;
    if (!all && len < LINE_MAX_KEPT) {
        nl = memrchr(data, '\n', len);
        len = nl ? (size_t)(nl - data) + 1 : 0;
    }
    if (len)
        r->ops->put(r->arg, r, data, len);
    evbuffer_drain(r->in, len);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct xr_relay *r = arg;
    int n;

    (void)what;
    if (r->ops->full(r->arg)) {
        event_del(r->ev);
        return;
    }
    n = evbuffer_read(r->in, fd, AT_ONCE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    pass(r, n <= 0);
    if (n > 0)
        return;
    event_del(r->ev);
    r->ops->over(r->arg, r);
}

rank_status_t xr_relay_open(struct event_base *base, int fd, const struct xr_relay_ops *ops, void *arg,
                            struct xr_relay **out)
{
    struct xr_relay *r = calloc(1, sizeof(*r));

    if (!r)
        return RANK_ERR_NO_MEMORY;
    *r = (struct xr_relay){.fd = -1, .ops = ops, .arg = arg, .in = evbuffer_new()};
    evutil_make_socket_nonblocking(fd);
    r->ev = r->in ? event_new(base, fd, EV_READ | EV_PERSIST, on_readable, r) : NULL;
    if (!r->ev || event_add(r->ev, NULL)) {
        xr_relay_close(r);
        return RANK_ERR_NO_MEMORY;
    }
    r->fd = fd;
    *out = r;
    return RANK_OK;
}

void xr_relay_close(struct xr_relay *r)
{
    if (!r)
        return;
    /* Read what the pipe still holds; another process may keep its other end open. */
    for (int i = 0; r->fd >= 0 && i < LAST_ROUNDS && evbuffer_read(r->in, r->fd, AT_ONCE) > 0; i++)
        ;
    if (r->fd >= 0)
        pass(r, true);
    if (r->ev)
        event_free(r->ev);
    if (r->in)
        evbuffer_free(r->in);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

void xr_relay_wake(struct xr_relay *r)
{
    if (r && !event_pending(r->ev, EV_READ, NULL))
        event_add(r->ev, NULL);
}
