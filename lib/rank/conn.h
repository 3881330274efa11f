/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.h: declare contexts, listeners and connections. Part of rank.h. */
#ifndef RANK_CONN_H
#define RANK_CONN_H

#include "rma.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- rank_ctx: use the library without a launcher */

typedef struct rank_ctx *rank_ctx_t; /* what rank_init makes, for this process alone */
#define RANK_CTX_NULL ((rank_ctx_t)0) /* in place of a context: that of rank_init */

typedef struct rank_ctx_opts {
    size_t size;             /* set by RANK_CTX_OPTS_INIT; fields beyond it have their defaults */
    int32_t thread_level;    /* a rank_thread_level_t; default MULTIPLE */
    int32_t progress_thread; /* 1: a thread of the library makes progress; default 0 */
    const char *name;        /* shown to peers, 63 bytes at most; NULL: the name of the program */
    const char *net_devices; /* RDMA devices for its connections, as in RANK_NICS; NULL: those of RANK_NICS */
    int64_t quiet;           /* 1: as in rank_init_opts_t */
} rank_ctx_opts_t;
#define RANK_CTX_OPTS_INIT {sizeof(rank_ctx_opts_t), 3, 0, NULL, NULL, 0}

/*
 * Open a context, before rank_init, after it, or without it. A process may open any number, from any thread. opts
 * may be NULL.
 * RANK_ERR_ARG: opts has a wrong size, level, name or net_devices.
 * RANK_ERR_CONFIG: a RANK_* variable has an invalid value.
 */
RANK_API rank_status_t rank_ctx_open(const rank_ctx_opts_t *opts, rank_ctx_t *ctx);

/* Close its listeners, disconnect its connections as rank_disconnect does, free its objects, and set *ctx to RANK_CTX_NULL.
 * Waits of other threads end with RANK_ERR_CLOSED. No thread may begin a call with one of its requests or memories
 * once the close has begun.
 * RANK_ERR_TIMED_OUT: a peer has not confirmed within timeout_ns. The context is closed anyway. Or another thread
 * stays in a call for 1 s more: then its memory is never freed. */
RANK_API rank_status_t rank_ctx_close(rank_ctx_t *ctx, int64_t timeout_ns);

/* As rank_progress, rank_progress_fd and rank_progress_arm, in a context. */
RANK_API rank_status_t rank_ctx_progress(rank_ctx_t ctx);
RANK_API rank_status_t rank_ctx_progress_fd(rank_ctx_t ctx, int *fd);
RANK_API rank_status_t rank_ctx_progress_arm(rank_ctx_t ctx);

/*
 * As rank_reg, in a context, with the rights of peers: RANK_ACCESS_READ, RANK_ACCESS_WRITE or both. They are part of the
 * key. Puts and signals need RANK_ACCESS_WRITE, gets RANK_ACCESS_READ, atomics that return a value need both.
 * RANK_ERR_ARG: access is 0 or has other bits. A call of a peer that needs another right fails with RANK_ERR_ARG there.
 * RANK_ERR_NOT_SUPPORTED: ptr is not host memory.
 */
RANK_API rank_status_t rank_ctx_reg(rank_ctx_t ctx, void *ptr, int64_t bytes, unsigned access, rank_mem_t *mem);
/*
 * Allocate memory, zeroed, and register it so. It is shared memory, which peers of this host map. rank_dereg,
 * rank_dereg_timed and rank_ctx_close free it.
 * RANK_ERR_NO_MEMORY: it does not fit. RANK_ERR_SYSTEM: no file descriptor is left; the memory keeps one.
 */
RANK_API rank_status_t rank_ctx_alloc(rank_ctx_t ctx, int64_t bytes, unsigned access, void **ptr, rank_mem_t *mem);

/* --------------------------------------------------------------------------- rank_connect: connect two processes */

typedef struct rank_listener *rank_listener_t;
#define RANK_LISTENER_NULL ((rank_listener_t)0)

/* rank_conn_opts.flags. OPEN, of a listener: accept peers of other hosts without a secret. NO_SHM, of either side: the
 * connection does not use shared memory on one host. NO_RDMA, of either side: UCX does not carry it; its socket or shared memory does. */
#define RANK_CONN_OPEN 1u
#define RANK_CONN_NO_SHM 2u
#define RANK_CONN_NO_RDMA 4u

typedef struct rank_conn_opts {
    size_t size;         /* set by RANK_CONN_OPTS_INIT; fields beyond it have their defaults */
    uint32_t flags;      /* RANK_CONN_*, or 0 */
    int32_t max_conns;   /* of a listener: connections at a time; 0: 1024 */
    const void *secret;  /* both sides prove that they have it; NULL: that of the file RANK_SECRET_FILE, or none */
    size_t secret_bytes; /* 16 to 4096 */
    const void *hello;   /* shown to the other side; may be NULL */
    size_t hello_bytes;  /* at most 1024 */
    int64_t timeout_ns;  /* of the handshake; 0: 5 s */
    int64_t silence_ns;  /* the peer is dead when its host has not answered for so long; 0: 10 s */
    int32_t backlog;     /* of a listener: clients that the system keeps waiting, as of listen(2); 0: 1024 */
    int32_t reserved;    /* 0 */
} rank_conn_opts_t;
#define RANK_CONN_OPTS_INIT {sizeof(rank_conn_opts_t), 0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0}

