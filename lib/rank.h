/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank.h: declare the public interface of librank.
 *
 * doc/update.sh makes the manual pages from the comments; doc/rank3.awk explains their form.
 *
 * Conventions
 *   - Every call returns a rank_status_t. RANK_OK is 0, and every error is negative.
 *   - Exceptions return a value or a negative status: rank_team_rank, rank_team_size, rank_thread_level,
 *     rank_dtype_size.
 *   - rank_op_defined and rank_initialized return 0 or 1. rank_status_string and rank_version return text.
 *   - rank_channel_name and rank_world return NULL on an error. rank_abort does not return.
 *   - Only rank_abort ends the process. With RANK_ERRORS=abort an argument error does too.
 *   - Inputs come first, outputs last. Outputs are written only on success.
 *   - An envelope is also written when a receive is truncated.
 *   - Messages and collectives count elements of the datatype. One-sided calls count bytes. A rank_iov_t counts bytes.
 *   - Counts are int64_t, ranks are int, tags are int64_t >= 0.
 *   - A buffer belongs to the library until its request is complete.
 *   - Until then a send buffer may be read, but not changed. A receive buffer must not be accessed.
 *   - Every rank of a team makes the team's collective calls, in the same order.
 *
 * Completion
 *   - A blocking call returns when its operation is complete at this rank.
 *   - A completed send means that its buffer is free. The receiver may not have the data yet.
 *   - A completed receive means that the data is in the buffer.
 *   - A completed put means that its buffer is free. rank_flush makes the data visible at the peer.
 *   - A completed collective means that this rank's part is done. Only a barrier synchronizes all ranks.
 *   - If a peer fails, operations that need it complete with RANK_ERR_PEER_DEAD. Others continue.
 *
 * Thread safety
 *   - SINGLE, FUNNELED, SERIALIZED: the caller ensures that no two calls run at the same time.
 *   - MULTIPLE: any thread may call at any time, also while other threads wait in calls.
 *   - At MULTIPLE one thread at a time uses a request, a probed message or a buffer.
 *   - At MULTIPLE the collective calls on one team still have one order.
 *   - The caller frees no object that another thread uses. rank_init and rank_finalize run alone.
 *   - Any thread may call rank_status_string, rank_version, rank_initialized and rank_abort at any time.
 *   - A callback of rank_on_done runs on the thread that makes the progress.
 *
 * Errors
 *   - Argument errors are found before any data moves or any process starts. They change nothing.
 *   - RANK_ERR_HANDLE: a team, memory, request or message is null, freed or of another kind.
 *   - RANK_ERR_RANK, RANK_ERR_TAG, RANK_ERR_DTYPE, RANK_ERR_OP: the argument of that name is invalid.
 *   - RANK_ERR_COUNT: a count is negative, or exceeds the address space.
 *   - RANK_ERR_BOUNDS: a one-sided call reaches outside the memory of the peer.
 *   - RANK_ERR_ARG: a needed pointer is NULL, or any other argument is invalid.
 *   - RANK_ERR_STATE: the call is not allowed now, for example before rank_init, or in a forked child.
 *   - A call that reaches a peer may also return the four that follow.
 *   - RANK_ERR_PEER_DEAD: the peer has failed.
 *   - RANK_ERR_UNREACHABLE: no channel leads to the peer, or its host does not answer. The peer may live.
 *   - RANK_ERR_NO_MEMORY: out of memory. RANK_ERR_CHANNEL: the channel itself failed.
 *   - A blocking call returns such an error. A nonblocking call returns it too, and then creates no request.
 *   - If it occurs later, the envelope's status, and the test or wait call, report it.
 *   - One-sided calls without a request report it in the next rank_flush.
 */
#ifndef RANK_H
#define RANK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RANK_API __attribute__((visibility("default")))
#else
#define RANK_API
#endif

#define RANK_VERSION_MAJOR 0
#define RANK_VERSION_MINOR 1
#define RANK_VERSION_PATCH 0

/* -------------------------------------------------------------------------- rank_status: status codes and version */

/* List each status once: code, name, text. */
#define RANK_STATUS_MAP(X)                                                      \
    X(0, OK, "success")                                                         \
    X(-1, ERR_ARG, "an argument is invalid")                                    \
    X(-2, ERR_STATE, "the library is not in the state that this call needs")    \
    X(-3, ERR_NO_MEMORY, "out of memory")                                       \
    X(-4, ERR_TRUNCATED, "the message is longer than the receive buffer")       \
    X(-5, ERR_PEER_DEAD, "a peer process died")                                 \
    X(-6, ERR_UNREACHABLE, "no channel leads to the peer")                      \
    X(-7, ERR_NOT_SUPPORTED, "not supported by this build or on this machine")  \
    X(-8, ERR_CONFIG, "a configuration value is invalid")                       \
    X(-9, ERR_BOOT, "the bootstrap (PMIx) failed")                              \
    X(-10, ERR_CHANNEL, "a channel failed")                                     \
    X(-11, ERR_HANDLE, "not a valid handle (null, freed or of another type)")   \
    X(-12, ERR_RANK, "rank out of range for this team")                         \
    X(-13, ERR_TAG, "tag out of range")                                         \
    X(-14, ERR_COUNT, "count out of range")                                     \
    X(-15, ERR_DTYPE, "not a datatype, or not one this operation works on")     \
    X(-16, ERR_OP, "not a reduction operation")                                 \
    X(-17, ERR_BOUNDS, "outside the remote memory")                             \
    X(-18, ERR_SYSTEM, "a system call failed")                                  \
    X(-19, ERR_INTERNAL, "internal error")                                      \
    X(-20, ERR_TIMED_OUT, "timed out")                                          \
    X(-21, ERR_SPAWN, "the launcher could not start the processes")             \
    X(-22, ERR_CANCELED, "the operation was taken back before it began")        \
    X(-23, ERR_AGAIN, "there is something to do: make progress first")

