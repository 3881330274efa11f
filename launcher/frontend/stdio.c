/* SPDX-License-Identifier: BSD-3-Clause */
/* stdio.c: pass output of ranks to the user, and the user's input to ranks. */
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Flow control: an agent may have a window of unacknowledged bytes, see rank_output.h. */
#define OUTPUT_BACKLOG (1 << 20) /* bytes queued for the user: above that nothing is acknowledged */
#define ACK_BYTES (32 << 10)     /* an acknowledgement covers at least that much */

/* ------------------------------------------------------------------------- output */

/* Acknowledge the output of a host, if that is at least so many bytes. */
static void acknowledge_output(struct front *f, struct node *n, uint32_t least)
{
    struct xr_packer p = {0};

    if (n->unacked < least || n->unacked == 0 || n->gone)
        return;
    xr_pack_u32(&p, n->unacked);
    xr_tree_send(f->tree, (uint32_t)(n - f->nodes), XR_MSG_OUTPUT_TAKEN, &p);
    n->unacked = 0;
}

static void on_drained(void *arg)
{
    struct front *f = arg;

    for (uint32_t i = 0; i < f->nnodes; i++)
        acknowledge_output(f, &f->nodes[i], 1);
    xr_child_jobs_wake(f);
    xr_front_leave_if_over(f);
}

/* A reader that closed its pipe wants no message: xrun ends as by SIGPIPE. */
static void on_broken(void *arg, struct xr_stream *stream, int error)
{
    struct front *f = arg;

    if (stream == f->out && error != EPIPE)
        xr_stream_print(f->err, "xrun: error: cannot write the output: %s; ending the job",
                      strerror(error));
    xr_report_cause(f->report, "the output cannot be written: %s", strerror(error));
    xr_front_set_exit_code(f, error == EPIPE ? 128 + SIGPIPE : 1);
    xr_front_end_job(f);
}

const struct xr_stream_ops xr_front_stream_ops = {on_drained, on_broken};

static void stdio_put_output(struct front *f, uint32_t rank, uint32_t stream, const char *data, size_t len,
                             bool partial)
{
    if (f->files)
        xr_out_files_put(f->files, rank, (int)stream, data, len, partial);
    else
        xr_stream_put(stream == 1 ? f->out : f->err, rank, data, len, partial);
}

bool xr_front_on_output(struct front *f, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), stream = xr_unpack_u32(u), flags = xr_unpack_u32(u);
    size_t len;
    const char *data = xr_unpack_bytes(u, &len);
    struct node *n = xr_front_node_of(f, rank);

    if (!xr_unpack_done(u) || (stream != 1 && stream != 2) || !n)
        return false;
    stdio_put_output(f, rank, stream, data, len, flags & XR_OUT_PARTIAL);
    n->unacked += (uint32_t)len;
    if (f->files ||
        (xr_stream_backlog(f->out) <= OUTPUT_BACKLOG && xr_stream_backlog(f->err) <= OUTPUT_BACKLOG))
        acknowledge_output(f, n, ACK_BYTES);
    return true;
}

/* The agent that writes standard output itself cannot write. */
bool xr_front_on_output_broken(struct front *f, struct xr_unpacker *u)
{
    uint32_t error = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || !f->direct)
        return false;
    on_broken(f, f->out, (int)error);
    return true;
}

/* Output that a rank logged through PMIx. */
bool xr_front_on_log(struct front *f, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), stream = xr_unpack_u32(u);
    size_t len;
    const char *data = xr_unpack_bytes(u, &len);

    if (!xr_unpack_done(u) || (stream != 1 && stream != 2))
        return false;
    stdio_put_output(f, rank, stream, data, len, len > 0 && data[len - 1] != '\n');
    return true;
}

/* The job itself has not failed: only xrun's exit code shows the loss. */
void xr_front_on_output_lost(void *arg, const char *file, int error)
{
    struct front *f = arg;

    f->output_lost = true;
    xr_stream_print(f->err, "xrun: error: cannot write %s: %s; output is lost, the job goes on", file,
                  strerror(error));
}

/* -------------------------------------------------------------------------- input */

static void on_input(void *arg, const void *data, size_t len, int error)
{
    struct front *f = arg;
    struct xr_packer p = {0};

    if (error) /* a pipe carries no error: for the ranks the input ends */
        xr_stream_print(f->err, "xrun: error: cannot read standard input: %s; it ends here for the ranks",
                      strerror(error));
    if (!xr_front_launched(f))
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
    xr_stdin_credit_sent(f->credit, (uint32_t)len);
}

/* If no host reads any more, the rest of the input stays for other processes with the descriptor. */
void xr_front_close_input(struct front *f, uint32_t node)
{
    if (!f->credit || !xr_stdin_credit_reads(f->credit, node))
        return;
    xr_reader_credit(f->reader, xr_stdin_credit_end(f->credit, node));
    if (xr_stdin_credit_any(f->credit))
        return;
    xr_reader_close(f->reader);
    f->reader = NULL;
}

bool xr_front_on_input_taken(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), n = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes)
        return false;
    if (f->credit)
        xr_reader_credit(f->reader, xr_stdin_credit_taken(f->credit, node, n));
    return true;
}

bool xr_front_on_input_closed(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes)
        return false;
    xr_front_close_input(f, node);
    return true;
}

/* With --pty. */
static void on_resize(void *arg, const struct xr_window *window)
{
    struct front *f = arg;
    struct xr_packer p = {0};

    if (xr_job_is_done(f->state))
        return;
    xr_pack_u32(&p, window->rows);
    xr_pack_u32(&p, window->cols);
    xr_tree_send(f->tree, f->job->host_of[f->job->pty], XR_MSG_WINDOW, &p);
}

rank_status_t xr_front_open_input(struct front *f)
{
    bool keys = f->job->input == XR_INPUT_ALL || f->job->input == f->job->pty;

    if (f->job->pty != XR_PTY_NONE) {
        f->terminal = xr_user_tty_open(f->base, keys, on_resize, f);
        if (!f->terminal)
            return RANK_ERR_NO_MEMORY;
    }
    if (f->job->input == XR_INPUT_NONE)
        return RANK_OK;
    f->credit = xr_stdin_credit_open(f->nnodes);
    if (!f->credit)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (f->job->input == XR_INPUT_ALL ? f->plan->placement.host[i].ranks == 0
                                          : f->job->host_of[f->job->input] != i)
            xr_stdin_credit_end(f->credit, i);
    }
    return xr_reader_open(f->base, STDIN_FILENO, on_input, f, &f->reader);
}
