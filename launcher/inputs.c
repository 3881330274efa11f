/*
 * inputs.c: rank 0's standard input. See agent.h.
 *
 * The front end sends no more than a window of bytes ahead of what rank 0 has
 * been given, so this buffer stays small and the wire is never held up by it.
 */
#include "launcher/agent.h"
#include "launcher/message.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct rk_inputs {
    struct rk_agent *agent;
    int fd; /* -1: closed */
    struct event *ev;
    struct evbuffer *queue;
    bool ended; /* nothing comes after the queue */
};

static void shut(struct rk_inputs *in)
{
    if (in->ev)
        event_free(in->ev);
    in->ev = NULL;
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
    evbuffer_drain(in->queue, evbuffer_get_length(in->queue));
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct rk_inputs *in = arg;
    struct rk_packer p = {0};
    int n;

    (void)fd;
    (void)what;
    n = evbuffer_get_length(in->queue) ? evbuffer_write(in->queue, in->fd) : 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        shut(in); /* EPIPE: it reads no more */
        if (in->agent->wire && !in->ended)
            rk_wire_send(in->agent->wire, RK_MSG_INPUT_CLOSED, NULL);
        return;
    }
    if (n > 0 && in->agent->wire) {
        rk_pack_u32(&p, (uint32_t)n);
        rk_wire_send(in->agent->wire, RK_MSG_INPUT_TAKEN, &p);
    }
    if (evbuffer_get_length(in->queue))
        event_add(in->ev, NULL);
    else if (in->ended)
        shut(in);
}

rank_status_t rk_inputs_open(struct rk_agent *agent, struct rk_inputs **out, int *fd)
{
    struct rk_inputs *in = calloc(1, sizeof(*in));
    int ends[2];

    if (!in)
        return RANK_ERR_NO_MEMORY;
    in->agent = agent;
    in->fd = -1;
    in->queue = evbuffer_new();
    if (!in->queue || pipe2(ends, O_CLOEXEC)) {
        rk_inputs_close(in);
        return RANK_ERR_SYSTEM;
    }
    in->fd = ends[1];
    evutil_make_socket_nonblocking(in->fd);
    in->ev = event_new(agent->base, in->fd, EV_WRITE, on_writable, in);
    if (!in->ev) {
        close(ends[0]);
        rk_inputs_close(in);
        return RANK_ERR_NO_MEMORY;
    }
    *fd = ends[0];
    *out = in;
    return RANK_OK;
}

void rk_inputs_close(struct rk_inputs *in)
{
    if (!in)
        return;
    if (in->queue)
        shut(in);
    if (in->queue)
        evbuffer_free(in->queue);
    free(in);
}

void rk_inputs_put(struct rk_inputs *in, const void *data, size_t len)
{
    if (!in || in->fd < 0 || in->ended)
        return;
    if (len)
        evbuffer_add(in->queue, data, len);
    else
        in->ended = true;
    on_writable(in->fd, EV_WRITE, in);
}
