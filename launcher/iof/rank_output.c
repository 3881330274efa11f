/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_output.c: read and forward what ranks write. See rank_output.h.
 *
 * Forwarded data end with a newline, so that the front end can merge the output of
 * many ranks line by line. Two exceptions:
 * - A partial line without new data is forwarded after a while: a prompt after 100
 *   ms, the end of much output after 0.5 s, a longer line after 2 s.
 * - A line too long for the buffer is passed through, while output of other ranks
 *   on that stream waits.
 *
 * On xrun's own host the agent may write to the user's standard output itself
 * (direct_out.h). Else the front end acknowledges what the user's reader has
 * taken. If too much is unacknowledged, reading stops, and then the ranks' writes
 * block. PMIx on the same connection continues.
 */
#include "launcher/iof/rank_output.h"
#include "launcher/overlay/protocol.h"
#include "launcher/iof/out_stream.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_BUFFER 4096
#define GROWN_BUFFER (64 << 10) /* for much output */
#define LAST_BUFFER (256 << 10) /* for a long line, and where the pipe is as large */
#define LARGE_PIPES 64          /* a user may have 64 MiB of pipes in all before the kernel limits them */
#define LEAST_WINDOW (64 << 10)  /* bytes sent to the front end and not yet acknowledged */
#define WHOLE_WINDOW (32 << 20)  /* of all hosts together */
#define MOST_WINDOW (1 << 20)

/* A rank that loses its core in the middle of a long line, or of much output, is not at a prompt. */
#define PROMPT_MAX 1024
#define MUCH 4096
static const struct timeval prompt_time = {0, 100000}, much_time = {0, 500000}, long_line_time = {2, 0};

struct pipe {
    struct xr_outputs *all;
    uint32_t rank;
    int stream;
    int fd; /* -1: ended */
    struct event *ev, *silence;
    char *data;
    size_t len, cap;
    size_t burst; /* bytes since the pipe was last empty */
    bool held;  /* has data, but waits for the end of another rank's long line */
    bool ended; /* end of file; may still be held */
    bool terminal; /* forwarded at once: interactive */
    bool grow;  /* the last read filled the buffer */
    bool large; /* the pipe holds LAST_BUFFER */
    size_t last; /* bytes still to be read after the processes of the job are gone */
};

struct xr_outputs {
    const struct xr_local_io *at;
    struct pipe *pipes; /* two a rank */
    struct pipe *owner[3]; /* by stream: the rank whose long line is passing */
    uint32_t open;
    struct xr_stream *direct; /* standard output, if the agent writes it */
    uint32_t large; /* pipes that were enlarged */
    uint64_t unacked; /* bytes not yet acknowledged by the front end */
    uint64_t window;
    bool stalled;
};

static void rank_output_forward(struct pipe *p, bool all);
static void stop_all(struct xr_outputs *all);
static void resume(struct xr_outputs *all);

/* ------------------------------------------------ direct standard output */

static void show_direct(struct xr_outputs *all)
{
    atomic_store(&all->at->direct->written, xr_stream_written(all->direct));
    atomic_store(&all->at->direct->queued, xr_stream_backlog(all->direct));
    if (!all->stalled && xr_stream_backlog(all->direct))
        stop_all(all);
}

static void rank_output_on_drained(void *arg)
{
    struct xr_outputs *all = arg;

    show_direct(all);
    if (xr_stream_backlog(all->direct))
        return;
    if (all->stalled && all->unacked <= all->window / 2)
        resume(all);
    all->at->on_progress(all->at->arg);
}

/* The front end handles the error. Later output is dropped. */
static void rank_output_on_broken(void *arg, struct xr_stream *stream, int error)
{
    struct xr_outputs *all = arg;
    struct xr_packer p = {0};

    (void)stream;
    xr_pack_u32(&p, (uint32_t)error);
    if (*all->at->wire)
        xr_wire_send(*all->at->wire, XR_MSG_BROKEN, &p);
    else
        xr_packer_free(&p);
}

static rank_status_t open_direct(struct xr_outputs *all)
{
    static const struct xr_label none;
    static const struct xr_stream_ops ops = {rank_output_on_drained, rank_output_on_broken};

    if (!all->at->direct)
        return RANK_OK;
    return xr_stream_open(all->at->base, all->at->direct->fd, &none, &ops, all, &all->direct);
}

