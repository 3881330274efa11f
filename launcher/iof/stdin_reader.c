/* SPDX-License-Identifier: BSD-3-Clause */
/* stdin_reader.c: see stdin_reader.h. */
#include "launcher/iof/stdin_reader.h"
#include "launcher/overlay/protocol.h"
#include "launcher/iof/user_tty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Period at which a background reader checks whether it is still in the background: fg of a shell may send no
 * signal.
 */
#define CHECK_MS 500

struct xr_reader {
    int fd;
    int reopened; /* our own open file, or -1: fd is the user's */
    struct event *ev; /* for a file, which cannot be polled: a timer */
    struct event *look;
    bool file, terminal, socket;
    uint32_t credit;
    void (*on_data)(void *arg, const void *data, size_t len, int error);
    void *arg;
};

static const struct timeval at_once = {0, 0};

static void resume_reader(struct xr_reader *r)
{
    const struct timeval soon = {0, CHECK_MS * 1000};

    if (!r->ev || !r->credit)
        return;
    if (r->terminal && xr_user_tty_is_others(r->fd)) /* a read would stop xrun */
        event_add(r->look, &soon);
    else
        event_add(r->ev, r->file ? &at_once : NULL);
}

static void on_reader_check(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    resume_reader(arg);
}

/* Read without waiting, unless the file could not be reopened. Another process with the same input may read first. */
static ssize_t read_some(struct xr_reader *r, void *to, size_t len)
{
    return r->socket ? recv(r->fd, to, len, MSG_DONTWAIT) : read(r->fd, to, len);
}

/*
 * Return whether the error means that there is no input: a terminal is gone, or nohup left an input open for
 * writing only.
 */
static bool is_no_input(const struct xr_reader *r, int error)
{
    return error == EBADF || (r->terminal && error == EIO);
}

static void stdin_reader_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct xr_reader *r = arg;
    char data[16 << 10];
    size_t want = r->credit < sizeof(data) ? r->credit : sizeof(data);
    ssize_t n;

    (void)fd;
    (void)what;
    if (r->terminal && xr_user_tty_is_others(r->fd)) {
        resume_reader(r);
        return;
    }
    n = read_some(r, data, want);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        resume_reader(r);
        return;
    }
    if (n > 0) {
        r->credit -= (uint32_t)n;
        r->on_data(r->arg, data, (size_t)n, 0);
        resume_reader(r);
    } else {
        int error = n < 0 && !is_no_input(r, errno) ? errno : 0;
        event_free(r->ev);
        r->ev = NULL;
        r->on_data(r->arg, NULL, 0, error);
    }
}

/* Reopen the input: our own open file can be nonblocking without effect on other processes. */
static void reopen(struct xr_reader *r)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
    r->reopened = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (r->reopened >= 0)
        r->fd = r->reopened;
}

rank_status_t xr_reader_open(struct event_base *base, int fd,
                             void (*on_data)(void *arg, const void *data, size_t len, int error), void *arg,
                             struct xr_reader **out)
{
    struct xr_reader *r = calloc(1, sizeof(*r));
    struct stat st;

    if (!r)
        return RANK_ERR_NO_MEMORY;
    r->fd = fd;
    r->credit = XR_INPUT_WINDOW;
    r->on_data = on_data;
    r->arg = arg;
    r->terminal = isatty(fd);
    r->reopened = -1;
    r->file = fstat(fd, &st) || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || r->terminal);
    r->socket = !r->file && S_ISSOCK(st.st_mode);
    if (!r->file && !r->socket)
        reopen(r);
    r->ev = r->file ? evtimer_new(base, stdin_reader_on_readable, r)
                    : event_new(base, r->fd, EV_READ, stdin_reader_on_readable, r);
    r->look = evtimer_new(base, on_reader_check, r);
    if (!r->ev || !r->look) {
        xr_reader_close(r);
        return RANK_ERR_NO_MEMORY;
    }
    *out = r;
    resume_reader(r);
    return RANK_OK;
}

void xr_reader_close(struct xr_reader *r)
{
    if (!r)
        return;
    if (r->ev)
        event_free(r->ev);
    if (r->look)
        event_free(r->look);
    if (r->reopened >= 0)
        close(r->reopened);
    free(r);
}

void xr_reader_credit(struct xr_reader *r, uint32_t n)
{
    if (!r)
        return;
    r->credit = n > XR_INPUT_WINDOW - r->credit ? XR_INPUT_WINDOW : r->credit + n;
    resume_reader(r);
}

void xr_reader_wake(struct xr_reader *r)
{
    if (r)
        resume_reader(r);
}
