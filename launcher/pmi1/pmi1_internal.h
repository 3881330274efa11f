/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1_internal.h: what the files of the PMI-1 server share.
 */
#ifndef XR_LAUNCHER_PMI1_PMI1_INTERNAL_H
#define XR_LAUNCHER_PMI1_PMI1_INTERNAL_H

#include "launcher/dpm/rpc.h"
#include "launcher/pmi1/parser.h"
#include "launcher/pmi1/pmi1_server.h"
#include "launcher/pmi1/pmi1_kvs.h"
#include "launcher/dpm/spawn_request.h"
#include "lib/base/compiler.h"

enum xr_pmi1_state { XR_PMI1_SILENT, XR_PMI1_JOINED, XR_PMI1_FINALIZED };

/* What the blocks have said so far. */
struct xr_pmi1_block {
    struct xr_request request;
    struct xr_request_app *app; /* that of this block, or NULL */
    char *key;                  /* the value of this one comes next */
    size_t bytes;
    bool bad;
};

struct xr_pmi1_client {
    struct xr_pmi1 *server;
    uint32_t rank, app;
    int fd; /* or -1 */
    bool given;     /* a connection, at its start */
    enum xr_pmi1_state state;
    bool waiting;   /* in a barrier */
    uint32_t inits; /* programs that have joined: a rank can run several, one after the other */
    uint32_t asking;             /* which errand it waits for; 0: none */
    uint32_t asked;              /* the number of that: a program that ran in the rank before may have asked, too */
    struct xr_pmi1_block *block; /* of lines, or NULL */
    struct xr_pmi1_input *input; /* NULL: it has not said anything */
};

struct xr_pmi1 {
    const struct xr_pmi1_ops *ops;
    void *arg;
    char *name; /* of the space */
    uint32_t size, universe, local;
    uint32_t waiting;  /* in a barrier */
    uint32_t inits;    /* the most of any client's */
    uint32_t gone_rank, gone_inits; /* of those gone the one with the fewest, if gone */
    bool stranded;
    bool gone, gone_early; /* a rank has ended; without having finalized */
    bool lost;             /* and so no barrier will be whole */
    bool told;             /* and the other hosts know */
    struct xr_pmi1_space *space;
    struct xr_pmi1_client *clients; /* [local] */
    uint32_t next_ask;
    int epoll;
    struct event *ev;
};

/* pmi1_barrier.c */
void xr_pmi1_answer(struct xr_pmi1_client *client, const char *fmt, ...) RK_PRINTF(2, 3);
/* Close the connection of one that speaks nonsense. */
void xr_pmi1_refuse(struct xr_pmi1_client *client, const char *what);
void xr_pmi1_note_joined(struct xr_pmi1_client *client);
void xr_pmi1_enter_barrier(struct xr_pmi1_client *client);
void xr_pmi1_leave_barrier(struct xr_pmi1_client *client, bool whole);
/* Close the connection. */
void xr_pmi1_disconnect(struct xr_pmi1_client *client);
/* The connection has ended before the rank. */
void xr_pmi1_client_gone(struct xr_pmi1_client *client);
/* From here on no barrier can be whole: the clients that wait are told, and so are those that come. tell: the other hosts, too. */
void xr_pmi1_fail_barriers(struct xr_pmi1 *pmi1, bool tell);

/* commands.c */
void xr_pmi1_obey(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);

/* publish_spawn.c */
void xr_pmi1_publish(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);
void xr_pmi1_look_up(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);
void xr_pmi1_unpublish(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);
void xr_pmi1_spawn(struct xr_pmi1_client *client, const struct xr_pmi1_command *command);

/* spawn_block.c */
/* A line of a block; NULL: it begins. */
void xr_pmi1_block_line(struct xr_pmi1_client *client, const char *line);
void xr_pmi1_forget_block(struct xr_pmi1_client *client);

#endif