typedef enum rank_status {
#define RANK_STATUS_ENUM(code, name, text) RANK_##name = code,
    RANK_STATUS_MAP(RANK_STATUS_ENUM)
#undef RANK_STATUS_ENUM
} rank_status_t;

/* Returns the text of a status, never NULL, in static storage. */
RANK_API const char *rank_status_string(rank_status_t status);

/* Returns the version of the library as "major.minor.patch", in static storage. */
RANK_API const char *rank_version(void);

/* ------------------------------------------------------------------------------------ rank: handles and constants */

typedef struct rank_team *rank_team_t;       /* a group of ranks with its own tags */
typedef struct rank_request *rank_request_t; /* a nonblocking operation */
typedef struct rank_message *rank_message_t; /* a message that a matched probe has claimed */
typedef struct rank_mem *rank_mem_t;         /* memory that peers can access */

#define RANK_TEAM_NULL ((rank_team_t)0)
#define RANK_REQUEST_NULL ((rank_request_t)0)
#define RANK_MESSAGE_NULL ((rank_message_t)0)
#define RANK_MEM_NULL ((rank_mem_t)0)

enum {
    RANK_ANY_SOURCE = -1,
    RANK_ANY_TAG = -1,
    RANK_UNDEFINED = -2, /* color: this rank joins no new team */
    RANK_ALL = -1        /* peer in rank_flush: all ranks */
};

/* In a collective: the input is already in the output buffer. */
#define RANK_IN_PLACE ((void *)-1)

/* --------------------------------------------------------------------------- rank_dtype: datatypes and operations */

typedef enum rank_dtype {
    RANK_BYTE = 0,
    RANK_INT8,
    RANK_INT16,
    RANK_INT32,
    RANK_INT64,
    RANK_UINT8,
    RANK_UINT16,
    RANK_UINT32,
    RANK_UINT64,
    RANK_F16,  /* IEEE binary16 */
    RANK_BF16, /* bfloat16: the upper half of an F32 */
    RANK_F32,
    RANK_F64,
    RANK_C32, /* complex of two F32 */
    RANK_C64, /* complex of two F64 */
    RANK_PAIR_INT32, /* value and index, for MINLOC and MAXLOC */
    RANK_PAIR_INT64,
    RANK_PAIR_F32,
    RANK_PAIR_F64,
    RANK_DTYPE_COUNT
} rank_dtype_t;

typedef struct rank_pair_int32 { int32_t value, index; } rank_pair_int32_t;
typedef struct rank_pair_int64 { int64_t value, index; } rank_pair_int64_t;
typedef struct rank_pair_f32 { float value; int32_t index; } rank_pair_f32_t;
typedef struct rank_pair_f64 { double value; int64_t index; } rank_pair_f64_t;

typedef enum rank_op {
    RANK_SUM = 0,
    RANK_PROD,
    RANK_MIN,
    RANK_MAX,
    RANK_AVG, /* sum divided by the team size; floating point and complex only */
    RANK_LAND,
    RANK_LOR,
    RANK_LXOR,
    RANK_BAND,
    RANK_BOR,
    RANK_BXOR,
    RANK_MINLOC, /* pairs only; the lower index wins a tie */
    RANK_MAXLOC,
    RANK_OP_COUNT
} rank_op_t;

/* Returns the bytes of one element, or a negative status. */
RANK_API int64_t rank_dtype_size(rank_dtype_t dtype);

/* Returns 1 if the operation is defined for the datatype, else 0. */
RANK_API int rank_op_defined(rank_op_t op, rank_dtype_t dtype);

/* --------------------------------------------------------------------------------------- rank_init: start and end */

typedef enum rank_thread_level {
    RANK_THREAD_SINGLE = 0, /* the process has one thread */
    RANK_THREAD_FUNNELED,   /* only the thread that called rank_init calls */
    RANK_THREAD_SERIALIZED, /* any thread calls, one at a time */
    RANK_THREAD_MULTIPLE    /* any thread at any time */
} rank_thread_level_t;

typedef struct rank_init_opts {
    size_t size;         /* sizeof(rank_init_opts_t); fields beyond it have their defaults */
    int32_t thread_level; /* a rank_thread_level_t; default SERIALIZED */
    int32_t reserved;     /* 0 */
} rank_init_opts_t;

/*
 * Join the world, the team of all ranks. Collective over the job. opts may be NULL. Under a PMIx server the world is the
 * job. A program that starts alone is a world of one. The library can be initialized once in a process.
 * RANK_ERR_STATE: the library is or was initialized.
 * RANK_ERR_ARG: opts has a wrong size, level or reserved field.
 * RANK_ERR_CONFIG: a RANK_* variable has an invalid value.
 * RANK_ERR_BOOT: the PMIx server failed, or its data is invalid.
 * RANK_ERR_SYSTEM: the progress thread could not be started.
 * RANK_ERR_PEER_DEAD: another rank failed before it joined.
 */
