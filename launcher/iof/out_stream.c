/* SPDX-License-Identifier: BSD-3-Clause */
/* out_stream.c: see out_stream.h. */
#include "launcher/iof/out_stream.h"
#include "lib/base/conf.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DRAINED (256 << 10)
#define LABEL_MAX 384
#define LARGE_PIPE (256 << 10)

struct xr_stream {
    int fd, reopened; /* reopened: fd or -1 */
    size_t at_once;   /* largest write that does not block; 0: any size */
    bool socket;
    bool always; /* a file: always ready, cannot be polled */
    struct xr_label label;
    bool colour;   /* a terminal with colours */
    bool separate; /* end the partial line of another writer before the next output */
    bool broken;
    bool large; /* the pipe was enlarged */
    bool open_line; /* the last byte written did not end a line */
    uint32_t open_rank;
    struct xr_stream *twin; /* stream with the same terminal, pipe or file; or NULL */
    struct event *ev;
    struct evbuffer *queue;
    uint64_t written;
    const struct xr_stream_ops *ops;
    void *arg;
};

static bool labels(const struct xr_stream *s)
{
    return s->label.time || s->label.rank || s->label.host;
}

/* Return whether colours may be used. NO_COLOR is a convention of many programs; a "dumb" terminal has none. */
static bool shows_colours(void)
{
    const char *no = rk_env("NO_COLOR"), *term = rk_env("TERM");

    return !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

/*
 * Reopen a pipe or terminal, so that only our open file is nonblocking. If that fails, a write is at most what
 * fits after poll has reported room.
 */
static void out_stream_prepare(struct xr_stream *s, int fd)
{
    char path[32];
    struct stat st;

    s->fd = fd;
    s->reopened = -1;
    if (fstat(fd, &st))
        return;
    s->separate = labels(s) || isatty(fd);
    s->colour = isatty(fd) && shows_colours();
    s->socket = S_ISSOCK(st.st_mode);
    s->always = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
    if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
        return;
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) /* no output: the first write reports it */
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    s->reopened = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (s->reopened >= 0)
        s->fd = s->reopened;
    else
        s->at_once = PIPE_BUF;
}