/* Queued data go to the front end before its next message. */
void xr_outputs_share(struct xr_outputs *all)
{
    size_t n = all && all->direct ? xr_stream_backlog(all->direct) : 0;
    struct xr_packer msg = {0};
    char *data = NULL;
    uint32_t rank;
    bool partial;

    if (!all || !all->direct || !*all->at->wire)
        return;
    if (n && !(data = malloc(n)))
        return; /* lines may be torn, but none is lost */
    if (n) {
        xr_stream_take_back(all->direct, data, n, &rank, &partial);
        xr_pack_u32(&msg, rank);
        xr_pack_u32(&msg, 1);
        xr_pack_u32(&msg, partial ? XR_OUT_PARTIAL : 0);
        xr_pack_bytes(&msg, data, n);
        xr_wire_send(*all->at->wire, XR_MSG_OUTPUT, &msg);
        all->unacked += n;
    }
    free(data);
    atomic_store(&all->at->direct->queued, 0);
    xr_stream_close(all->direct);
    all->direct = NULL;
    if (all->stalled && all->unacked <= all->window / 2)
        resume(all);
}

bool xr_outputs_log(struct xr_outputs *all, uint32_t rank, int stream, const char *text)
{
    size_t len = strlen(text);

    if (!all || !all->direct || stream != 1)
        return false;
    xr_stream_put(all->direct, rank, text, len, len && text[len - 1] != '\n');
    show_direct(all);
    return true;
}

/* ----------------------------------------------------------------- pipes */

static void send_bytes(struct pipe *p, size_t n, uint32_t flags)
{
    struct xr_wire *wire = *p->all->at->wire;
    struct xr_packer msg = {0};

    if (n && p->stream == 1 && p->all->direct) {
        xr_stream_put(p->all->direct, p->rank, p->data, n, flags & XR_OUT_PARTIAL);
        show_direct(p->all);
    } else if (n && wire) {
        xr_pack_u32(&msg, p->rank);
        xr_pack_u32(&msg, (uint32_t)p->stream);
        xr_pack_u32(&msg, flags);
        xr_pack_bytes(&msg, p->data, n);
        xr_wire_send(wire, XR_MSG_OUTPUT, &msg);
        p->all->unacked += n;
    }
    memmove(p->data, p->data + n, p->len - n);
    p->len -= n;
}

static void rank_output_forget(struct pipe *p)
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
static void rank_output_release(struct xr_outputs *all, int stream)
{
    all->owner[stream] = NULL;
    for (uint32_t i = 0; i < 2 * all->at->nlocal && !all->owner[stream]; i++) {
        struct pipe *p = &all->pipes[i];
        if (!p->held || p->stream != stream)
            continue;
        p->held = false;
        rank_output_forward(p, p->ended);
        if (p->ended && !p->held) {
            all->open--;
            rank_output_forget(p);
        } else if (!p->held && !all->stalled && p->fd >= 0) {
            event_add(p->ev, NULL);
        }
    }
}

/* Forward what may be forwarded; all: also a partial line. */
static void rank_output_forward(struct pipe *p, bool all)
{
    struct pipe **owner = &p->all->owner[p->stream];
    const char *nl;
    size_t lines;

    if (*owner && *owner != p) {
        p->held = p->len > 0;
        return;
    }
    nl = p->len ? memrchr(p->data, '\n', p->len) : NULL;
    lines = nl ? (size_t)(nl - p->data) + 1 : 0;
    if (lines) {
        send_bytes(p, lines, 0);
        if (*owner == p)
            rank_output_release(p->all, p->stream);
        if (*owner) { /* one of the waiting pipes */
            p->held = p->len > 0;
            return;
        }
    }
    if (all) {
        send_bytes(p, p->len, XR_OUT_PARTIAL);
        if (*owner == p)
            rank_output_release(p->all, p->stream);
    } else if (p->len == LAST_BUFFER) {
        *owner = p;
        send_bytes(p, p->len, XR_OUT_PARTIAL);
    }
}