/*
 * Listen on "host:port", "[v6]:port" or ":port", which is all interfaces. Port 0: the system chooses. opts may be
 * NULL. Progress of the context carries out handshakes.
 * RANK_ERR_ARG: the address is malformed, or not on the loopback interface, and there is neither secret nor RANK_CONN_OPEN.
 * RANK_ERR_UNREACHABLE: the host is unknown.
 * RANK_ERR_SYSTEM: the address is in use, or not of this host.
 * RANK_ERR_CONFIG: RANK_SECRET_FILE is invalid. RANK_ERR_NOT_SUPPORTED: a secret needs libsodium, which is missing.
 */
RANK_API rank_status_t rank_listen(rank_ctx_t ctx, const char *address, const rank_conn_opts_t *opts,
                                   rank_listener_t *listener);

/* Write the address with its port as text. *len: capacity in, bytes with the NUL out.
 * RANK_ERR_TRUNCATED: it is too small; *len is what is needed. */
RANK_API rank_status_t rank_listener_address(rank_listener_t listener, char *text, size_t *len);

/* Close it, and the connections that are not accepted yet. Set *listener to RANK_LISTENER_NULL. */
RANK_API rank_status_t rank_listener_close(rank_listener_t *listener);

/*
 * Accept the next connection: a team of two, in which the side that connected is rank 0. Every call on teams works on
 * it. Waits for timeout_ns at most. 0: look once. Negative: for ever.
 * RANK_ERR_TIMED_OUT: there was none.
 * RANK_ERR_CLOSED: another thread has closed the listener.
 * RANK_ERR_SYSTEM: no file descriptor was left for a client. It still waits.
 */
RANK_API rank_status_t rank_accept(rank_listener_t listener, int64_t timeout_ns, rank_team_t *conn);

/*
 * Connect to a listener. As rank_accept on the other side.
 * RANK_ERR_UNREACHABLE: the host is unknown or does not answer, or nothing listens.
 * RANK_ERR_TIMED_OUT: the handshake took longer than opts->timeout_ns.
 * RANK_ERR_REFUSED: the listener has too many connections, is of another version, of this context, or is none.
 * RANK_ERR_SECRET: one side has no secret, or another one.
 */
RANK_API rank_status_t rank_connect(rank_ctx_t ctx, const char *address, const rank_conn_opts_t *opts, rank_team_t *conn);

/*
 * As rank_connect, without waiting: a test or wait of *req completes it, and then *conn is set. The request fails as
 * rank_connect does, and with RANK_ERR_CANCELED after rank_cancel. Time limit and cancel take effect within
 * 0.2 s, while the context makes progress. The call itself resolves the name of a host, which may wait for a name server:
 * give an address where it must not. *conn must stay until then.
 * RANK_ERR_ARG, RANK_ERR_CONFIG, RANK_ERR_NOT_SUPPORTED: as of rank_listen; *req is not set.
 * RANK_ERR_UNREACHABLE: the host is unknown; *req is not set.
 */
RANK_API rank_status_t rank_iconnect(rank_ctx_t ctx, const char *address, const rank_conn_opts_t *opts, rank_team_t *conn,
                                     rank_request_t *req);

/*
 * Disconnect: send what was accepted for sending, and end all other operations with RANK_ERR_CLOSED. The other side
 * receives what was sent whole, and then RANK_ERR_CLOSED. Keys that were opened on it are closed. *conn becomes
 * RANK_TEAM_NULL. rank_team_free is the same with 1 s. Waits for timeout_ns at most. 0: does not wait. Negative: for
 * ever.
 * RANK_OK: the other side has confirmed, or is gone. It touches nothing of this process any more.
 * RANK_ERR_TIMED_OUT: it has not confirmed.
 */
RANK_API rank_status_t rank_disconnect(rank_team_t *conn, int64_t timeout_ns);

typedef struct rank_conn_info {
    size_t size;           /* set by the caller: sizeof(rank_conn_info_t), or less: a multiple of 8; later fields are left out */
    char local[80], remote[80]; /* addresses */
    char name[64];         /* of the peer's context */
    char channel[16];      /* what carries the data: "shm", "ucx" or "tcp" */
    int32_t pid;           /* of the peer, if it is on this host; 0: it is not */
    int32_t proved;        /* 1: both sides have proved a secret */
    int64_t sent, received; /* bytes on the socket */
    size_t hello_bytes;
    unsigned char hello[1024]; /* of the peer */
    int64_t messages_sent, messages_received; /* also those of collectives; -1: UCX carries them */
    int64_t transfers, blocks;    /* lists of blocks that began here, and their blocks */
    int64_t refused;              /* frames and requests of the peer that were refused here */
    int64_t sent_ago_ns, received_ago_ns; /* since the last byte on the socket, by CLOCK_MONOTONIC; -1: none */
} rank_conn_info_t;

/* Describe a connection.
 * RANK_ERR_HANDLE: the team is not a connection. RANK_ERR_ARG: info is NULL, or its size is invalid. */
RANK_API rank_status_t rank_conn_info(rank_team_t conn, rank_conn_info_t *info);

#ifdef __cplusplus
}
#endif

#endif
