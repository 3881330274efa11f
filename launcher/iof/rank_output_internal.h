/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_output_internal.h: share the state of rank_output.c and output_pipe.c.
 */
#ifndef XR_LAUNCHER_IOF_RANK_OUTPUT_INTERNAL_H
#define XR_LAUNCHER_IOF_RANK_OUTPUT_INTERNAL_H

#include "launcher/iof/out_stream.h"
#include "launcher/iof/rank_output.h"

/* One stream of one rank. */
struct xr_output_pipe {
    struct xr_rank_output *all;
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
    bool large; /* pipe and buffer have the largest size */
    size_t last; /* bytes still to be read after the processes of the job are gone */
};

/* All of this host. */
struct xr_rank_output {
    const struct xr_local_io *at;
    struct xr_output_pipe *pipes; /* two a rank */
    struct xr_output_pipe *owner[3]; /* by stream: the rank whose long line is passing */
    uint32_t open; /* pipes */
    struct xr_stream *direct; /* standard output, if the agent writes it */
    uint32_t large; /* pipes that were enlarged */
    uint64_t unacked; /* bytes not yet acknowledged by the front end */
    uint64_t window;
    bool stalled; /* nothing is read */
};

/* ------------------------------------------------------------- rank_output.c */

/* Send bytes of a stream to the front end, or write them if standard output is direct. */
void xr_rank_output_forward(struct xr_rank_output *all, const struct xr_output_pipe *from, const void *data, size_t n, uint32_t flags);
/* Stop reading all pipes: too much is queued or unacknowledged. */
void xr_rank_output_stop(struct xr_rank_output *all);

/* ------------------------------------------------------------- output_pipe.c */

/* Start to read fd. Takes ownership of fd. */
rank_status_t xr_output_pipe_open(struct xr_output_pipe *pipe, struct xr_rank_output *all, uint32_t rank, int stream, int fd);
/* Close the descriptor. Data that are held stay. */
void xr_output_pipe_close(struct xr_output_pipe *pipe);
/* Read once. Returns false if there is no more for now. */
bool xr_output_pipe_read(struct xr_output_pipe *pipe);
/* Forward what may be forwarded; all: also a partial line. */
void xr_output_pipe_forward(struct xr_output_pipe *pipe, bool all);
/* Start the timer of a partial line. */
void xr_output_pipe_watch(struct xr_output_pipe *pipe);
/* The stream ended: forward all and close. */
void xr_output_pipe_finish(struct xr_output_pipe *pipe);

#endif
