/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_output.c: read and forward what ranks write. See rank_output.h.
 *
 * On xrun's own host the agent may write to the user's standard output itself
 * (direct_out.h). Else the front end acknowledges what the user's reader has
 * taken. If too much is unacknowledged, reading stops, and then the ranks' writes
 * block. PMIx on the same connection continues.
 */
#include "launcher/iof/rank_output_internal.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST_WINDOW (64 << 10)  /* bytes sent to the front end and not yet acknowledged */
#define WHOLE_WINDOW (32 << 20)  /* of all hosts together */
#define MOST_WINDOW (1 << 20)

static void resume_reading(struct xr_rank_output *all);

/* ------------------------------------------------ direct standard output */

static void show_direct(struct xr_rank_output *all)
{
    atomic_store(&all->at->direct->written, xr_stream_written(all->direct));
    atomic_store(&all->at->direct->queued, xr_stream_backlog(all->direct));
    if (!all->stalled && xr_stream_backlog(all->direct))
        xr_rank_output_stop(all);
}

static void rank_output_on_drained(void *arg)
{
    struct xr_rank_output *all = arg;

    show_direct(all);
    if (xr_stream_backlog(all->direct))
        return;
    if (all->stalled && all->unacked <= all->window / 2)
        resume_reading(all);
    all->at->on_progress(all->at->arg);
}

/* The front end handles the error. Later output is dropped. */
static void rank_output_on_broken(void *arg, struct xr_stream *stream, int error)
{
    struct xr_rank_output *all = arg;
    struct xr_packer p = {0};

    (void)stream;
    xr_pack_u32(&p, (uint32_t)error);
    if (*all->at->wire)
        xr_conn_send(*all->at->wire, XR_MSG_BROKEN, &p);
    else
        xr_packer_free(&p);
}

static rank_status_t open_direct(struct xr_rank_output *all)
{
    static const struct xr_label none;
    static const struct xr_stream_ops ops = {rank_output_on_drained, rank_output_on_broken};

    if (!all->at->direct)
        return RANK_OK;
    return xr_stream_open(all->at->base, all->at->direct->fd, &none, &ops, all, &all->direct);
}

/* Queued data go to the front end before its next message. */
void xr_rank_output_share(struct xr_rank_output *all)
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
        xr_stream_recover(all->direct, data, n, &rank, &partial);
        xr_pack_u32(&msg, rank);
        xr_pack_u32(&msg, 1);
        xr_pack_u32(&msg, partial ? XR_OUT_PARTIAL : 0);
        xr_pack_bytes(&msg, data, n);
        xr_conn_send(*all->at->wire, XR_MSG_OUTPUT, &msg);
        all->unacked += n;
    }
    free(data);
    atomic_store(&all->at->direct->queued, 0);
    xr_stream_close(all->direct);
    all->direct = NULL;
    if (all->stalled && all->unacked <= all->window / 2)
        resume_reading(all);
}

bool xr_rank_output_log(struct xr_rank_output *all, uint32_t rank, int stream, const char *text)
{
    size_t len = strlen(text);

    if (!all || !all->direct || stream != 1)
        return false;
    xr_stream_put(all->direct, rank, text, len, len && text[len - 1] != '\n');
    show_direct(all);
    return true;
}

void xr_rank_output_forward(struct xr_rank_output *all, const struct xr_output_pipe *from, const void *data, size_t n, uint32_t flags)
{
    struct xr_conn *wire = *all->at->wire;
    struct xr_packer msg = {0};

    if (n && from->stream == 1 && all->direct) {
        xr_stream_put(all->direct, from->rank, data, n, flags & XR_OUT_PARTIAL);
        show_direct(all);
    } else if (n && wire) {
        xr_pack_u32(&msg, from->rank);
        xr_pack_u32(&msg, (uint32_t)from->stream);
        xr_pack_u32(&msg, flags);
        xr_pack_bytes(&msg, data, n);
        xr_conn_send(wire, XR_MSG_OUTPUT, &msg);
        all->unacked += n;
    }
}

void xr_rank_output_stop(struct xr_rank_output *all)
{
    all->stalled = true;
    for (uint32_t i = 0; i < 2 * all->at->nlocal; i++) {
        if (all->pipes[i].fd >= 0) {
            event_del(all->pipes[i].ev);
            event_del(all->pipes[i].silence);
        }
    }
}