static ssize_t write_some(struct xr_stream *s)
{
    struct evbuffer_iovec v;
    ssize_t n;

    if (s->socket) {
        if (evbuffer_peek(s->queue, -1, NULL, &v, 1) < 1)
            return 0;
        n = send(s->fd, v.iov_base, v.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            evbuffer_drain(s->queue, (size_t)n);
        return n;
    }
    return evbuffer_write_atmost(s->queue, s->fd, s->at_once ? (ev_ssize_t)s->at_once : -1);
}

static void out_stream_give_up(struct xr_stream *s, int error)
{
    s->broken = true;
    evbuffer_drain(s->queue, evbuffer_get_length(s->queue));
    s->ops->on_broken(s->arg, s, error);
}

static void flush(struct xr_stream *s)
{
    while (!s->broken && xr_stream_backlog(s)) {
        ssize_t n = write_some(s);
        if (n > 0)
            s->written += (uint64_t)n;
        else if (n < 0 && errno == EAGAIN)
            break;
        else if (n < 0 && errno != EINTR)
            out_stream_give_up(s, errno);
        if (s->at_once)
            break; /* poll before each write */
    }
    if (xr_stream_backlog(s) && s->ev)
        event_add(s->ev, NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct xr_stream *s = arg;

    (void)fd;
    (void)what;
    flush(s);
    if (xr_stream_backlog(s) < DRAINED)
        s->ops->on_drained(s->arg);
}

rank_status_t xr_stream_open(struct event_base *base, int fd, const struct xr_label *label,
                             const struct xr_stream_ops *ops, void *arg, struct xr_stream **out)
{
    struct xr_stream *s = calloc(1, sizeof(*s));

    if (!s)
        return RANK_ERR_NO_MEMORY;
    s->label = *label;
    s->ops = ops;
    s->arg = arg;
    out_stream_prepare(s, fd);
    s->queue = evbuffer_new();
    if (!s->always)
        s->ev = event_new(base, s->fd, EV_WRITE, on_writable, s);
    if (!s->queue || (!s->always && !s->ev)) {
        xr_stream_close(s);
        return RANK_ERR_NO_MEMORY;
    }
    *out = s;
    return RANK_OK;
}

void xr_stream_pair(struct xr_stream *a, struct xr_stream *b)
{
    struct stat sa, sb;

    if (fstat(a->fd, &sa) || fstat(b->fd, &sb) || sa.st_dev != sb.st_dev || sa.st_ino != sb.st_ino)
        return;
    a->twin = b;
    b->twin = a;
}

void xr_stream_close(struct xr_stream *s)
{
    if (!s)
        return;
    if (s->twin)
        s->twin->twin = NULL;
    if (s->ev)
        event_free(s->ev);
    if (s->queue)
        evbuffer_free(s->queue);
    if (s->reopened >= 0)
        close(s->reopened);
    free(s);
}

/* Enlarge the pipe: its reader is behind, or one write exceeds it. */
static void out_stream_enlarge(struct xr_stream *s)
{
    if (s->reopened >= 0 && !s->large)
        s->large = fcntl(s->fd, F_SETPIPE_SZ, LARGE_PIPE) > 0;
}

/* Write as much as possible without a copy; the caller queues the rest. */
static size_t put_at_once(struct xr_stream *s, const char *data, size_t len)
{
    ssize_t n;

    if (labels(s) || s->socket || s->at_once || xr_stream_backlog(s))
        return 0;
    n = write(s->fd, data, len);
    if (n <= 0)
        return 0; /* the write from the queue reports the error */
    s->written += (uint64_t)n;
    if ((size_t)n < len)
        out_stream_enlarge(s);
    return (size_t)n;
}

/* End a line that another writer left open, here or in the twin, before output of rank (UINT32_MAX: xrun). */
static void separate(struct xr_stream *s, uint32_t rank)
{
    struct xr_stream *open = s->twin && s->twin->open_line ? s->twin : s;

    if (open->open_line && open->open_rank != rank && (s->separate || rank == UINT32_MAX)) {
        evbuffer_add(s->queue, "\n", 1);
        s->open_line = open->open_line = false;
    }
}

/* Format the label of a rank's line. Returns its length. */
static size_t label_text(const struct xr_stream *s, uint32_t rank, char *text, size_t len)
{
    const struct xr_label *l = &s->label;
    bool names = l->rank || l->host;
    struct timespec now;
    struct tm tm;
    size_t n = 0;

    if (l->time) {
        clock_gettime(CLOCK_REALTIME, &now);
        localtime_r(&now.tv_sec, &tm);
        n = strftime(text, len, "%Y-%m-%dT%H:%M:%S", &tm);
        n += (size_t)snprintf(text + n, len - n, ".%03ld ", now.tv_nsec / 1000000);
    }
    if (s->colour && names)
        n += (size_t)snprintf(text + n, len - n, "\033[3%um", 1 + rank % 6);
    if (l->rank && l->host)
        n += (size_t)snprintf(text + n, len - n, "[%.256s:%u]", l->host(l->host_arg, rank), rank);
    else if (l->rank)
        n += (size_t)snprintf(text + n, len - n, "[%u]", rank);
    else if (l->host)
        n += (size_t)snprintf(text + n, len - n, "[%.256s]", l->host(l->host_arg, rank));
    if (names)
        n += (size_t)snprintf(text + n, len - n, "%s ", s->colour ? "\033[0m" : "");
    return n;
}

static const char *line_end(const char *p, const char *end)
{
    const char *nl = memchr(p, '\n', (size_t)(end - p));

    return nl ? nl + 1 : end;
}

/* Label many lines in one block of memory. fresh: the first one begins here. */
static void put_labelled(struct xr_stream *s, uint32_t rank, const char *data, size_t len, bool fresh)
{
    char label[LABEL_MAX], *to;
    size_t nlabel = label_text(s, rank, label, sizeof(label)), lines = 0;
    const char *end = data + len, *next;
    struct evbuffer_iovec v;

    for (const char *p = data; p < end; p = line_end(p, end))
        lines++;
    if (evbuffer_reserve_space(s->queue, (ev_ssize_t)(len + lines * nlabel), &v, 1) != 1)
        return; /* out of memory: lost, as inside libevent */
    to = v.iov_base;
    for (const char *p = data; p < end; p = next, fresh = true) {
        next = line_end(p, end);
        if (fresh) {
            memcpy(to, label, nlabel);
            to += nlabel;
        }
        memcpy(to, p, (size_t)(next - p));
        to += next - p;
    }
    v.iov_len = (size_t)(to - (char *)v.iov_base);
    evbuffer_commit_space(s->queue, &v, 1);
}

void xr_stream_put(struct xr_stream *s, uint32_t rank, const char *data, size_t len, bool partial)
{
    if (s->broken || len == 0)
        return;
    separate(s, rank);
    if (!labels(s)) {
        size_t n = put_at_once(s, data, len);
        if (n < len)
            evbuffer_add(s->queue, data + n, len - n);
    } else {
        put_labelled(s, rank, data, len, !s->open_line);
    }
    s->open_line = partial;
    s->open_rank = rank;
    flush(s);
}

void xr_stream_pass(struct xr_stream *s, const char *data, size_t len)
{
    if (s->broken || len == 0)
        return;
    separate(s, UINT32_MAX - 1);
    evbuffer_add(s->queue, data, len);
    s->open_line = data[len - 1] != '\n';
    s->open_rank = UINT32_MAX - 1;
    flush(s);
}

void xr_stream_print(struct xr_stream *s, const char *fmt, ...)
{
    va_list ap;

    if (s->broken)
        return;
    separate(s, UINT32_MAX);
    va_start(ap, fmt);
    if (s->colour)
        evbuffer_add_printf(s->queue, "\033[1m");
    evbuffer_add_vprintf(s->queue, fmt, ap);
    va_end(ap);
    evbuffer_add_printf(s->queue, "%s\n", s->colour ? "\033[0m" : "");
    flush(s);
}

void xr_stream_recover(struct xr_stream *s, char *data, size_t len, uint32_t *rank, bool *partial)
{
    evbuffer_remove(s->queue, data, len);
    *rank = s->open_rank;
    *partial = s->open_line;
}

size_t xr_stream_backlog(const struct xr_stream *s)
{
    return evbuffer_get_length(s->queue);
}

uint64_t xr_stream_written(const struct xr_stream *s)
{
    return s->written;
}
