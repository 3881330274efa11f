/*
 * out_stream.h: the user's standard output and error.
 *
 * Ranks' output is put together line by line. Writing never blocks the front
 * end and never changes the mode of a descriptor that xrun shares with others.
 */
#ifndef XR_LAUNCHER_IOF_OUT_STREAM_H
#define XR_LAUNCHER_IOF_OUT_STREAM_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>

struct xr_stream;

struct xr_stream_ops {
    void (*on_drained)(void *arg); /* little is queued now */
    void (*on_broken)(void *arg, struct xr_stream *stream, int error); /* once; EPIPE above all */
};

/* What is put before each line of a rank's output: "2026-11-21T12:34:56.789 [host:rank] ". On a
 * terminal each rank's has a colour, unless NO_COLOR is set. */
struct xr_label {
    bool time, rank;
    const char *(*host)(void *arg, uint32_t rank); /* or NULL */
    void *host_arg;
};

rank_status_t xr_stream_open(struct event_base *base, int fd, const struct xr_label *label,
                             const struct xr_stream_ops *ops, void *arg, struct xr_stream **out);
void xr_stream_close(struct xr_stream *stream);
/* Where both go to one terminal, pipe or file a line that is open in one is ended before another's in the other, too. */
void xr_stream_pair(struct xr_stream *a, struct xr_stream *b);

/* Output of a rank. partial: the bytes do not end a line. */
void xr_stream_put(struct xr_stream *stream, uint32_t rank, const char *data, size_t len,
                   bool partial);
/* Lines as they are, of another xrun. */
void xr_stream_pass(struct xr_stream *stream, const char *data, size_t len);
/* A line of xrun's own; the newline is added. */
void xr_stream_say(struct xr_stream *stream, const char *fmt, ...) RK_PRINTF(2, 3);

/* Take back what is queued: len bytes, xr_stream_backlog of them. Whose the last are, and whether they do not end a line. */
void xr_stream_take_back(struct xr_stream *stream, char *data, size_t len, uint32_t *rank, bool *partial);

size_t xr_stream_backlog(const struct xr_stream *stream);
/* Bytes written so far: whether the reader moves. */
uint64_t xr_stream_written(const struct xr_stream *stream);

#endif
