/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out_stream.h: write to the user's standard output and error.
 *
 * Room: the standard streams of ranks, at the agents and at the front end.
 * Called by: agent, frontend, main.c, monitor.
 * Never: blocks; changes the mode of a descriptor shared with other processes.
 * Tests: tests/launcher/{output,output_rate,many_lines}*, launcher_test.c.
 *
 * Ranks' output is merged line by line.
 */
#ifndef XR_LAUNCHER_IOF_OUT_STREAM_H
#define XR_LAUNCHER_IOF_OUT_STREAM_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>

struct xr_stream;

struct xr_stream_ops {
    void (*on_drained)(void *arg); /* little is queued */
    void (*on_broken)(void *arg, struct xr_stream *stream, int error); /* once; mostly EPIPE */
};

/*
 * Label of each line of a rank: "2026-11-21T12:34:56.789 [host:rank] ". On a terminal each rank has a colour,
 * unless NO_COLOR is set.
 */
struct xr_label {
    bool time, rank;
    const char *(*host)(void *arg, uint32_t rank); /* or NULL */
    void *host_arg;
};

rank_status_t xr_stream_open(struct event_base *base, int fd, const struct xr_label *label,
                             const struct xr_stream_ops *ops, void *arg, struct xr_stream **out);
void xr_stream_close(struct xr_stream *stream);
/* Streams with one terminal, pipe or file end each other's open lines. */
void xr_stream_pair(struct xr_stream *a, struct xr_stream *b);

/* Write output of a rank. partial: the bytes do not end a line. */
void xr_stream_put(struct xr_stream *stream, uint32_t rank, const char *data, size_t len,
                   bool partial);
/* Write complete lines of another xrun, unchanged. */
void xr_stream_pass(struct xr_stream *stream, const char *data, size_t len);
/* Write a line of xrun's own. Adds the newline. */
void xr_stream_print(struct xr_stream *stream, const char *fmt, ...) RK_PRINTF(2, 3);

/*
 * Remove the queued bytes: len is xr_stream_backlog. Stores the rank of the last bytes, and whether they do not
 * end a line.
 */
void xr_stream_recover(struct xr_stream *stream, char *data, size_t len, uint32_t *rank, bool *partial);

size_t xr_stream_backlog(const struct xr_stream *stream);
/* Return the bytes written so far, to see whether the reader progresses. */
uint64_t xr_stream_written(const struct xr_stream *stream);

#endif
