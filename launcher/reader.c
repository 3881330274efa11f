/* reader.c: see reader.h. */
#include "launcher/reader.h"
#include "launcher/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct rk_reader {
    int fd;
    struct event *ev; /* of a file, which cannot be polled: a timer */
    bool file, terminal;
    uint32_t credit;
    void (*on_data)(void *arg, const void *data, size_t len);
    void *arg;
};

static const struct timeval at_once = {0, 0};

/* To read a terminal from the background would stop xrun. */
static bool in_background(const struct rk_reader *r)
{
    return r->terminal && tcgetpgrp(r->fd) != getpgrp();
}

static void go_on(struct rk_reader *r)
{
    if (r->ev && r->credit && !in_background(r))
        event_add(r->ev, r->file ? &at_once : NULL);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct rk_reader *r = arg;
    char data[16 << 10];
    size_t want = r->credit < sizeof(data) ? r->credit : sizeof(data);
    ssize_t n;

    (void)fd;
    (void)what;
    if (in_background(r))
        return;
    n = read(r->fd, data, want);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        go_on(r);
        return;
    }
    if (n > 0) {
        r->credit -= (uint32_t)n;
        r->on_data(r->arg, data, (size_t)n);
        go_on(r);
    } else {
        event_free(r->ev);
        r->ev = NULL;
        r->on_data(r->arg, NULL, 0); /* an error ends the input as its end does */
    }
}

rank_status_t rk_reader_open(struct event_base *base, int fd,
                             void (*on_data)(void *arg, const void *data, size_t len), void *arg,
                             struct rk_reader **out)
{
    struct rk_reader *r = calloc(1, sizeof(*r));
    struct stat st;

    if (!r)
        return RANK_ERR_NO_MEMORY;
    r->fd = fd;
    r->credit = RK_INPUT_WINDOW;
    r->on_data = on_data;
    r->arg = arg;
    r->terminal = isatty(fd);
    r->file = fstat(fd, &st) || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || r->terminal);
    r->ev = r->file ? evtimer_new(base, on_readable, r)
                    : event_new(base, fd, EV_READ, on_readable, r);
    if (!r->ev) {
        free(r);
        return RANK_ERR_NO_MEMORY;
    }
    *out = r;
    go_on(r);
    return RANK_OK;
}

void rk_reader_close(struct rk_reader *r)
{
    if (!r)
        return;
    if (r->ev)
        event_free(r->ev);
    free(r);
}

void rk_reader_credit(struct rk_reader *r, uint32_t n)
{
    if (!r)
        return;
    r->credit = n > RK_INPUT_WINDOW - r->credit ? RK_INPUT_WINDOW : r->credit + n;
    go_on(r);
}

void rk_reader_wake(struct rk_reader *r)
{
    if (r)
        go_on(r);
}