/* Takes ownership of fd. */
static rank_status_t add_output(struct xr_rank_output *all, uint32_t local, int stream, int fd)
{
    return xr_output_pipe_open(&all->pipes[2 * local + (uint32_t)stream - 1], all, all->at->rank_of(all->at->arg, local), stream,
                            fd);
}

rank_status_t xr_rank_output_open(const struct xr_local_io *at, struct xr_rank_output **out)
{
    struct xr_rank_output *all = calloc(1, sizeof(*all));

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
        xr_rank_output_close(all);
        return RANK_ERR_NO_MEMORY;
    }
    *out = all;
    return RANK_OK;
}

void xr_rank_output_close(struct xr_rank_output *all)
{
    if (!all)
        return;
    for (uint32_t i = 0; i < 2 * all->at->nlocal; i++) {
        all->pipes[i].len = 0;
        xr_output_pipe_close(&all->pipes[i]);
    }
    free(all->pipes);
    xr_stream_close(all->direct);
    free(all);
}

rank_status_t xr_rank_output_add(struct xr_rank_output *all, uint32_t local, int stream, int *fd)
{
    rank_status_t st;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC)) {
        rk_error("no pipe for the output of rank %u: %m", all->at->rank_of(all->at->arg, local));
        return RANK_ERR_SYSTEM;
    }
    st = add_output(all, local, stream, ends[0]);
    if (st)
        close(ends[1]);
    else
        *fd = ends[1];
    return st;
}

rank_status_t xr_rank_output_add_terminal(struct xr_rank_output *all, uint32_t local, int master)
{
    all->pipes[2 * local].terminal = true;
    return add_output(all, local, 1, master);
}

void xr_rank_output_drain(struct xr_rank_output *all, uint32_t local)
{
    for (uint32_t i = 2 * local; i < 2 * local + 2; i++) {
        while (xr_output_pipe_read(&all->pipes[i]))
            ;
        /* All of its output was read, even if other processes hold the pipe. */
        if (all->pipes[i].fd >= 0 && !all->stalled)
            xr_output_pipe_forward(&all->pipes[i], true);
    }
}

void xr_rank_output_note_last(struct xr_rank_output *all)
{
    for (uint32_t i = 0; all && i < 2 * all->at->nlocal; i++) {
        struct xr_output_pipe *p = &all->pipes[i];
        int n = 0;

        if (p->fd >= 0 && ioctl(p->fd, FIONREAD, &n) == 0 && n > 0)
            p->last = (size_t)n;
    }
}

void xr_rank_output_cut(struct xr_rank_output *all)
{
    for (uint32_t i = 0; all && i < 2 * all->at->nlocal; i++) {
        struct xr_output_pipe *p = &all->pipes[i];

        if (p->fd >= 0 && !p->ended && p->last == 0)
            xr_output_pipe_finish(p);
    }
}

uint32_t xr_rank_output_open_count(const struct xr_rank_output *all)
{
    return all ? all->open + (all->direct && xr_stream_backlog(all->direct)) : 0;
}

bool xr_rank_output_stalled(const struct xr_rank_output *all)
{
    return all && all->stalled;
}

static void resume_reading(struct xr_rank_output *all)
{
    all->stalled = false;
    for (uint32_t i = 0; i < 2 * all->at->nlocal; i++) {
        struct xr_output_pipe *p = &all->pipes[i];
        if (p->fd < 0 || p->held || p->ended)
            continue;
        event_add(p->ev, NULL);
        xr_output_pipe_watch(p);
    }
}

void xr_rank_output_taken(struct xr_rank_output *all, uint32_t bytes)
{
    if (!all)
        return;
    all->unacked -= bytes < all->unacked ? bytes : all->unacked;
    if (all->stalled && all->unacked <= all->window / 2 &&
        !(all->direct && xr_stream_backlog(all->direct)))
        resume_reading(all);
}

void xr_rank_output_release(struct xr_rank_output *all)
{
    if (!all)
        return;
    xr_stream_close(all->direct);
    all->direct = NULL;
    if (all->stalled)
        resume_reading(all);
}