RANK_API rank_status_t rank_init(const rank_init_opts_t *opts);

/* Leave the world. Collective. Completes what was sent and frees all objects. Teams, requests and memory that are not
 * freed become invalid. After a rank has failed, the others do not wait for it. Teams of several worlds are freed first,
 * as by rank_team_free. */
RANK_API rank_status_t rank_finalize(void);

/* Returns the rank_thread_level_t that rank_init was given, or RANK_ERR_STATE outside rank_init and rank_finalize.
 * Every level is granted as requested. */
RANK_API int rank_thread_level(void);

/* Returns 1 between a successful rank_init and rank_finalize, else 0. */
RANK_API int rank_initialized(void);

/* End the whole job. The exit code is code & 255, or 1 if that is 0. text may be NULL. Before rank_init it ends only
 * this process. Does not return. */
RANK_API void rank_abort(int code, const char *text) __attribute__((noreturn));

/* Returns the team of all ranks, or RANK_TEAM_NULL before rank_init. The caller must not free it. */
RANK_API rank_team_t rank_world(void);

/* ------------------------------------------------------------------------------------- rank_team: groups of ranks */

/* Returns the rank of this process in the team, 0 to size - 1, or a negative status. */
RANK_API int rank_team_rank(rank_team_t team);

/* Returns the number of ranks in the team, or a negative status. */
RANK_API int rank_team_size(rank_team_t team);

/*
 * Split a team by color. Collective over team. The ranks of a new team are ordered by key, then by their rank in team.
 * color is >= 0, or RANK_UNDEFINED for a rank that joins no new team. Its *out is RANK_TEAM_NULL. The caller frees *out.
 */
RANK_API rank_status_t rank_team_split(rank_team_t team, int color, int key, rank_team_t *out);

/* Split a team by shared memory. Collective over team. The ranks of a new team can load and store each other's
 * rank_alloc memory. The caller frees *out. */
RANK_API rank_status_t rank_team_split_shared(rank_team_t team, int key, rank_team_t *out);

/* Create a team of the same ranks with its own tags. Collective over team. The caller frees *out. */
RANK_API rank_status_t rank_team_dup(rank_team_t team, rank_team_t *out);

/*
 * Free a team and set *team to RANK_TEAM_NULL. Collective over team. No operation may be pending on it. On a team of one
 * world the call does not synchronize. On a team of several worlds it waits until every rank frees the team, finalizes
 * or fails. Freeing the last team that two worlds share disconnects them, if it has all their ranks. Each then ignores
 * failures of the other. Otherwise they stay connected until they end.
 */
RANK_API rank_status_t rank_team_free(rank_team_t *team);

/* ---------------------------------------------------------------------------- rank_spawn: start further processes */

typedef struct rank_spawn_params {
    size_t size;             /* sizeof(rank_spawn_params_t) */
    const char *program;     /* a path, or a name that the launcher finds in PATH */
    const char *const *args; /* arguments after the program's name, NULL at the end; NULL: none */
    const char *const *env;  /* additional NAME=value, NULL at the end; NULL: none */
    const char *dir;         /* working directory; NULL: that of root */
    int32_t n;               /* number of processes */
    int32_t reserved;        /* 0 */
} rank_spawn_params_t;

/*
 * Start n ranks of a program as a new world, and create a team of both worlds. Collective over team. In *both the ranks
 * of team come first, then the new ones, each in their order. Each new rank gets it from rank_parent. params is used at
 * root only, and is read during the call only. The call returns when the new ranks are in rank_init, which waits for the
 * parents. *both works in every call that takes a team. The caller frees it, in both worlds. A rank that fails in one
 * world is a dead peer in the other, if the launcher continues the job. The call needs UCX, and a launcher that can
 * start processes at run time. It has no time limit of its own.
 *
 * An invalid team or root fails at once, on that rank alone. All other errors are equal on every rank that lives. After
 * an error that follows the start, rank_init of the new ranks fails too.
 * RANK_ERR_ARG: params at root is NULL or invalid, or both is NULL on some rank.
 * RANK_ERR_COUNT: n is less than 1, or too large.
 * RANK_ERR_NOT_SUPPORTED: there is no launcher, or it cannot start processes.
 * RANK_ERR_SPAWN: the launcher could not start the program. The log has the cause.
 * RANK_ERR_PEER_DEAD: a new rank ended before it joined, or a rank of team failed.
 * RANK_ERR_BOOT: the new ranks or the launcher sent invalid data, for example of another library version.
 * RANK_ERR_CONFIG: RANK_CHANNELS excludes ucx on some rank.
 * RANK_ERR_CHANNEL, RANK_ERR_UNREACHABLE: UCX could not be opened, or does not reach the other world.
 */
RANK_API rank_status_t rank_spawn(const rank_spawn_params_t *params, int root, rank_team_t team,
                                  rank_team_t *both);

/*
 * Get the team of parents and children, in a world that rank_spawn started. *nparents is the number of its first ranks
 * that are parents. nparents may be NULL. The ranks after the parents are the ranks of this world, in their order. The
 * call is local, and always gives the same team. The parents may still be in rank_spawn. *both is RANK_TEAM_NULL and
 * *nparents is 0 in any other world, and after rank_team_free of the team.
 */
