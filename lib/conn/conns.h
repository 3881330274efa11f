/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conns.h: connect processes that no launcher started, and ranks of jobs by tcp.
 *
 * A connection is a team of two. The peer is the one rank of a job of its own: lib/core numbers it, lib/channel/tcp
 * carries its frames. A context has these objects from the first listener or connection on.
 *
 * Room: what opens a connection: addresses, secrets, handshakes, listeners.
 * Callers: the program, lib/world, lib/dpm.
 * Never: waits for a name server with the lock held; prints a secret.
 * Tests: tests/unit/conn_wire_test.c, tests/fuzz/fuzz_handshake.c, tests/conn.
 */
#ifndef RK_CONN_CONN_H
#define RK_CONN_CONN_H

#include "lib/channel/shm/shm_pair.h"
#include "lib/channel/tcp/tcp_channel.h"
#include "lib/conn/address.h"
#include "lib/conn/handshake_wire.h"
#include "lib/conn/secret.h"
#include "lib/p2p/team.h"

enum { RK_CONN_HALF_OPEN = 64 /* handshakes of a listener at a time */ };

/* Objects of a context. */
struct rk_conns {
    struct rk_ctx *ctx;
    struct rk_tcp *tcp;
    const struct rk_channel *ucx; /* NULL: it carries no connections */
    void *ucx_state;
    uint64_t context; /* id of the context: its keys have it, too */
    uint64_t host;
    char name[RK_SHAKE_NAME];
    struct rk_link listeners, clients, conns; /* clients: handshakes that this side has begun */
    struct rk_link attempts, failed; /* attempt.c */
    int nfailed;
    bool connects;    /* connections are wanted, and not only links of ranks */
    struct rk_ranks *ranks; /* ranks of jobs connect by tcp; or NULL */
};

/* Options of a listener or a connect, with the defaults filled in. */
struct rk_conn_opts {
    struct rk_secret secret;
    unsigned char hello[RK_SHAKE_HELLO_MAX];
    uint16_t hello_bytes;
    uint32_t flags;
    int max_conns, backlog;
    uint64_t timeout_ns, silence_ns;
};

struct rk_shaking;

#define RK_LISTENER_MAGIC 0x6c73746eu

struct rank_listener {
    uint32_t magic;
    struct rk_tcp_source source;
    struct rk_conns *of;
    struct rk_link link, half_open, ready; /* ready: handshakes that are done */
    int nhalf_open;
    struct rk_conn_opts opts;
    struct rk_conn_count *count;
    rank_status_t failed; /* of accept(2), not reported so far */
    uint64_t serial;      /* of this listener in the process; 0: it is closed */
    bool paused;          /* not watched: too many half-open clients, or no descriptors */
    /* Its clients are ranks: why may one that has proved itself have no link? NULL: it may. */
    const char *(*refusal)(const struct rk_shaking *s);
    void (*shaken)(struct rk_shaking *s); /* a client is through with its handshake, or has failed */
};

/* Connections of a listener: outlives it. */
struct rk_conn_count {
    int n, holders;
};

/* A handshake, of either side. Owns its socket. */
struct rk_shaking {
    struct rk_tcp_source source;
    struct rk_conns *of;
    struct rk_link link;
    rank_listener_t listener; /* NULL: this side connects */
    const struct rk_conn_opts *opts;
    uint64_t begun, deadline;
    enum rk_shake_type next;  /* the message that is awaited; 0: the socket connects */
    bool over;                /* with this status */
    rank_status_t status;
    char why[RK_SHAKE_TEXT_MAX + 1];
    unsigned char nonce[2][RK_SHAKE_NONCE]; /* of the client, of the server */
    struct rk_shake peer;     /* PROOF or WELCOME of the other side */
    uint64_t team;
    bool proved;
    struct rk_node *node; /* segment that both sides share; or NULL */
    void *ucx_link;       /* UCX leads to the peer by it; or NULL */
    size_t need, got;
    unsigned char in[RK_SHAKE_HEAD + RK_SHAKE_BODY_MAX];
};

/* A connection. */
struct rk_conn {
    struct rk_link link;
    struct rank_team *team;
    struct rk_peer *peer;
    uint64_t job; /* of the peer here */
    struct rk_conn_count *count;
    bool ending;  /* a thread disconnects it */
    bool abandoned; /* rank_ctx_close has ended the wait of that thread */
    rank_conn_info_t info;
    struct rk_tcp_counts counts;
    struct rk_pair_counts shared; /* by shared memory */
    bool by_ucx;                  /* which counts no messages */
};

