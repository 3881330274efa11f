/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output_pipe.c: read one stream of a rank and forward it in whole lines.
 *
 * Forwarded data end with a newline, so that the front end can merge the output of
 * many ranks line by line. Two exceptions:
 * - A partial line without new data is forwarded after a while: a prompt after 100
 *   ms, the end of much output after 0.5 s, a longer line after 2 s.
 * - A line too long for the buffer is passed through, while output of other ranks
 *   on that stream waits.
 */
#include "launcher/iof/rank_output_internal.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BUFFER 4096
#define GROWN_BUFFER (64 << 10) /* for much output */
#define LAST_BUFFER (256 << 10) /* for a long line, and where the pipe is as large */
#define LARGE_PIPES 64          /* a user may have 64 MiB of pipes in all before the kernel limits them */

/* A rank that loses its core in the middle of a long line, or of much output, is not at a prompt. */
#define PROMPT_MAX 1024
#define MUCH 4096
static const struct timeval prompt_time = {0, 100000}, much_time = {0, 500000}, long_line_time = {2, 0};

/* Forward the first n bytes of the buffer. */
static void forward_bytes(struct xr_output_pipe *p, size_t n, uint32_t flags)
{
    xr_rank_output_forward(p->all, p, p->data, n, flags);
    memmove(p->data, p->data + n, p->len - n);
    p->len -= n;
}

void xr_output_pipe_close(struct xr_output_pipe *p)
{
    if (p->fd >= 0) {
        event_free(p->ev);
        event_free(p->silence);
        close(p->fd);
        p->fd = -1;
    }
    if (p->len == 0) {
        free(p->data);
        p->data = NULL;
        p->cap = 0;
    }
}

/* The long line of a stream ended: forward the output of the other ranks. */
static void release_stream(struct xr_rank_output *all, int stream)
{
    all->owner[stream] = NULL;
    for (uint32_t i = 0; i < 2 * all->at->nlocal && !all->owner[stream]; i++) {
        struct xr_output_pipe *p = &all->pipes[i];
        if (!p->held || p->stream != stream)
            continue;
        p->held = false;
        xr_output_pipe_forward(p, p->ended);
        if (p->ended && !p->held) {
            all->open--;
            xr_output_pipe_close(p);
        } else if (!p->held && !all->stalled && p->fd >= 0) {
            event_add(p->ev, NULL);
        }
    }
}

void xr_output_pipe_forward(struct xr_output_pipe *p, bool all)
{
    struct xr_output_pipe **owner = &p->all->owner[p->stream];
    const char *nl;
    size_t lines;

    if (*owner && *owner != p) {
        p->held = p->len > 0;
        return;
    }
    nl = p->len ? memrchr(p->data, '\n', p->len) : NULL;
    lines = nl ? (size_t)(nl - p->data) + 1 : 0;
    if (lines) {
        forward_bytes(p, lines, 0);
        if (*owner == p)
            release_stream(p->all, p->stream);
        if (*owner) { /* one of the waiting pipes */
            p->held = p->len > 0;
            return;
        }
    }
    if (all) {
        forward_bytes(p, p->len, XR_OUT_PARTIAL);
        if (*owner == p)
            release_stream(p->all, p->stream);
    } else if (p->len == LAST_BUFFER) {
        *owner = p;
        forward_bytes(p, p->len, XR_OUT_PARTIAL);
    }
}

/* Enlarge pipe and buffer: fewer and longer reads and writes. */
static void enlarge_pipe(struct xr_output_pipe *p)
{
    if (p->large || p->terminal || p->all->large == LARGE_PIPES ||
        fcntl(p->fd, F_SETPIPE_SZ, LAST_BUFFER) < 0)
        return;
    p->large = true;
    p->all->large++;
}