RANK_API rank_status_t rank_parent(rank_team_t *both, int *nparents);

/* --------------------------------------------------------------------------- rank_send: send and receive messages */

/* The result of a receive or a probe. The library sets size. */
typedef struct rank_envelope {
    uint32_t size;        /* bytes of this struct that the library has set */
    int32_t source;       /* rank in the team */
    int64_t tag;
    int64_t count;        /* whole elements received; a probe: bytes waiting */
    int64_t bytes;        /* bytes received; a probe: bytes waiting */
    int64_t sent_bytes;   /* bytes that the sender sent; larger than bytes if truncated */
    rank_status_t status; /* result of this operation */
    int32_t reserved[5];
} rank_envelope_t;

/* Send a message. The call returns when buf may be reused. Messages between two ranks on one team are received in the
 * order sent, if one receive could match them. A message longer than RANK_EAGER_MAX waits for its receive. If all ranks
 * send first, receivers buffer such messages up to RANK_AHEAD_MAX bytes. Beyond that the sends never return. */
RANK_API rank_status_t rank_send(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                 int64_t tag, rank_team_t team);

/* Send a message, and return only after a receive has matched it. */
RANK_API rank_status_t rank_ssend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team);

/*
 * Receive a message from peer or RANK_ANY_SOURCE, with tag or RANK_ANY_TAG. envelope may be NULL.
 * RANK_ERR_TRUNCATED: the message is longer than count. The first count elements are in buf, the rest is lost.
 * RANK_ERR_PEER_DEAD: the peer failed before it sent a matching message. With RANK_ANY_SOURCE each failure in the team
 *   ends all pending wildcard receives and probes once. If none is pending, the failure ends the next one. Later ones
 *   wait for the survivors. If no other rank of the team lives, each one ends at once, unless a matching message has
 *   arrived.
 */
RANK_API rank_status_t rank_recv(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                 int64_t tag, rank_team_t team, rank_envelope_t *envelope);

/* Start a send or a receive. A test or wait call completes *req and frees it. The buffers of pending receives must not
 * overlap. Debug builds return RANK_ERR_ARG for the second. */
RANK_API rank_status_t rank_isend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_issend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                   int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_irecv(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team, rank_request_t *req);

/* Send and receive at the same time. Cannot deadlock with the same call on other ranks. envelope may be NULL.
 * Returns the status of the receive, or that of the send if the receive succeeded. */
RANK_API rank_status_t rank_sendrecv(const void *sbuf, int64_t scount, rank_dtype_t sdtype,
                                     int dest, int64_t stag, void *rbuf, int64_t rcount,
                                     rank_dtype_t rdtype, int source, int64_t rtag,
                                     rank_team_t team, rank_envelope_t *envelope);

/* ------------------------------------------------------------ rank_probe: inspect a message before it is received */

/* Wait for a matching message, without receiving it. Arguments are those of rank_recv.
 * RANK_ERR_PEER_DEAD: as for rank_recv. */
RANK_API rank_status_t rank_probe(int peer, int64_t tag, rank_team_t team,
                                  rank_envelope_t *envelope);

/* As rank_probe, without waiting. *found is 1 if there is a message, else 0. */
RANK_API rank_status_t rank_iprobe(int peer, int64_t tag, rank_team_t team, int *found,
                                   rank_envelope_t *envelope);

/* As rank_probe, and claim the message: no other receive or probe matches it. rank_mrecv or rank_imrecv receives
 * *message, once. Until then its sender may wait. rank_finalize frees a message that is never received. */
RANK_API rank_status_t rank_mprobe(int peer, int64_t tag, rank_team_t team,
                                   rank_message_t *message, rank_envelope_t *envelope);

/* As rank_mprobe, without waiting. *found is 0 and *message is unchanged if there is none. */
RANK_API rank_status_t rank_improbe(int peer, int64_t tag, rank_team_t team, int *found,
                                    rank_message_t *message, rank_envelope_t *envelope);

/* Receive the message and set *message to RANK_MESSAGE_NULL. The receive has already matched, so rank_cancel has no
 * effect.
 * RANK_ERR_PEER_DEAD: the sender failed before it delivered the data. */
RANK_API rank_status_t rank_mrecv(void *buf, int64_t count, rank_dtype_t dtype,
                                  rank_message_t *message, rank_envelope_t *envelope);
RANK_API rank_status_t rank_imrecv(void *buf, int64_t count, rank_dtype_t dtype,
                                   rank_message_t *message, rank_request_t *req);

/* ------------------------------------------------------------------ rank_sendv: send and receive scattered memory */

/* count blocks of bytes bytes. The first is at base. Each next one is stride bytes further. stride may be negative.
 * count 0 has the meaning of 1. {.base = p, .bytes = n} is n bytes at p. {.base = &a[0][j], .bytes = 8, .count = rows,
 * .stride = 8 * cols} is column j of a matrix of doubles. */
typedef struct rank_iov {
    void *base;
    int64_t bytes;
    int64_t count;
    int64_t stride;
} rank_iov_t;

/*
 * Send or receive n pieces, in order, as one message of bytes. It matches receives and sends of any form, rank_recv and
 * rank_send included. Pieces may be empty, and n may be 0. Envelopes count bytes. Truncation is that of rank_recv. The
 * list belongs to the library until the request is complete, as the data does. Pieces of a receive must not overlap. An
 * overlap between two pieces is found in debug builds only.
 * RANK_ERR_COUNT: a number is negative, or a piece or the sum exceeds the address space.
 * RANK_ERR_ARG: a base is NULL, or pieces of a receive overlap.
 */
