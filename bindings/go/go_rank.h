/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * go_rank.h: declare the C part of the package.
 *
 * Every call checks gates, so that a close ends it or refuses it.
 */
#ifndef GO_RANK_H
#define GO_RANK_H

#include <rank.h>

#include <semaphore.h>

typedef struct go_ctx go_ctx;   /* a context and the queue of its completions */
typedef struct go_team go_team; /* a team, or a connection */

/* A pointer of C that cgo neither checks nor copies to the heap: a go_op, a go_team or a rank_mem_t. */
typedef uintptr_t go_handle;

/* Kinds of operations that have a request. */
enum { GO_SEND, GO_SSEND, GO_RECV, GO_SENDV, GO_RECVV, GO_PUT, GO_GET, GO_WRITE, GO_READ, GO_START };

/* How an operation that is not complete is waited for. */
enum {
    GO_STAY, /* the thread waits in the library; nothing cancels it */
    GO_HOLD, /* the thread sleeps, since the memory is valid during the call only; go_op_cancel may end it */
    GO_PARK, /* the call returns GO_PENDING; completion puts the operation into the queue of the context */
    GO_LATER /* the call returns GO_PENDING; go_op_wait or go_op_park follows */
};

enum { GO_DONE, GO_PENDING };

/* An operation. It lies in memory of C, since the library writes it at any time. */
typedef struct go_op {
    rank_envelope_t envelope;
    int32_t status;   /* valid when it is done */
    int32_t how;      /* GO_STAY to GO_LATER */
    uint64_t id;      /* of the caller; go_ctx_reap returns it */
    int32_t started;  /* the request is valid: go_op_cancel may use it */
    int32_t canceled;
    int32_t persistent;
    rank_request_t req;
    rank_iov_t *iov; /* of a vector; freed with the operation */
    rank_block_t *blocks; /* of a list; freed with the operation */
    rank_notice_t notice; /* of a list; data NULL: none */
    go_ctx *ctx;
    struct go_op *next;
    struct go_op *older; /* in the list of its context */
    void *copy;          /* of the caller; freed with the operation */
    char *reason;        /* why it was not started, or NULL; freed with the operation */
    sem_t done;
} go_op;

rank_status_t go_ctx_open(const char *name, const char *net_devices, go_ctx **out);
/* Call rank_init. */
rank_status_t go_ctx_join(go_ctx **out);
/* Refuse calls that follow. */
void go_ctx_shut(go_ctx *c);
/* Permit them again. */
void go_ctx_reopen(go_ctx *c);
/* Close it, or call rank_finalize, which ignores timeout_ns. All threads must have left: go_ctx_users is 0. */
rank_status_t go_ctx_close(go_ctx *c, int64_t timeout_ns);
/* Free it with its operations. */
void go_ctx_free(go_ctx *c);
int64_t go_ctx_users(go_ctx *c);
int64_t go_ctx_parked(go_ctx *c);
int go_ctx_event_fd(go_ctx *c);
/* Write the ids of at most max complete operations. Returns their number. 0: the descriptor becomes readable. */
int go_ctx_reap(go_ctx *c, uint64_t *ids, int max);

/* Secret and hello may be memory of Go. */
rank_status_t go_listen(go_ctx *c, const char *address, rank_conn_opts_t opts, const void *secret, const void *hello,
                        rank_listener_t *out);
rank_status_t go_accept(go_ctx *c, rank_listener_t listener, go_team **out);
rank_status_t go_connect(go_ctx *c, const char *address, rank_conn_opts_t opts, const void *secret, const void *hello,
                         go_team **out);

rank_status_t go_conn_info(go_team *t, rank_conn_info_t *info);
rank_status_t go_conn_disconnect(go_team *t, int64_t timeout_ns);

rank_status_t go_team_world(go_ctx *c, go_team **out);
/* How a team is made of another one. */
enum { GO_SPLIT, GO_SPLIT_SHARED, GO_DUP };
/* *out is NULL for a rank that joins no team. */
rank_status_t go_team_make(go_team *t, int how, int color, int key, go_team **out);
/* Negative: the team is closed. */
int go_team_rank(go_team *t);
int go_team_size(go_team *t);
/* Refuse calls that follow, and wait until no call is about to use the team. */
void go_team_shut(go_team *t);
/* Free the team. It is shut, and go_team_blocked is 0. */
rank_status_t go_team_close(go_team *t);
int64_t go_team_blocked(go_team *t);
/* No-op if NULL. The team is closed or disconnected, or its context closed. */
void go_team_drop(go_team *t);