/* Enlarge pipe and buffer: fewer and longer reads and writes. */
static void rank_output_enlarge(struct pipe *p)
{
    if (p->large || p->terminal || p->all->large == LARGE_PIPES ||
        fcntl(p->fd, F_SETPIPE_SZ, LAST_BUFFER) < 0)
        return;
    p->large = true;
    p->all->large++;
}

/* Make room for a read: more if the last one filled the buffer. */
static bool rank_output_make_room(struct pipe *p)
{
    size_t cap = p->cap ? p->cap * 2 : FIRST_BUFFER;
    char *data;

    if (p->len < p->cap && !p->grow)
        return true;
    if (p->grow && cap > GROWN_BUFFER)
        rank_output_enlarge(p);
    p->grow = false;
    data = cap <= LAST_BUFFER ? realloc(p->data, cap) : NULL;
    if (data) {
        p->data = data;
        p->cap = cap;
    }
    return p->len < p->cap;
}

static void stop_all(struct xr_outputs *all)
{
    all->stalled = true;
    for (uint32_t i = 0; i < 2 * all->at->nlocal; i++) {
        if (all->pipes[i].fd >= 0) {
            event_del(all->pipes[i].ev);
            event_del(all->pipes[i].silence);
        }
    }
}

static void count_last(struct pipe *p, size_t n)
{
    p->last -= n < p->last ? n : p->last;
}

/* Start the timer of a partial line. */
static void watch_silence(struct pipe *p)
{
    bool passing = p->all->owner[p->stream] == p;

    if (p->len || passing)
        event_add(p->silence, passing || p->len > PROMPT_MAX ? &long_line_time
                              : p->burst > MUCH                  ? &much_time
                                                                 : &prompt_time);
    p->burst = 0;
}

/* Close the pipe. */
static void rank_output_finish(struct pipe *p)
{
    p->ended = true;
    rank_output_forward(p, true);
    event_del(p->ev);
    if (!p->held) {
        p->all->open--;
        rank_output_forget(p);
    }
}

/* Read once. Returns false if there is no more for now. */
static bool read_pipe(struct pipe *p)
{
    struct xr_outputs *all = p->all;
    ssize_t n;

    if (p->fd < 0 || p->held || all->stalled || p->ended)
        return false;
    if (!rank_output_make_room(p)) {
        /* Out of memory: forward it as it is. */
        rank_output_forward(p, true);
        if (p->len == p->cap)
            return false;
    }
    n = read(p->fd, p->data + p->len, p->cap - p->len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        /* Only now is it certain that the rank is silent, and not this process. */
        watch_silence(p);
        return false;
    }
    event_del(p->silence);
    if (n <= 0) {
        rank_output_finish(p);
        return false;
    }
    count_last(p, (size_t)n);
    p->len += (size_t)n;
    p->burst += (size_t)n;
    p->grow = p->len == p->cap && p->cap < LAST_BUFFER;
    rank_output_forward(p, p->terminal);
    if (p->held)
        event_del(p->ev);
    if (*all->at->wire && all->unacked > all->window && !all->stalled)
        stop_all(all);
    return true;
}

static void rank_output_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct pipe *p = arg;
    struct xr_outputs *all = p->all;

    (void)fd;
    (void)what;
    /* Limit the rounds, so that other pipes get their turn. */
    for (int i = 0; i < 4 && read_pipe(p); i++)
        ;
    all->at->on_progress(all->at->arg);
}

static void on_silence(evutil_socket_t fd, short what, void *arg)
{
    struct pipe *p = arg;

    (void)fd;
    (void)what;
    rank_output_forward(p, true);
    if (p->held) /* its wait may take long: do not poll meanwhile */
        event_del(p->ev);
}

rank_status_t xr_outputs_open(const struct xr_local_io *at, struct xr_outputs **out)
{
    struct xr_outputs *all = calloc(1, sizeof(*all));

    if (!all)
        return RANK_ERR_NO_MEMORY;
    all->at = at;
    all->window = WHOLE_WINDOW / at->nhosts;
    if (all->window < LEAST_WINDOW)
        all->window = LEAST_WINDOW;
    if (all->window > MOST_WINDOW)
        all->window = MOST_WINDOW;
    all->pipes = calloc(2 * (size_t)at->nlocal, sizeof(*all->pipes));
    if (!all->pipes) {
        free(all);
        return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < 2 * at->nlocal; i++)
        all->pipes[i].fd = -1;
    if (open_direct(all)) {
        xr_outputs_close(all);
        return RANK_ERR_NO_MEMORY;
    }
    *out = all;
    return RANK_OK;
}