RANK_API rank_status_t rank_sendv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                  rank_team_t team);
RANK_API rank_status_t rank_recvv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                  rank_team_t team, rank_envelope_t *envelope);
RANK_API rank_status_t rank_isendv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                   rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_irecvv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                   rank_team_t team, rank_request_t *req);

/* ------------------------------------------------------------------ rank_request: complete nonblocking operations */

/*
 * A test or wait call returns the status of the operation. It frees a complete request and sets it to RANK_REQUEST_NULL.
 * A persistent request stays, and can be started again. A null request is complete. So is a persistent request that is
 * not started. Envelopes may be NULL. In a callback of rank_on_done, a wait for an incomplete request is RANK_ERR_STATE.
 */

/* Test one request, or wait for it. *done is 1 if it is complete, else 0. */
RANK_API rank_status_t rank_test(rank_request_t *req, int *done, rank_envelope_t *envelope);
RANK_API rank_status_t rank_wait(rank_request_t *req, rank_envelope_t *envelope);

/* Wait for all requests.
 * Returns the first error in array order. */
RANK_API rank_status_t rank_waitall(int n, rank_request_t *reqs, rank_envelope_t *envelopes);

/* Wait for one request. *index is its place, or RANK_UNDEFINED if all are null. */
RANK_API rank_status_t rank_waitany(int n, rank_request_t *reqs, int *index,
                                    rank_envelope_t *envelope);

/* Test all requests. If all are complete, *done is 1 and they end as in rank_waitall. Otherwise none ends. */
RANK_API rank_status_t rank_testall(int n, rank_request_t *reqs, int *done,
                                    rank_envelope_t *envelopes);

/* Test for one complete request. If there is one, *done is 1 and it ends as in rank_waitany. If all are null, *done is 1
 * too. If none is complete, *index is RANK_UNDEFINED. */
RANK_API rank_status_t rank_testany(int n, rank_request_t *reqs, int *index, int *done,
                                    rank_envelope_t *envelope);

/* Wait for one request, and end all that are complete then. Allocates no memory. *ndone is their number, or
 * RANK_UNDEFINED if all are null. indices has room for n places. The first *ndone of indices and envelopes are written.
 * Returns the first error in array order. */
RANK_API rank_status_t rank_waitsome(int n, rank_request_t *reqs, int *ndone, int *indices,
                                     rank_envelope_t *envelopes);

/* As rank_waitsome, without waiting. *ndone may be 0. */
RANK_API rank_status_t rank_testsome(int n, rank_request_t *reqs, int *ndone, int *indices,
                                     rank_envelope_t *envelopes);

/*
 * Cancel an operation that has not begun: a receive without a match, or a send that is still queued here. It completes
 * with RANK_ERR_CANCELED, also in its envelope. A test or wait call is still needed. Any other operation ends as without
 * the call. One-sided operations have always begun. Local: it does not wait, and makes no progress.
 * RANK_ERR_NOT_SUPPORTED: the request is a collective.
 */
RANK_API rank_status_t rank_cancel(rank_request_t *req);

/*
 * Call fn exactly once, when the request is complete. *req becomes RANK_REQUEST_NULL. The library frees the request
 * before the call. A persistent request stays with the caller, and can be started again in fn. Until then test and wait
 * are RANK_ERR_STATE. If the request is already complete, fn may run before rank_on_done returns. Otherwise a call that
 * makes progress runs fn, on its own thread. Callbacks run one at a time, never nested, in the order of completion. fn
 * may start operations, give them callbacks, test, and make progress. fn must not wait or finalize. A request that is
 * not complete when rank_finalize returns gets no call.
 */
typedef void (*rank_done_fn)(const rank_envelope_t *envelope, void *arg);
RANK_API rank_status_t rank_on_done(rank_request_t *req, rank_done_fn fn, void *arg);

/* ------------------------------------------------------------------------------ rank_start: persistent operations */

/* Create an operation that can be started many times. It is not started. The arguments and the behavior are those of
 * rank_isend, rank_issend and rank_irecv. After a test or wait call has completed it, it can be started again.
 * rank_request_free frees it. */