/* Collectives. */
enum { GO_BARRIER, GO_BCAST, GO_REDUCE, GO_ALLREDUCE, GO_GATHER, GO_ALLGATHER, GO_SCATTER, GO_ALLTOALL, GO_REDUCE_SCATTER,
       GO_SCAN, GO_EXSCAN };
/* in NULL: in place. out of a scatter NULL: in place. */
rank_status_t go_collective(go_handle team, int kind, const void *in, void *out, int64_t n, rank_dtype_t dtype, rank_op_t op, int root);

/* One call at a time. go_ctx_free frees it. */
go_op *go_op_new(go_ctx *c);
/* The operation is complete. Frees its request. */
void go_op_end(go_op *op);
/* where is a tag, or an offset in mem. Returns GO_DONE with op->status, or GO_PENDING. */
int go_op_start(go_handle op, go_handle team, int kind, void *data, int64_t n, int peer, int64_t where, go_handle mem, int how,
                int cancels);
/* Make a list of op->blocks that GO_START starts. */
rank_status_t go_op_prepare(go_op *op, go_team *t, int kind, int64_t n, int peer);
/* Poll for a short time. Returns GO_DONE or GO_PENDING. */
int go_op_wait(go_op *op);
int go_op_test(go_op *op);
/* Report completion through the queue. Returns GO_DONE if it is complete already. */
int go_op_park(go_op *op);
void go_op_cancel(go_op *op);

/* Waits of a slice of time: RANK_ERR_TIMED_OUT, call again. */
rank_status_t go_mprobe(go_team *c, int peer, int64_t tag, int64_t timeout_ns, rank_message_t *message, rank_envelope_t *envelope);
rank_status_t go_mrecv(go_team *c, void *data, int64_t n, rank_message_t *message, rank_envelope_t *envelope);
/* envelope is that of the receive. */
rank_status_t go_sendrecv(go_team *c, const void *out, int64_t n_out, int dest, int64_t tag_out, void *in, int64_t n_in, int source,
                          int64_t tag_in, rank_envelope_t *envelope);
rank_status_t go_signal_wait(go_ctx *c, rank_mem_t mem, int64_t offset, int cmp, uint64_t value, int64_t timeout_ns, uint64_t *seen);

rank_status_t go_mem_register(go_ctx *c, void *data, int64_t n, unsigned access, rank_mem_t *mem);
rank_status_t go_mem_alloc(go_ctx *c, int64_t n, unsigned access, void **data, rank_mem_t *mem);
rank_status_t go_mem_deregister(go_ctx *c, rank_mem_t mem, int64_t timeout_ns);
rank_status_t go_mem_pack(go_ctx *c, rank_mem_t mem, void *key, size_t *len);

/* Collective. */
rank_status_t go_team_alloc(go_team *c, int64_t n, void **data, rank_mem_t *mem);
rank_status_t go_team_free(go_team *c, rank_mem_t mem);

/* keys NULL: *len becomes what is needed. */
rank_status_t go_mem_pack_all(go_ctx *c, int64_t n, const rank_mem_t *mems, void *keys, size_t *len);

rank_status_t go_remote_open_all(go_team *c, int peer, const void *keys, size_t len, int64_t *n, rank_mem_t *mems);
rank_status_t go_remote_open(go_team *c, int peer, const void *key, size_t len, rank_mem_t *mem);
rank_status_t go_remote_close(go_team *c, rank_mem_t mem);
rank_status_t go_remote_flush(go_handle team, int peer, go_handle mem);
rank_status_t go_remote_fence(go_team *c, rank_mem_t mem);
rank_status_t go_remote_vector(go_team *c, int peer, rank_mem_t mem, int put, const rank_piece_t *pieces, int64_t n);
rank_status_t go_remote_atomic(go_handle team, int peer, go_handle mem, int amo, rank_dtype_t dtype, uint64_t operand, int64_t offset,
                               uint64_t *result);
rank_status_t go_remote_cas(go_handle team, int peer, go_handle mem, rank_dtype_t dtype, uint64_t expected, uint64_t desired, int64_t offset,
                            uint64_t *result);
rank_status_t go_remote_put_signal(go_team *c, int peer, rank_mem_t mem, const void *data, int64_t n, int64_t offset, rank_mem_t signal_mem,
                                   int64_t signal_offset, uint64_t value, int op);

#endif
