/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_output.h: read what the ranks of this host write, and forward it.
 */
#ifndef XR_LAUNCHER_IOF_RANK_OUTPUT_H
#define XR_LAUNCHER_IOF_RANK_OUTPUT_H

#include "launcher/iof/direct_out.h"
#include "launcher/overlay/conn.h"
#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The part of the agent that the streams of this host's ranks use. */
struct xr_local_io {
    struct event_base *base;
    struct xr_conn *const *wire; /* to the front end, or to the parent agent; *wire is NULL after its end */
    struct xr_direct *direct;    /* direct standard output, or NULL */
    uint32_t node, nlocal;       /* this host's number; its number of ranks */
    uint32_t nhosts;             /* of the job */
    uint32_t (*rank_of)(void *arg, uint32_t local); /* rank of the local-th rank of this host */
    void (*on_progress)(void *arg); /* a stream ended, or a queue drained */
    void *arg;
};

struct xr_rank_output;

/* at must outlive the object. */
rank_status_t xr_rank_output_open(const struct xr_local_io *at, struct xr_rank_output **out);
void xr_rank_output_close(struct xr_rank_output *outputs);
/* Add a pipe for a stream (1 or 2) of the local-th rank: *fd is the rank's end. */
rank_status_t xr_rank_output_add(struct xr_rank_output *outputs, uint32_t local, int stream, int *fd);
/* Add its terminal instead, for both streams. Takes ownership of master. */
rank_status_t xr_rank_output_add_terminal(struct xr_rank_output *outputs, uint32_t local, int master);
/* Read what the rank's pipes hold now. */
void xr_rank_output_drain(struct xr_rank_output *outputs, uint32_t local);
/* All processes of the job are gone: only what the pipes hold now still counts. */
void xr_rank_output_note_last(struct xr_rank_output *outputs);
/* Stop reading pipes that processes outside the job keep open, once their last bytes are read. */
void xr_rank_output_cut(struct xr_rank_output *outputs);
/* Return the number of pipes that are still open. */
uint32_t xr_rank_output_open_count(const struct xr_rank_output *outputs);
/* Return whether reading stopped or data are queued because the user's reader is slow. */
bool xr_rank_output_stalled(const struct xr_rank_output *outputs);
/* Other processes will write to standard output too: leave all of it to the front end from now on. */
void xr_rank_output_share(struct xr_rank_output *outputs);
/* Write what a rank logged, if standard output is direct. */
bool xr_rank_output_log(struct xr_rank_output *outputs, uint32_t rank, int stream, const char *text);
/* The front end has passed bytes on. */
void xr_rank_output_taken(struct xr_rank_output *outputs, uint32_t bytes);
/* The output has no reader any more: discard it. */
void xr_rank_output_release(struct xr_rank_output *outputs);

#endif