RANK_API rank_status_t rank_send_init(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                      int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ssend_init(const void *buf, int64_t count, rank_dtype_t dtype,
                                       int peer, int64_t tag, rank_team_t team,
                                       rank_request_t *req);
RANK_API rank_status_t rank_recv_init(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                      int64_t tag, rank_team_t team, rank_request_t *req);

/*
 * Start one persistent operation, or n in array order. rank_startall starts none if one of them is invalid, pending, or
 * named twice. If a debug build refuses a receive because of an overlap, the operations before it are started.
 * RANK_ERR_STATE: the operation is already started.
 * RANK_ERR_HANDLE: the request is not persistent, or its team has been freed.
 */
RANK_API rank_status_t rank_start(rank_request_t *req);
RANK_API rank_status_t rank_startall(int n, rank_request_t *reqs);

/* ------------------------------------------------------------------ rank_request: complete nonblocking operations */

/* Release a request and set *req to RANK_REQUEST_NULL. A pending operation continues, and its request is freed at
 * completion. Its buffer belongs to the library until then. The caller gets no notice of that completion.
 * RANK_ERR_NOT_SUPPORTED: the request is a pending collective. */
RANK_API rank_status_t rank_request_free(rank_request_t *req);

/* --------------------------------------------------------- rank_progress: make progress and wait in an event loop */

/* Make progress on all operations, without waiting. */
RANK_API rank_status_t rank_progress(void);

/*
 * Get a descriptor for the event loop of the caller, for example poll or epoll. It is always the same one. The library
 * owns it, and rank_finalize closes it. The caller must not read it. Call rank_progress_arm before each wait on it, and
 * again after any other call of the library. RANK_OK means that no work is left, and that the descriptor becomes
 * readable when there is some. When it is readable, call rank_progress. It may be readable without work. Only one thread
 * may use the descriptor: the last one that armed it. It becomes readable when any other thread makes progress.
 * RANK_ERR_AGAIN: there was work. Test the requests and arm again.
 * RANK_ERR_STATE: rank_progress_arm was called before rank_progress_fd.
 * RANK_ERR_SYSTEM: no file descriptor is available.
 */
RANK_API rank_status_t rank_progress_fd(int *fd);
RANK_API rank_status_t rank_progress_arm(void);

/* ------------------------------------------------------------------------- rank_mem: memory that peers can access */

typedef enum rank_mem_kind {
    RANK_MEM_HOST = 0,
    RANK_MEM_CUDA /* not supported yet */
} rank_mem_kind_t;

/*
 * Allocate bytes on every rank of team, zeroed. Collective. Every rank gives the same bytes. flags is 0. *ptr is the
 * part of this rank. *mem is the handle of all parts. Each part is aligned for every datatype. Fails on every rank or on
 * none. Free the memory before its team.
 * RANK_ERR_ARG: the ranks give different sizes, or flags is not 0.
 * RANK_ERR_NOT_SUPPORTED: kind is RANK_MEM_CUDA.
 */
RANK_API rank_status_t rank_alloc(rank_team_t team, rank_mem_kind_t kind, int64_t bytes,
                                  uint64_t flags, void **ptr, rank_mem_t *mem);

/* Free the memory and set *mem to RANK_MEM_NULL. Collective. Waits for all ranks. */
RANK_API rank_status_t rank_free(rank_mem_t *mem);

/* Get the address of a peer's part in this process. *ptr is NULL if it cannot be mapped. */
RANK_API rank_status_t rank_ptr(rank_mem_t mem, int peer, void **ptr);

/*
 * Register memory of this rank, so that peers can open a key to it. Not collective. The handle belongs to this rank. Its
 * only peer is the caller's rank in the world. The memory must stay until rank_dereg. Call rank_dereg after the last
 * rank_flush of the peers. Peers of the node map memory that is shared (memfd_create, shm_open, MAP_SHARED). It then
 * behaves like rank_alloc memory. Memory that is read-only at registration, even in part, cannot be written by
 * peers. Memory that is unreadable, even in part, cannot be read.
 * RANK_ERR_ARG: a peer's call writes memory that was registered read-only, or reads unreadable memory.
 */
RANK_API rank_status_t rank_reg(void *ptr, int64_t bytes, rank_mem_t *mem);
RANK_API rank_status_t rank_dereg(rank_mem_t *mem);

enum { RANK_RKEY_MAX = 1024 }; /* bytes of the longest key */

/* Write the key of registered memory. It can be sent to peers by any means. *len is the room in key before the call, and
 * the length of the key after it.
 * RANK_ERR_TRUNCATED: there is too little room. */
RANK_API rank_status_t rank_rkey_pack(rank_mem_t mem, void *key, size_t *len);

/*
 * Open a key that peer, a rank of team, has packed. *mem serves one-sided calls to that peer. Offsets count from the
 * start of the registered memory. If the memory cannot be inspected from here, the call waits until the peer makes
 * progress.
 * RANK_ERR_HANDLE: the key is damaged, of another peer, or of memory that is no longer registered.
 */
RANK_API rank_status_t rank_rkey_open(rank_team_t team, int peer, const void *key, size_t len,
                                      rank_mem_t *mem);

/* Flush as rank_flush does, close the key and set *mem to RANK_MEM_NULL. */
RANK_API rank_status_t rank_rkey_close(rank_mem_t *mem);

/* -------------------------------------------------------------------------- rank_put: access the memory of a peer */

/* peer is a rank of the team of mem. offset and bytes are in bytes, in the part of peer. doc/rma.md defines when data is
 * visible, and what a failure leaves. */

/* Copy bytes from src to the memory of peer. On return src may be reused. The data is visible at the peer after
 * rank_flush. Puts to one peer have no order, unless rank_fence separates them. */
RANK_API rank_status_t rank_put(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                int64_t offset);

/* Copy bytes from the memory of peer. On return dst holds the data. */
RANK_API rank_status_t rank_get(void *dst, int64_t bytes, int peer, rank_mem_t mem,
                                int64_t offset);

/* Start a put or a get. When the request is complete, src may be reused, or dst holds the data. Each successful call
 * creates a request, which test, wait and rank_on_done take. rank_flush completes it, but does not free it. */
RANK_API rank_status_t rank_iput(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                 int64_t offset, rank_request_t *req);
RANK_API rank_status_t rank_iget(void *dst, int64_t bytes, int peer, rank_mem_t mem,
                                 int64_t offset, rank_request_t *req);

/* A piece of a vector. A put reads local, a get writes it. */
typedef struct rank_piece {
    void *local;
    int64_t bytes;
    int64_t offset; /* in the part of peer */
} rank_piece_t;

/* Do n puts or gets. Faster than single calls if there are many small pieces. pieces is read during the call only. If
 * one piece is invalid, none moves. Pieces that a get writes must not overlap. Debug builds return RANK_ERR_ARG. */
RANK_API rank_status_t rank_putv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem);
RANK_API rank_status_t rank_getv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem);

