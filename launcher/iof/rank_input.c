/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_input.c: forward standard input to ranks. See rank_input.h.
 *
 * One rank reads it, or all do, each a copy. The front end sends at most a window
 * ahead of the slowest reader. So one small buffer suffices, and input never
 * blocks the connection. A rank that has closed its input does not count.
 */
#include "launcher/iof/rank_input.h"
#include "launcher/overlay/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

struct input {
    struct xr_rank_input *all;
    int fd; /* -1: closed */
    bool terminal;
    struct event *ev;
    size_t at; /* bytes of the buffer passed to it */
};

struct xr_rank_input {
    const struct xr_local_io *at;
    struct input *list; /* [n] */
    uint32_t n, added;
    uint32_t open;
    uint32_t last; /* open inputs that have received nothing of the buffer */
    bool ended;    /* end of input after the buffer */
    bool newline;  /* the input before this point ends with a newline */
    bool reported;     /* reported to the front end that no reader is left */
    size_t len;
    char data[XR_INPUT_WINDOW];
};

/* ---------------------------------------------------------------- buffer */

/* Remove from the buffer what all ranks have received. */
static void drop_consumed(struct xr_rank_input *all)
{
    struct xr_packer p = {0};
    size_t least = all->len;

    if (all->last)
        return;
    for (uint32_t i = 0; i < all->added; i++) {
        if (all->list[i].fd >= 0 && all->list[i].at < least)
            least = all->list[i].at;
    }
    memmove(all->data, all->data + least, all->len - least);
    all->len -= least;
    for (uint32_t i = 0; i < all->added; i++) {
        all->list[i].at -= all->list[i].fd >= 0 ? least : 0;
        all->last += all->list[i].fd >= 0 && all->list[i].at == 0;
    }
    if (!*all->at->wire)
        return;
    if (!all->open && !all->ended && !all->reported) {
        all->reported = true;
        xr_pack_u32(&p, all->at->node);
        xr_conn_send(*all->at->wire, XR_MSG_INPUT_CLOSED, &p);
    } else if (least && all->open) {
        xr_pack_u32(&p, all->at->node);
        xr_pack_u32(&p, (uint32_t)least);
        xr_conn_send(*all->at->wire, XR_MSG_INPUT_TAKEN, &p);
    }
}

static void rank_input_shut(struct input *in)
{
    if (in->ev)
        event_free(in->ev);
    in->ev = NULL;
    if (in->fd < 0)
        return;
    close(in->fd);
    in->fd = -1;
    in->all->open--;
    if (in->at == 0)
        in->all->last--;
}

/* Write the end of input to a terminal: one character for each reader; another ends the line before it. */
static void end_terminal(const struct input *in)
{
    struct termios t;
    char c[2];

    if (tcgetattr(in->fd, &t) || !(t.c_lflag & ICANON))
        return;
    c[0] = c[1] = (char)t.c_cc[VEOF];
    if (write(in->fd, c, in->all->newline ? 1 : 2) < 0)
        return; /* no reader */
}

static void rank_input_on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct input *in = arg;
    struct xr_rank_input *all = in->all;
    size_t had = in->at;
    ssize_t n = 0;

    (void)fd;
    (void)what;
    if (in->at < all->len)
        n = write(in->fd, all->data + in->at, all->len - in->at);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        rank_input_shut(in); /* EPIPE: the rank closed its input */
    } else {
        in->at += n > 0 ? (size_t)n : 0;
        all->last -= had == 0 && in->at > 0;
        if (in->at < all->len) {
            event_add(in->ev, NULL);
        } else if (all->ended) {
            if (in->terminal)
                end_terminal(in);
            rank_input_shut(in);
        }
    }
    drop_consumed(all);
}

/* ------------------------------------------------------------ all inputs */

bool xr_rank_input_wanted(const struct xr_job *job, uint32_t rank)
{
    return job->input == XR_INPUT_ALL || job->input == rank;
}

rank_status_t xr_rank_input_open(const struct xr_local_io *at, bool each, struct xr_rank_input **out)
{
    struct xr_rank_input *all = calloc(1, sizeof(*all));

    if (!all)
        return RANK_ERR_NO_MEMORY;
    all->at = at;
    all->newline = true;
    all->n = each ? at->nlocal : 1;
    all->list = calloc(all->n, sizeof(*all->list));
    if (!all->list) {
        free(all);
        return RANK_ERR_NO_MEMORY;
    }
    *out = all;
    return RANK_OK;
}

rank_status_t xr_rank_input_add_terminal(struct xr_rank_input *all, int master)
{
    struct input *in = &all->list[all->added];

    *in = (struct input){.all = all, .fd = master, .terminal = true};
    evutil_make_socket_nonblocking(master);
    in->ev = event_new(all->at->base, master, EV_WRITE, rank_input_on_writable, in);
    if (!in->ev) {
        close(master);
        return RANK_ERR_NO_MEMORY;
    }
    all->added++;
    all->open++;
    all->last++;
    return RANK_OK;
}

rank_status_t xr_rank_input_add(struct xr_rank_input *all, int *fd)
{
    rank_status_t st;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return RANK_ERR_SYSTEM;
    st = xr_rank_input_add_terminal(all, ends[1]);
    if (st) {
        close(ends[0]);
        return st;
    }
    all->list[all->added - 1].terminal = false;
    *fd = ends[0];
    return RANK_OK;
}

void xr_rank_input_put(struct xr_rank_input *all, const void *data, size_t len)
{
    if (!all || !all->open || all->ended)
        return;
    if (len > sizeof(all->data) - all->len)
        len = sizeof(all->data) - all->len; /* exceeds the window: not sent by our front end */
    if (len) {
        memcpy(all->data + all->len, data, len);
        all->len += len;
        all->newline = all->data[all->len - 1] == '\n';
    } else {
        all->ended = true;
    }
    for (uint32_t i = 0; i < all->added; i++) {
        struct input *in = &all->list[i];
        if (in->fd >= 0 && !event_pending(in->ev, EV_WRITE, NULL))
            rank_input_on_writable(in->fd, EV_WRITE, in);
    }
}