/* Fill in what the user gives. Reports errors as of call. rk_secret_clear ends it. */
rank_status_t rk_conn_opts_read(const char *call, const rank_conn_opts_t *given, struct rk_conn_opts *out);
/* Clear and free them. No-op if NULL. */
void rk_conn_opts_free(struct rk_conn_opts *opts);

/* shake.c: begin on a socket, which is taken in any case. NULL: out of memory, or it cannot be watched. */
struct rk_shaking *rk_shake_begin(struct rk_conns *c, int fd, rank_listener_t listener, const struct rk_conn_opts *opts);
void rk_shake_end(struct rk_shaking *s);
/* It is over with this status. No-op if it is already. */
void rk_shake_settle(struct rk_shaking *s, rank_status_t st, const char *why);

/* ranks.c: listen, and add the card of this rank to the engine's. */
rank_status_t rk_ranks_open(struct rk_conns *c);
/* No contact begins from now on. No-op if it is not open. */
void rk_ranks_close(struct rk_ctx *ctx);
/* As rk_channel.connect. */
rank_status_t rk_ranks_contact(struct rk_ranks *r, struct rk_peer *peer);
/* Make links of the handshakes that are over, and continue the contacts. */
void rk_ranks_settle(struct rk_ranks *r);

/*
 * attempt.c: connect to the addresses in found, within opts->timeout_ns, and complete req of RK_REQ_CONN; then *out is set.
 * Takes found and opts, unless it fails. Reports errors as of call.
 */
rank_status_t rk_connect_begin(const char *call, struct rk_conns *c, const char *address, struct addrinfo *found,
                               struct rk_conn_opts *opts, struct rank_request *req, rank_team_t *out);
/* Continue what waits for handshakes that are over, or for the time limit. */
void rk_connects_settle(struct rk_conns *c, uint64_t now);
/* Complete all with RANK_ERR_CLOSED. */
void rk_connects_close(struct rk_conns *c);

/* conn_ucx.c: open UCX for the connections of the context, if it is of use. */
void rk_conn_ucx_open(struct rk_conns *c);
/* Offer this side's UCX in PROOF or WELCOME, unless the options or the machine forbid it. */
void rk_conn_ucx_add_card(const struct rk_shaking *s, struct rk_shake *m);
/* Make a link by the peer's card. Returns false, with a line in the log, if the connection has to do without. */
bool rk_conn_ucx_prepare(struct rk_shaking *s);
/* No-op without link. */
void rk_conn_ucx_drop(struct rk_shaking *s);
/* Connect the peer by the link. self: job of this process at the peer. */
rank_status_t rk_conn_ucx_adopt(struct rk_shaking *s, struct rk_peer *peer, uint64_t self);

/* conn_listener.c. Reports errors as of call. */
rank_status_t rk_listener_open(const char *call, struct rk_conns *c, const char *address, const struct addrinfo *found,
                               const struct rk_conn_opts *opts, rank_listener_t *out);
/* End the handshakes of listeners that take too long, and let other clients in. */
void rk_listeners_check(struct rk_conns *c, uint64_t now);
void rk_listener_end(rank_listener_t listener);
void rk_conn_count_drop(struct rk_conn_count *count);

/* connection.c */
/* Make a handshake that is over a connection, with its team. Ends s in any case. Runs also in progress. */
rank_status_t rk_conn_make(struct rk_shaking *s, struct rk_conn **out);
/* The connection of a team; NULL: the team is none. */
struct rk_conn *rk_conn_of(const struct rank_team *team);
/* Send the last frame, wait for the peer's, and end all operations. The team stays. */
rank_status_t rk_conn_send_bye(struct rk_conn *conn, int64_t timeout_ns);
/* Free it; its team is the caller's. */
void rk_conn_forget(struct rk_conn *conn);

/* Fill in what has been counted. */
void rk_conn_count(struct rk_conn *conn);

/* api_conn.c: close listeners and connections, within timeout_ns, and end handshakes. No-op if there are none. */
rank_status_t rk_conns_close(struct rk_ctx *ctx, int64_t timeout_ns);
/* Free the connections that a thread was still using when they were ended. No thread is in a call now. */
void rk_conns_free(struct rk_ctx *ctx);
/* rank_team_free of a connection. Returns false if the team is none. */
bool rk_conn_free_team(struct rank_team *team);

/* conns.c */
/* Get the objects of a context, made at the first call, for connections. */
rank_status_t rk_conns_of(struct rk_ctx *ctx, struct rk_conns **out);
/* The same, for links of ranks. */
rank_status_t rk_conns_open_ranks(struct rk_ctx *ctx);
/* In a forked child: close its copies of the sockets. */
void rk_conns_forked(struct rk_ctx *ctx);

#endif