void xr_outputs_close(struct xr_outputs *all)
{
    if (!all)
        return;
    for (uint32_t i = 0; i < 2 * all->at->nlocal; i++) {
        all->pipes[i].len = 0;
        rank_output_forget(&all->pipes[i]);
    }
    free(all->pipes);
    xr_stream_close(all->direct);
    free(all);
}

/* Takes ownership of fd. */
static rank_status_t add_fd(struct xr_outputs *all, uint32_t local, int stream, int fd)
{
    struct pipe *p = &all->pipes[2 * local + (uint32_t)stream - 1];
    uint32_t rank = all->at->rank_of(all->at->arg, local);

    p->all = all;
    p->rank = rank;
    p->stream = stream;
    p->fd = fd;
    evutil_make_socket_nonblocking(p->fd);
    p->ev = event_new(all->at->base, p->fd, EV_READ | EV_PERSIST, rank_output_on_readable, p);
    p->silence = evtimer_new(all->at->base, on_silence, p);
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

rank_status_t xr_outputs_add(struct xr_outputs *all, uint32_t local, int stream, int *fd)
{
    rank_status_t st;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC)) {
        rk_error("no pipe for the output of rank %u: %m", all->at->rank_of(all->at->arg, local));
        return RANK_ERR_SYSTEM;
    }
    st = add_fd(all, local, stream, ends[0]);
    if (st)
        close(ends[1]);
    else
        *fd = ends[1];
    return st;
}

rank_status_t xr_outputs_add_terminal(struct xr_outputs *all, uint32_t local, int master)
{
    all->pipes[2 * local].terminal = true;
    return add_fd(all, local, 1, master);
}

void xr_outputs_drain(struct xr_outputs *all, uint32_t local)
{
    for (uint32_t i = 2 * local; i < 2 * local + 2; i++) {
        while (read_pipe(&all->pipes[i]))
            ;
        /* All of its output was read, even if other processes hold the pipe. */
        if (all->pipes[i].fd >= 0 && !all->stalled)
            rank_output_forward(&all->pipes[i], true);
    }
}

void xr_outputs_note_last(struct xr_outputs *all)
{
    for (uint32_t i = 0; all && i < 2 * all->at->nlocal; i++) {
        struct pipe *p = &all->pipes[i];
        int n = 0;

        if (p->fd >= 0 && ioctl(p->fd, FIONREAD, &n) == 0 && n > 0)
            p->last = (size_t)n;
    }
}

void xr_outputs_cut(struct xr_outputs *all)
{
    for (uint32_t i = 0; all && i < 2 * all->at->nlocal; i++) {
        struct pipe *p = &all->pipes[i];

        if (p->fd >= 0 && !p->ended && p->last == 0)
            rank_output_finish(p);
    }
}

uint32_t xr_outputs_open_count(const struct xr_outputs *all)
{
    return all ? all->open + (all->direct && xr_stream_backlog(all->direct)) : 0;
}

bool xr_outputs_stalled(const struct xr_outputs *all)
{
    return all && all->stalled;
}

static void resume(struct xr_outputs *all)
{
    all->stalled = false;
    for (uint32_t i = 0; i < 2 * all->at->nlocal; i++) {
        struct pipe *p = &all->pipes[i];
        if (p->fd < 0 || p->held || p->ended)
            continue;
        event_add(p->ev, NULL);
        watch_silence(p);
    }
}

void xr_outputs_taken(struct xr_outputs *all, uint32_t bytes)
{
    if (!all)
        return;
    all->unacked -= bytes < all->unacked ? bytes : all->unacked;
    if (all->stalled && all->unacked <= all->window / 2 &&
        !(all->direct && xr_stream_backlog(all->direct)))
        resume(all);
}

void xr_outputs_let_go(struct xr_outputs *all)
{
    if (!all)
        return;
    xr_stream_close(all->direct);
    all->direct = NULL;
    if (all->stalled)
        resume(all);
}