/*
 * Move count blocks of block bytes. Block i is at src + i * src_stride here, and at offset + i * stride there. Strides
 * are in bytes and may be negative.
 * RANK_ERR_ARG: blocks overlap where they are written.
 * RANK_ERR_COUNT: the local blocks exceed the address space.
 * RANK_ERR_BOUNDS: the remote blocks exceed the part of peer.
 */
RANK_API rank_status_t rank_put_strided(const void *src, int64_t src_stride, int64_t block,
                                        int64_t count, int peer, rank_mem_t mem, int64_t offset,
                                        int64_t stride);
RANK_API rank_status_t rank_get_strided(void *dst, int64_t dst_stride, int64_t block,
                                        int64_t count, int peer, rank_mem_t mem, int64_t offset,
                                        int64_t stride);

/*
 * Complete all that this rank has started to peer, or to RANK_ALL, on mem. Then puts and atomics are visible there, and
 * gets have their data. With several threads, each waits for the operations that were started before its call.
 * RANK_ERR_PEER_DEAD: the peer failed, and the bytes that arrived are undefined. Each call for that peer returns it.
 *   With RANK_ALL it is returned once for each failure. The flush to the survivors is complete.
 */
RANK_API rank_status_t rank_flush(rank_mem_t mem, int peer);

/* Complete all that this rank has started to peer, or to RANK_ALL, on mem, at this rank only. Then the buffers of
 * nonblocking calls may be reused, and gets have their data. */
RANK_API rank_status_t rank_flush_local(rank_mem_t mem, int peer);

/* Order one-sided calls. Puts, atomics and signals on mem before it are visible at a peer before later ones to that
 * peer. The later ones may be on any memory. The call may wait as rank_flush does. */
RANK_API rank_status_t rank_fence(rank_mem_t mem);

/* --------------------------------------------------------- rank_atomic: atomic operations on the memory of a peer */

typedef enum rank_amo {
    RANK_AMO_ADD = 0,  /* without FETCH: result may be NULL and is not written */
    RANK_AMO_FETCH_ADD, /* FETCH and SWAP: *result is the value before */
    RANK_AMO_SWAP,
    RANK_AMO_AND,
    RANK_AMO_FETCH_AND,
    RANK_AMO_OR,
    RANK_AMO_FETCH_OR,
    RANK_AMO_XOR,
    RANK_AMO_FETCH_XOR,
    RANK_AMO_COUNT
} rank_amo_t;

/*
 * Update one naturally aligned element in the part of peer. Types are INT32, UINT32, INT64, UINT64. ADD, FETCH_ADD and
 * SWAP also work on F32 and F64. It is atomic with all atomics of the library, and with CPU atomics of ranks on the
 * peer's node. An operation without a result may be pending on return. rank_flush completes it.
 * RANK_ERR_DTYPE: the operation does not work on this type.
 * RANK_ERR_ARG: the element is not aligned.
 */
RANK_API rank_status_t rank_atomic(rank_amo_t amo, rank_dtype_t dtype, const void *operand,
                                   int peer, rank_mem_t mem, int64_t offset, void *result);

/* Store *desired if the element has the bits of *expected. *result is the value before. Types are those of
 * RANK_AMO_SWAP. */
RANK_API rank_status_t rank_atomic_cas(rank_dtype_t dtype, const void *expected, const void *desired, int peer,
                                       rank_mem_t mem, int64_t offset, void *result);

/* ---------------------------------------------------------------- rank_signal: put with a signal, and wait for it */

typedef enum rank_signal_op {
    RANK_SIGNAL_SET = 0,
    RANK_SIGNAL_ADD
} rank_signal_op_t;

/*
 * Put, then update a signal, and wake the peer if it sleeps. The signal is a uint64_t at signal_offset, a multiple of 8,
 * in the peer's part of signal_mem. A reader of the new signal value finds the data. On return src may be reused. peer
 * is the same process in mem and signal_mem. bytes may be 0. Other puts have no order with it, unless rank_fence on
 * their memory separates them.
 */
RANK_API rank_status_t rank_put_signal(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset,
                                       rank_mem_t signal_mem, int64_t signal_offset, uint64_t value, rank_signal_op_t op);

typedef enum rank_cmp {
    RANK_CMP_EQ = 0,
    RANK_CMP_NE,
    RANK_CMP_GT,
    RANK_CMP_GE,
    RANK_CMP_LT,
    RANK_CMP_LE
} rank_cmp_t;

/*
 * Wait until a uint64_t of this rank's own part compares with value as cmp requires. Numbers are unsigned. offset is a
 * multiple of 8. Any one-sided call may write the number, and so may a CPU store on this node.
 * RANK_ERR_PEER_DEAD: a rank of the team of mem failed. It is returned once for each failure. A later call waits for the
 *   survivors, if there are any.
 */