/* Make room for a read: more if the last one filled the buffer. */
static bool out_pipe_make_room(struct xr_output_pipe *p)
{
    size_t cap = p->cap ? p->cap * 2 : FIRST_BUFFER;
    char *data;

    if (p->len < p->cap && !p->grow)
        return true;
    if (p->grow && cap > GROWN_BUFFER)
        enlarge_pipe(p);
    p->grow = false;
    data = cap <= LAST_BUFFER ? realloc(p->data, cap) : NULL;
    if (data) {
        p->data = data;
        p->cap = cap;
    }
    return p->len < p->cap;
}

static void count_last_bytes(struct xr_output_pipe *p, size_t n)
{
    p->last -= n < p->last ? n : p->last;
}

void xr_output_pipe_watch(struct xr_output_pipe *p)
{
    bool passing = p->all->owner[p->stream] == p;

    if (p->len || passing)
        event_add(p->silence, passing || p->len > PROMPT_MAX ? &long_line_time
                              : p->burst > MUCH                  ? &much_time
                                                                 : &prompt_time);
    p->burst = 0;
}

void xr_output_pipe_finish(struct xr_output_pipe *p)
{
    p->ended = true;
    xr_output_pipe_forward(p, true);
    event_del(p->ev);
    if (!p->held) {
        p->all->open--;
        xr_output_pipe_close(p);
    }
}

bool xr_output_pipe_read(struct xr_output_pipe *p)
{
    struct xr_rank_output *all = p->all;
    ssize_t n;

    if (p->fd < 0 || p->held || all->stalled || p->ended)
        return false;
    if (!out_pipe_make_room(p)) {
        /* Out of memory: forward it as it is. */
        xr_output_pipe_forward(p, true);
        if (p->len == p->cap)
            return false;
    }
    n = read(p->fd, p->data + p->len, p->cap - p->len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        /* Only now is it certain that the rank is silent, and not this process. */
        xr_output_pipe_watch(p);
        return false;
    }
    event_del(p->silence);
    if (n <= 0) {
        xr_output_pipe_finish(p);
        return false;
    }
    count_last_bytes(p, (size_t)n);
    p->len += (size_t)n;
    p->burst += (size_t)n;
    p->grow = p->len == p->cap && p->cap < LAST_BUFFER;
    xr_output_pipe_forward(p, p->terminal);
    if (p->held)
        event_del(p->ev);
    if (*all->at->wire && all->unacked > all->window && !all->stalled)
        xr_rank_output_stop(all);
    return true;
}

static void on_pipe_readable(evutil_socket_t fd, short what, void *arg)
{
    struct xr_output_pipe *p = arg;
    struct xr_rank_output *all = p->all;

    (void)fd;
    (void)what;
    /* Limit the rounds, so that other pipes get their turn. */
    for (int i = 0; i < 4 && xr_output_pipe_read(p); i++)
        ;
    all->at->on_progress(all->at->arg);
}

static void on_pipe_silence(evutil_socket_t fd, short what, void *arg)
{
    struct xr_output_pipe *p = arg;

    (void)fd;
    (void)what;
    xr_output_pipe_forward(p, true);
    if (p->held) /* its wait may take long: do not poll meanwhile */
        event_del(p->ev);
}

rank_status_t xr_output_pipe_open(struct xr_output_pipe *p, struct xr_rank_output *all, uint32_t rank, int stream, int fd)
{
    p->all = all;
    p->rank = rank;
    p->stream = stream;
    p->fd = fd;
    evutil_make_socket_nonblocking(p->fd);
    p->ev = event_new(all->at->base, p->fd, EV_READ | EV_PERSIST, on_pipe_readable, p);
    p->silence = evtimer_new(all->at->base, on_pipe_silence, p);
    if (!p->ev || !p->silence || event_add(p->ev, NULL)) {
        rk_error("out of memory for the output of rank %u", rank);
        if (p->ev)
            event_free(p->ev);
        if (p->silence)
            event_free(p->silence);
        close(fd);
        p->fd = -1;
        return RANK_ERR_NO_MEMORY;
    }
    all->open++;
    return RANK_OK;
}
