/* SPDX-License-Identifier: BSD-3-Clause */
/* stdio.c: the user's input, output and terminal. */
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stdio_on_drained(void *arg)
{
    struct front *f = arg;

    for (uint32_t i = 0; i < f->nnodes; i++)
        xr_front_pay(f, &f->nodes[i], 1);
    xr_front_jobs_drained(f);
    xr_front_leave_if_over(f);
}

static void stdio_on_broken(void *arg, struct xr_stream *stream, int error)
{
    struct front *f = arg;

    if (stream == f->out && error != EPIPE)
        xr_stream_say(f->err, "xrun: error: cannot write the output: %s; ending the job",
                      strerror(error));
    xr_report_cause(f->report, "the output cannot be written: %s", strerror(error));
    xr_front_judge(f, error == EPIPE ? 128 + SIGPIPE : 1);
    xr_front_end_job(f);
}

const struct xr_stream_ops xr_front_stream_ops = {stdio_on_drained, stdio_on_broken};

/* The job itself is well: xrun's exit code says it at the end. */
void xr_front_on_lost(void *arg, const char *file, int error)
{
    struct front *f = arg;

    f->lost = true;
    xr_stream_say(f->err, "xrun: error: cannot write %s: %s; output is lost, the job goes on", file,
                  strerror(error));
}

static void stdio_on_input(void *arg, const void *data, size_t len, int error)
{
    struct front *f = arg;
    struct xr_packer p = {0};

    if (error) /* to the ranks it is the end: nothing else can be told by a pipe */
        xr_stream_say(f->err, "xrun: error: cannot read standard input: %s; it ends here for the ranks",
                      strerror(error));
    if (!f->told)
        return;
    /* The payload is the bytes themselves. */
    p.data = len ? malloc(len) : NULL;
    p.failed = len && !p.data;
    if (p.data)
        memcpy(p.data, data, len);
    p.len = p.cap = len;
    if (f->job->input == XR_INPUT_ALL)
        xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_INPUT, &p);
    else
        xr_tree_send(f->tree, f->job->host_of[f->job->input], XR_MSG_INPUT, &p);
    xr_feed_sent(f->feed, (uint32_t)len);
}

/* With --pty. */
static void on_resize(void *arg, const struct xr_window *window)
{
    struct front *f = arg;
    struct xr_packer p = {0};

    if (f->done)
        return;
    xr_pack_u32(&p, window->rows);
    xr_pack_u32(&p, window->cols);
    xr_tree_send(f->tree, f->job->host_of[f->job->pty], XR_MSG_WINDOW, &p);
}

rank_status_t xr_front_open_input(struct front *f)
{
    bool keys = f->job->input == XR_INPUT_ALL || f->job->input == f->job->pty;

    if (f->job->pty != XR_PTY_NONE) {
        f->terminal = xr_user_terminal_open(f->base, keys, on_resize, f);
        if (!f->terminal)
            return RANK_ERR_NO_MEMORY;
    }
    if (f->job->input == XR_INPUT_NONE)
        return RANK_OK;
    f->feed = xr_feed_open(f->nnodes);
    if (!f->feed)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (f->job->input == XR_INPUT_ALL ? f->plan->placement.host[i].ranks == 0
                                          : f->job->host_of[f->job->input] != i)
            xr_feed_gone(f->feed, i);
    }
    return xr_reader_open(f->base, STDIN_FILENO, stdio_on_input, f, &f->reader);
}
