/*
 * rank_output.h: read what the ranks of this host write, and pass it on.
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

/* What the streams of this host's ranks need to know of the agent. */
struct xr_local_io {
    struct event_base *base;
    struct xr_wire *const *wire; /* to the front end, or to the agent above; *wire is NULL once it is gone */
    struct xr_direct *direct;    /* standard output is written to it; or NULL */
    uint32_t node, nlocal;       /* this host's number; its ranks */
    uint32_t nhosts;             /* of the job */
    uint32_t (*rank_of)(void *arg, uint32_t local); /* number in the job of the local-th rank */
    void (*on_progress)(void *arg); /* a stream has ended, or a queue has drained */
    void *arg;
};

struct xr_outputs;

/* at: stays until the close. */
rank_status_t xr_outputs_open(const struct xr_local_io *at, struct xr_outputs **out);
void xr_outputs_close(struct xr_outputs *outputs);
/* A pipe for a stream (1 or 2) of the local-th rank: *fd is the end for the rank. */
rank_status_t xr_outputs_add(struct xr_outputs *outputs, uint32_t local, int stream, int *fd);
/* Its terminal instead, for both streams; the master is taken over. */
rank_status_t xr_outputs_add_terminal(struct xr_outputs *outputs, uint32_t local, int master);
/* Take what its pipes hold now. */
void xr_outputs_drain(struct xr_outputs *outputs, uint32_t local);
/* All processes of the job are gone: what the pipes hold now is the last that counts. */
void xr_outputs_note_last(struct xr_outputs *outputs);
/* Those outside who write on have had their time: no more is read from pipes that have brought that. */
void xr_outputs_cut(struct xr_outputs *outputs);
/* Pipes that may still bring something. */
uint32_t xr_outputs_open_count(const struct xr_outputs *outputs);
/* Is reading stopped, or something still to be written, because the user does not keep up? */
bool xr_outputs_stalled(const struct xr_outputs *outputs);
/* Others will write to standard output, too: leave all of it to the front end from now on. */
void xr_outputs_share(struct xr_outputs *outputs);
/* What a rank has logged, if it is ours to write. */
bool xr_outputs_log(struct xr_outputs *outputs, uint32_t rank, int stream, const char *text);
/* The front end has passed bytes on. */
void xr_outputs_taken(struct xr_outputs *outputs, uint32_t bytes);
/* Nobody takes them any more: they go nowhere. */
void xr_outputs_let_go(struct xr_outputs *outputs);

#endif
