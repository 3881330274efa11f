/*
 * pmi1_internal.h: what the files of the PMI-1 server share.
 */
#ifndef RK_LAUNCHER_PMI1_PMI1_INTERNAL_H
#define RK_LAUNCHER_PMI1_PMI1_INTERNAL_H

#include "launcher/dpm/rpc.h"
#include "launcher/pmi1/parser.h"
#include "launcher/pmi1/pmi1_server.h"
#include "launcher/pmi1/pmi1_kvs.h"
#include "launcher/dpm/spawn_request.h"
#include "lib/base/compiler.h"

enum rk_pmi1_state { RK_PMI1_SILENT, RK_PMI1_JOINED, RK_PMI1_FINALIZED };

struct rk_pmi1_client {
    struct rk_pmi1 *server;
    uint32_t rank, app;
    int fd; /* or -1 */
    bool given;     /* a connection, at its start */
    enum rk_pmi1_state state;
    bool waiting;   /* in a barrier */
    uint32_t inits; /* programs that have joined: a rank can run several, one after the other */
    uint32_t asking;             /* which errand it waits for; 0: none */
    uint32_t asked;              /* the number of that: a program that ran in the rank before may have asked, too */
    struct rk_pmi1_block *block; /* of lines, or NULL */
    struct rk_pmi1_input *input; /* NULL: it has not said anything */
};

struct rk_pmi1 {
    const struct rk_pmi1_ops *ops;
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
    struct rk_pmi1_space *space;
    struct rk_pmi1_client *clients; /* [local] */
    uint32_t next_ask;
    int epoll;
    struct event *ev;
};

/* server.c */
void rk_pmi1_answer(struct rk_pmi1_client *client, const char *fmt, ...) RK_PRINTF(2, 3);
/* Close the connection of one that speaks nonsense. */
void rk_pmi1_refuse(struct rk_pmi1_client *client, const char *what);
void rk_pmi1_note_joined(struct rk_pmi1_client *client);
void rk_pmi1_enter_barrier(struct rk_pmi1_client *client);

/* commands.c */
void rk_pmi1_obey(struct rk_pmi1_client *client, const struct rk_pmi1_command *command);
void rk_pmi1_leave_barrier(struct rk_pmi1_client *client, bool whole);

/* ask.c */
void rk_pmi1_publish(struct rk_pmi1_client *client, const struct rk_pmi1_command *command);
void rk_pmi1_look_up(struct rk_pmi1_client *client, const struct rk_pmi1_command *command);
void rk_pmi1_unpublish(struct rk_pmi1_client *client, const struct rk_pmi1_command *command);
void rk_pmi1_spawn(struct rk_pmi1_client *client, const struct rk_pmi1_command *command);
/* A line of a block; NULL: it begins. */
void rk_pmi1_block_line(struct rk_pmi1_client *client, const char *line);
void rk_pmi1_forget_block(struct rk_pmi1_client *client);

#endif
