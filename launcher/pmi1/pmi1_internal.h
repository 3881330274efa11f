/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi1_internal.h: declare what the files of the PMI-1 server share. */
#ifndef XR_LAUNCHER_PMI1_PMI1_INTERNAL_H
#define XR_LAUNCHER_PMI1_PMI1_INTERNAL_H

#include "launcher/dpm/rpc.h"
#include "launcher/pmi1/parser.h"
#include "launcher/pmi1/pmi1_server.h"
#include "launcher/pmi1/pmi1_kvs.h"
#include "launcher/dpm/spawn_request.h"
#include "lib/base/compiler.h"

enum xr_pmi1_state { XR_PMI1_SILENT, XR_PMI1_JOINED, XR_PMI1_FINALIZED };

/* The content of the blocks so far. */
struct xr_pmi1_block {
    struct xr_spawn_request request;
    struct xr_spawn_request_app *app; /* that of this block, or NULL */
    char *key;                  /* its value comes next */
    size_t bytes;
    bool bad;
};

struct xr_pmi1_client {
    struct xr_pmi1 *server;
    uint32_t rank, app;
    int fd; /* or -1 */
    bool given;     /* the rank was given a connection at its start */
    enum xr_pmi1_state state;
    bool waiting;   /* in a barrier */
    uint32_t inits; /* programs of the rank that have joined */
    uint32_t request;            /* the kind of request it waits for, or 0 */
    uint32_t request_id;         /* differs from those of an earlier program of the rank */
    struct xr_pmi1_block *block; /* of lines, or NULL */
    struct xr_pmi1_input *input; /* NULL before the first byte */
};

struct xr_pmi1 {
    const struct xr_pmi1_ops *ops;
    void *arg;
    char *name; /* of the space */
    uint32_t size, universe, local;
    uint32_t waiting;  /* in a barrier */
    uint32_t inits;    /* the maximum of all clients */
    uint32_t gone_rank, gone_inits; /* the ended rank with the fewest inits, if gone */
    bool stranded;
    bool gone, gone_early; /* a rank has ended; and without having finalized */
    bool lost;             /* no barrier can complete any more */
    bool reported;         /* the other hosts were informed of that */
    struct xr_pmi1_kvs *space;
    struct xr_pmi1_client *clients; /* [local] */
    uint32_t next_request;
    int epoll;
    struct event *ev;
};

/* pmi1_barrier.c */
void xr_pmi1_answer(struct xr_pmi1_client *client, const char *fmt, ...) RK_PRINTF(2, 3);
/* Close the connection of a client that has sent what is not PMI-1. */
void xr_pmi1_refuse(struct xr_pmi1_client *client, const char *what);
void xr_pmi1_note_joined(struct xr_pmi1_client *client);
void xr_pmi1_enter_barrier(struct xr_pmi1_client *client);
void xr_pmi1_leave_barrier(struct xr_pmi1_client *client, bool whole);
/* Close the connection. */
void xr_pmi1_disconnect(struct xr_pmi1_client *client);
/* The connection has ended before the rank. */
void xr_pmi1_client_gone(struct xr_pmi1_client *client);
/* No barrier can complete any more: fail waiting clients and those that come. report: inform the other hosts, too. */
void xr_pmi1_fail_barriers(struct xr_pmi1 *pmi1, bool report);

/* commands.c */
void xr_pmi1_execute(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);

/* publish_spawn.c */
void xr_pmi1_publish(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);
void xr_pmi1_lookup(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);
void xr_pmi1_unpublish(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);
void xr_pmi1_spawn(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);

/* spawn_block.c */
/* Add a line of a block; NULL begins a block. */
void xr_pmi1_block_line(struct xr_pmi1_client *client, const char *line);
void xr_pmi1_forget_block(struct xr_pmi1_client *client);

#endif