RANK_API rank_status_t rank_wait_until(rank_mem_t mem, int64_t offset, rank_cmp_t cmp, uint64_t value);

/* Wait as rank_wait_until does, for a signal of rank_put_signal only, from peer or RANK_ANY_SOURCE. *seen is the value
 * that ended the wait. seen may be NULL.
 * RANK_ERR_PEER_DEAD: the peer failed before it sent the signal. RANK_ANY_SOURCE: as for rank_wait_until. */
RANK_API rank_status_t rank_signal_wait(rank_mem_t mem, int64_t offset, rank_cmp_t cmp,
                                        uint64_t value, int peer, uint64_t *seen);

/* Test once for what rank_signal_wait waits for, with progress. *flag is 1 or 0. *seen is written if *flag is 1. It may be NULL.
 * RANK_ERR_PEER_DEAD: as for rank_signal_wait. */
RANK_API rank_status_t rank_test_signal(rank_mem_t mem, int64_t offset, rank_cmp_t cmp,
                                        uint64_t value, int peer, int *flag, uint64_t *seen);

/* ------------------------------------------------------------------------------- rank_coll: collective operations */

/*
 * Every rank calls the same form: a blocking call does not match a nonblocking one. Buffers of different arguments must
 * not overlap. Debug builds return RANK_ERR_ARG. On equal team size and placement, a reduction gives the same bits in
 * every run.
 *
 * RANK_IN_PLACE takes the input from the output buffer:
 *   - allreduce, reduce_scatter, allgather, allgatherv, alltoall: as sbuf, on every rank.
 *   - reduce, gather: as sbuf, at root only. scatter: as rbuf, at root only.
 *   - In gathers the input is this rank's block of rbuf. In alltoall it is all of rbuf.
 *   - In reduce_scatter all of the input is in rbuf. The result is written to its start.
 */

/* Wait until every rank of team has called it. */
RANK_API rank_status_t rank_barrier(rank_team_t team);

/* Copy count elements from root to every rank. */
RANK_API rank_status_t rank_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root,
                                  rank_team_t team);

/* Combine count elements of every rank, at root, or on every rank. At other ranks rbuf is not used. */
RANK_API rank_status_t rank_reduce(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team);
RANK_API rank_status_t rank_allreduce(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_op_t op, rank_team_t team);

/* Collect count elements of every rank, at root, or on every rank. rbuf holds size * count, in rank order. */
RANK_API rank_status_t rank_gather(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, int root, rank_team_t team);
RANK_API rank_status_t rank_allgather(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_team_t team);

/* Collect different counts on every rank. rcounts and displs have an entry a rank, in elements. They are equal on every
 * rank, and are read during the call only. */
RANK_API rank_status_t rank_allgatherv(const void *sbuf, int64_t scount, void *rbuf,
                                       const int64_t *rcounts, const int64_t *displs,
                                       rank_dtype_t dtype, rank_team_t team);

/* Distribute the blocks of sbuf at root. count is the number of elements that each rank receives. */
RANK_API rank_status_t rank_scatter(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, int root, rank_team_t team);

/* Combine size * count elements of every rank. Rank i receives block i, of count elements. */
RANK_API rank_status_t rank_reduce_scatter(const void *sbuf, void *rbuf, int64_t count,
                                           rank_dtype_t dtype, rank_op_t op, rank_team_t team);

/* Send block i of sbuf to rank i. count is the number of elements for each peer. */
RANK_API rank_status_t rank_alltoall(const void *sbuf, void *rbuf, int64_t count,
                                     rank_dtype_t dtype, rank_team_t team);

/* Start the operation of the same name. A test or wait call completes *req and frees it. */
RANK_API rank_status_t rank_ibarrier(rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ibcast(void *buf, int64_t count, rank_dtype_t dtype, int root,
                                   rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ireduce(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team,
                                    rank_request_t *req);
RANK_API rank_status_t rank_iallreduce(const void *sbuf, void *rbuf, int64_t count,
                                       rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                       rank_request_t *req);
RANK_API rank_status_t rank_igather(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, int root, rank_team_t team,
                                    rank_request_t *req);
RANK_API rank_status_t rank_iallgather(const void *sbuf, void *rbuf, int64_t count,
                                       rank_dtype_t dtype, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_iallgatherv(const void *sbuf, int64_t scount, void *rbuf,
                                        const int64_t *rcounts, const int64_t *displs,
                                        rank_dtype_t dtype, rank_team_t team,
                                        rank_request_t *req);
RANK_API rank_status_t rank_iscatter(const void *sbuf, void *rbuf, int64_t count,
                                     rank_dtype_t dtype, int root, rank_team_t team,
                                     rank_request_t *req);
RANK_API rank_status_t rank_ireduce_scatter(const void *sbuf, void *rbuf, int64_t count,
                                            rank_dtype_t dtype, rank_op_t op, rank_team_t team,
                                            rank_request_t *req);
RANK_API rank_status_t rank_ialltoall(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_team_t team, rank_request_t *req);

/* ------------------------------------------------------------------------------------- rank_team: groups of ranks */

/* Get the channel that carries messages to peer. The first call may establish the connection.
 * Returns "self", "shm" or "ucx" in static storage, or NULL on an error. */
RANK_API const char *rank_channel_name(rank_team_t team, int peer);

#ifdef __cplusplus
}
#endif

#endif
