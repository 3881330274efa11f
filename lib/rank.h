/*
 * rank.h: the public interface of librank.
 *
 * Conventions
 *   - Every call returns a rank_status_t unless its comment says otherwise.
 *     RANK_OK is 0 and every error is negative; rank_status_string() gives the
 *     text. Nothing prints and exits on its own but rank_abort().
 *   - Inputs come first, outputs last. An output is written only on success,
 *     but for envelopes, which are also written when a receive is truncated.
 *   - Counts are elements of the datatype given, as int64_t. Ranks are int,
 *     tags are int64_t >= 0.
 *   - A buffer handed to a nonblocking call belongs to the library until the
 *     request is complete: a send buffer may be read but not changed, a
 *     receive buffer may not be touched.
 *   - Thread safety: at the levels SINGLE, FUNNELED and SERIALIZED the caller
 *     sees to it that no two calls run at once. At MULTIPLE any thread may call
 *     at any time, also while others wait in calls of their own; what is left to
 *     the caller is that a request, a message of rank_mprobe, and a buffer are
 *     one thread's at a time, that collective calls on one team have one order,
 *     that nothing is freed that another thread uses, and that rank_init and
 *     rank_finalize run alone. A callback of rank_on_done runs on whichever
 *     thread made the progress. rank_status_string, rank_version,
 *     rank_initialized and rank_abort may be called from any thread at any time.
 *   - Collective calls are made by every rank of the team in the same order.
 *   - A peer that died completes what depends on it with RANK_ERR_PEER_DEAD;
 *     requests with other peers go on.
 *
 * Errors
 *   - What is wrong with the arguments is found before anything is sent, moved or started, and leaves all as it was:
 *     RANK_ERR_HANDLE (a team, memory, a request or a message that is none, or was freed), RANK_ERR_RANK, RANK_ERR_TAG,
 *     RANK_ERR_COUNT (negative, or beyond what addresses can be), RANK_ERR_DTYPE, RANK_ERR_OP, RANK_ERR_ARG (NULL where there
 *     is something to read or write, and all else), RANK_ERR_BOUNDS of one-sided calls, RANK_ERR_STATE (a call that is not for
 *     now). Comments below name those of other meanings only.
 *   - Any call that reaches a peer may give RANK_ERR_PEER_DEAD, RANK_ERR_UNREACHABLE (no channel leads there, or its host does
 *     not answer; the peer may live), RANK_ERR_NO_MEMORY, or RANK_ERR_CHANNEL (the channel failed in itself). A blocking call
 *     returns it; a nonblocking one does, and there is no request then, or returns RANK_OK and the request ends with it, in its
 *     envelope's status and as what its test or wait returns. One-sided calls without a request leave it to the next rank_flush.
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

/* ------------------------------------------------------------------ status */

/* The one list of statuses: code, name, text. */
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

/* The text of a status; never NULL, static storage. */
RANK_API const char *rank_status_string(rank_status_t status);

/* The library's version as "major.minor.patch"; static storage. */
RANK_API const char *rank_version(void);

/* ----------------------------------------------------------------- handles */

typedef struct rank_team *rank_team_t;       /* a group of ranks with its own tags */
typedef struct rank_request *rank_request_t; /* something in flight */
typedef struct rank_message *rank_message_t; /* a message that a probe has taken out of the queues */
typedef struct rank_mem *rank_mem_t;         /* memory that peers may put to and get from */

#define RANK_TEAM_NULL ((rank_team_t)0)
#define RANK_REQUEST_NULL ((rank_request_t)0)
#define RANK_MESSAGE_NULL ((rank_message_t)0)
#define RANK_MEM_NULL ((rank_mem_t)0)

enum {
    RANK_ANY_SOURCE = -1,
    RANK_ANY_TAG = -1,
    RANK_UNDEFINED = -2, /* a color: this rank will be in no team */
    RANK_ALL = -1        /* a peer in rank_flush: every one */
};

/* In a collective: the input already lies in the output buffer. */
#define RANK_IN_PLACE ((void *)-1)

/* -------------------------------------------------- datatypes and operations */

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
    RANK_BF16, /* the upper half of an f32 */
    RANK_F32,
    RANK_F64,
    RANK_C32, /* complex of two f32 */
    RANK_C64, /* complex of two f64 */
    RANK_PAIR_INT32, /* value and index, for minloc and maxloc */
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
    RANK_AVG, /* sum divided by the team's size; floating point and complex only */
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

/* Bytes of one element, or a negative status. */
RANK_API int64_t rank_dtype_size(rank_dtype_t dtype);

/* 1 if the operation is defined for the datatype, else 0. */
RANK_API int rank_op_defined(rank_op_t op, rank_dtype_t dtype);

/* -------------------------------------------------------------------- life */

typedef enum rank_thread_level {
    RANK_THREAD_SINGLE = 0, /* the process has one thread */
    RANK_THREAD_FUNNELED,   /* only the thread that called rank_init calls */
    RANK_THREAD_SERIALIZED, /* any thread calls, one at a time */
    RANK_THREAD_MULTIPLE    /* any thread at any time */
} rank_thread_level_t;

typedef struct rank_init_opts {
    size_t size;         /* sizeof(rank_init_opts_t); fields past it take their defaults */
    int32_t thread_level; /* a rank_thread_level_t; default SERIALIZED */
    int32_t reserved;     /* 0 */
} rank_init_opts_t;

/*
 * Join the world. Collective over the job; opts may be NULL.
 * Under a PMIx server (xrun, srun --mpi=pmix, mpirun, prterun) the world is
 * the job; started alone, a world of one.
 * Errors: RANK_ERR_STATE if the library is or was initialized, RANK_ERR_ARG for opts, RANK_ERR_CONFIG
 * for a bad RANK_* value, RANK_ERR_BOOT, RANK_ERR_NO_MEMORY, RANK_ERR_SYSTEM (no
 * thread for RANK_PROGRESS_THREAD), RANK_ERR_PEER_DEAD.
 */
RANK_API rank_status_t rank_init(const rank_init_opts_t *opts);

/*
 * Leave. Collective; completes what was sent, frees everything. Teams,
 * requests and memory still held become invalid. If a peer has died the
 * survivors do not wait for it. A team of several worlds that is still held is
 * freed first, which waits for its ranks in the other worlds.
 */
RANK_API rank_status_t rank_finalize(void);

/* The rank_thread_level_t that rank_init was asked for (every level is given as asked), or
 * RANK_ERR_STATE outside rank_init and rank_finalize. */
RANK_API int rank_thread_level(void);

/* 1 between a successful rank_init and rank_finalize, else 0. */
RANK_API int rank_initialized(void);

/* End the whole job with this exit code (taken as code & 255; 0 becomes 1). text may be NULL.
 * Does not return. Works before rank_init too, then for this process alone. */
RANK_API void rank_abort(int code, const char *text) __attribute__((noreturn));

/* The team of all ranks; RANK_TEAM_NULL before rank_init. Never freed by the caller. */
RANK_API rank_team_t rank_world(void);

/* ------------------------------------------------------------------- teams */

/* My rank in the team, 0 to size - 1, or a negative status. */
RANK_API int rank_team_rank(rank_team_t team);

/* The number of ranks, or a negative status. */
RANK_API int rank_team_size(rank_team_t team);

/*
 * Split a team by color; in each new team ranks are ordered by key, then by
 * old rank. color >= 0, or RANK_UNDEFINED: *out becomes RANK_TEAM_NULL.
 * Collective over team.
 */
RANK_API rank_status_t rank_team_split(rank_team_t team, int color, int key, rank_team_t *out);

/* Split by shared memory: ranks that can load and store each other's
 * rank_alloc memory come together. Collective over team. */
RANK_API rank_status_t rank_team_split_shared(rank_team_t team, int key, rank_team_t *out);

/* The same ranks, a separate space of tags. Collective over team. */
RANK_API rank_status_t rank_team_dup(rank_team_t team, rank_team_t *out);

/* Free a team and set *team to RANK_TEAM_NULL. Collective over its ranks, does not synchronize.
 * Nothing may be in flight on it. A team of several worlds (see rank_spawn) does synchronize: the call
 * waits until all its ranks free it or finalize, or one has died. With the last team that its worlds have in
 * common they part: neither hears of the other's deaths any more, and the launcher does not end one because the
 * other fails (xrun still ends with the first failing rank's exit code). The last is one that holds all whom
 * rank_spawn has brought together, the team that it gave or a dup, when none of its ranks has another team of
 * ranks of these worlds; where it is not so, they stay together until they end. The launcher's answer is
 * waited for a second at most. */
RANK_API rank_status_t rank_team_free(rank_team_t *team);

/* ---------------------------------------------------------- further processes */

typedef struct rank_spawn_params {
    size_t size;             /* sizeof(rank_spawn_params_t) */
    const char *program;     /* a path, or a name that the launcher looks for in PATH */
    const char *const *args; /* behind the program's name; ends with NULL; NULL: none */
    const char *const *env;  /* NAME=value, beside what the launcher gives; ends with NULL; NULL: none */
    const char *dir;         /* its working directory; NULL: root's own */
    int32_t n;               /* how many processes */
    int32_t reserved;        /* 0 */
} rank_spawn_params_t;

/*
 * Start n ranks of a program, a world of their own, and make one team of both: the ranks of team in
 * their order, then the new ones in theirs. Messages, collectives, one-sided calls and splits work
 * on it as on every team. Collective over team; params count at the root, and are read during the
 * call only. Returns when the new ranks are in rank_init, which waits for the parents; each gets the
 * same team from rank_parent.
 * The team is the caller's to free, on both sides. A rank that dies, on either side, is to the other a dead
 * peer, where the launcher lets the rest go on (xrun: --on-failure continue; else it ends all
 * connected jobs).
 * From then on the caller's progress looks after UCX, too. Needs UCX, and a launcher that can start
 * programs at run time, as xrun and Open MPI's can.
 * Errors. At once, on the caller alone: RANK_ERR_HANDLE for team, and RANK_ERR_RANK for a root that is none
 * of its ranks. All others are the same on every rank that lives, with *both as it was:
 * RANK_ERR_ARG         params at root: NULL, its size, no program, reserved not 0; or both is NULL somewhere
 * RANK_ERR_COUNT       n is less than 1, or more than 16777216
 * RANK_ERR_NOT_SUPPORTED  no launcher started this program, or it cannot start others
 * RANK_ERR_SPAWN       the launcher could not (no such program, no room); the cause has been logged
 * RANK_ERR_PEER_DEAD   one of the new ranks ended before it had joined, also by never calling rank_init; or a
 *                      rank of team died
 * RANK_ERR_BOOT        what they or the launcher said makes no sense: another version of the library, say
 * RANK_ERR_CONFIG      some rank's RANK_CHANNELS leaves ucx out
 * RANK_ERR_CHANNEL, RANK_ERR_UNREACHABLE  UCX could not be opened, or does not reach the others
 * RANK_ERR_NO_MEMORY   on some rank
 * Once the launcher has started the new ranks, an error here is one of rank_init there: it fails with the same
 * status or RANK_ERR_PEER_DEAD. The launcher's own answer has no bound but the launcher's end.
 */
RANK_API rank_status_t rank_spawn(const rank_spawn_params_t *params, int root, rank_team_t team,
                                  rank_team_t *both);

/*
 * In a world that rank_spawn has started: the team of parents and children, and how many of its
 * first ranks are parents, that is, the size of the team that called rank_spawn (nparents may be NULL). The
 * ranks behind those are this world's, in their order. Not local: rank_init has done it all, and every call
 * gives the same team. The parents need not have returned from rank_spawn by then; if their call still fails, it
 * is because a rank of the team has died, and the team says so.
 * *both is RANK_TEAM_NULL and *nparents 0 in a world that nobody has spawned (a program that a spawned one has
 * started by other means is not of its world), and from rank_team_free of it on. RANK_ERR_STATE before
 * rank_init and after rank_finalize, RANK_ERR_ARG if both is NULL.
 */
RANK_API rank_status_t rank_parent(rank_team_t *both, int *nparents);

/* ---------------------------------------------------------- point to point */

/* What a receive or a probe learned. The library fills size. */
typedef struct rank_envelope {
    uint32_t size;        /* bytes of this struct that the library filled */
    int32_t source;       /* rank in the team */
    int64_t tag;
    int64_t count;        /* whole elements received (a probe: bytes waiting) */
    int64_t bytes;        /* bytes received (a probe: bytes waiting) */
    int64_t sent_bytes;   /* bytes the sender sent; more than bytes if truncated */
    rank_status_t status; /* how this one operation ended */
    int32_t reserved[5];
} rank_envelope_t;

/*
 * Blocking send: returns when buf may be reused, which says nothing about the
 * receiver. Messages of one sender to one receiver on one team with tags that
 * a receive could both match are received in the order they were sent.
 *
 * A message that is longer than RANK_EAGER_MAX waits for its receive. Where all
 * send before they receive it is taken out of their way by the receiver, as long
 * as RANK_AHEAD_MAX bytes hold such messages; past that they wait for ever.
 */
RANK_API rank_status_t rank_send(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                 int64_t tag, rank_team_t team);

/* As rank_send, and returns only after the receiver has matched the message. */
RANK_API rank_status_t rank_ssend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team);

/*
 * Blocking receive from peer (or RANK_ANY_SOURCE) with tag (or RANK_ANY_TAG).
 * envelope may be NULL. RANK_ERR_TRUNCATED: the first count elements were
 * received, the rest is lost, the envelope holds both sizes.
 * RANK_ERR_PEER_DEAD: peer is dead and has sent no such message. For
 * RANK_ANY_SOURCE: a rank of the team has died; all receives and probes from
 * any source that wait then are told, or else the next one, and later ones wait
 * for the others; when nobody else of the team lives all of them are told at
 * once, unless a message is here.
 */
RANK_API rank_status_t rank_recv(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                 int64_t tag, rank_team_t team, rank_envelope_t *envelope);

/* Nonblocking forms. *req is to be given to a test or wait call, which frees it. Two receives that wait must not share a byte:
 * debug builds look, and refuse the second with RANK_ERR_ARG. */
RANK_API rank_status_t rank_isend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_issend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                   int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_irecv(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team, rank_request_t *req);

/* A send and a receive at once; cannot deadlock against the same call elsewhere. The receive's status, or if that is well the send's. */
RANK_API rank_status_t rank_sendrecv(const void *sbuf, int64_t scount, rank_dtype_t sdtype,
                                     int dest, int64_t stag, void *rbuf, int64_t rcount,
                                     rank_dtype_t rdtype, int source, int64_t rtag,
                                     rank_team_t team, rank_envelope_t *envelope);

/* Wait until a matching message is there, without receiving it. RANK_ERR_PEER_DEAD as for rank_recv. */
RANK_API rank_status_t rank_probe(int peer, int64_t tag, rank_team_t team,
                                  rank_envelope_t *envelope);
RANK_API rank_status_t rank_iprobe(int peer, int64_t tag, rank_team_t team, int *found,
                                   rank_envelope_t *envelope);

/*
 * Matched probe: as rank_probe, and the message is taken out of the queues, so
 * that no other receive or probe gets it. *message is to be given to rank_mrecv
 * or rank_imrecv, once; a message that never is, is freed by rank_finalize, and
 * its sender may wait until then.
 */
RANK_API rank_status_t rank_mprobe(int peer, int64_t tag, rank_team_t team,
                                   rank_message_t *message, rank_envelope_t *envelope);
/* *found is 0 and *message untouched if there is none. */
RANK_API rank_status_t rank_improbe(int peer, int64_t tag, rank_team_t team, int *found,
                                    rank_message_t *message, rank_envelope_t *envelope);

/*
 * Receive that message and set *message to RANK_MESSAGE_NULL. RANK_ERR_PEER_DEAD
 * if it was announced only and its sender has died meanwhile. Such a receive
 * has matched: rank_cancel does nothing to it.
 */
RANK_API rank_status_t rank_mrecv(void *buf, int64_t count, rank_dtype_t dtype,
                                  rank_message_t *message, rank_envelope_t *envelope);
RANK_API rank_status_t rank_imrecv(void *buf, int64_t count, rank_dtype_t dtype,
                                   rank_message_t *message, rank_request_t *req);

/*
 * A piece of data that is not in one piece: count blocks of bytes bytes, the
 * first at base and each stride bytes behind the one before it (stride may be
 * negative). count 0 counts as 1, so that {.base = p, .bytes = n} is n bytes
 * at p; {.base = &a[0][j], .bytes = 8, .count = rows, .stride = 8 * cols} is
 * column j of a matrix of doubles.
 */
typedef struct rank_iov {
    void *base;
    int64_t bytes;
    int64_t count;
    int64_t stride;
} rank_iov_t;

/*
 * Send and receive n such pieces, one behind the other, as one message of
 * their bytes. It matches a receive or a send of any shape, rank_recv and
 * rank_send among them; a longer one is cut as by rank_recv. Pieces may be
 * empty, n may be 0. The list belongs to the library until the request is
 * complete, as the data does. An envelope counts bytes.
 * RANK_ERR_COUNT: a negative number, or a piece or the sum goes beyond what
 * addresses can be. RANK_ERR_ARG: no base, or pieces of a receive overlap (one
 * with itself by its stride; one with another is found in debug builds only,
 * and is an error in any).
 */
RANK_API rank_status_t rank_sendv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                  rank_team_t team);
RANK_API rank_status_t rank_recvv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                  rank_team_t team, rank_envelope_t *envelope);
RANK_API rank_status_t rank_isendv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                   rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_irecvv(const rank_iov_t *iov, int n, int peer, int64_t tag,
                                   rank_team_t team, rank_request_t *req);

/* ---------------------------------------------------------------- requests */

/*
 * Each returns the status of the operation, frees the request when it is
 * complete and sets it to RANK_REQUEST_NULL; a persistent one it leaves, ready
 * to be started again. A null request is complete, and so is a persistent one
 * that is not under way. From within a callback (rank_on_done) a wait for what
 * is not complete is RANK_ERR_STATE.
 */
RANK_API rank_status_t rank_test(rank_request_t *req, int *done, rank_envelope_t *envelope);
RANK_API rank_status_t rank_wait(rank_request_t *req, rank_envelope_t *envelope);

/* Waits for all; returns the first error in array order. envelopes may be NULL. */
RANK_API rank_status_t rank_waitall(int n, rank_request_t *reqs, rank_envelope_t *envelopes);

/* Waits for one; *index is RANK_UNDEFINED if all are null. */
RANK_API rank_status_t rank_waitany(int n, rank_request_t *reqs, int *index,
                                    rank_envelope_t *envelope);

/* Are all complete? If so, *done is 1 and all end as by rank_waitall; if not, none does. */
RANK_API rank_status_t rank_testall(int n, rank_request_t *reqs, int *done,
                                    rank_envelope_t *envelopes);

/* Is one complete? If so, *done is 1 and it ends as by rank_waitany; so too if all are null. If none
 * is, *index is RANK_UNDEFINED. */
RANK_API rank_status_t rank_testany(int n, rank_request_t *reqs, int *index, int *done,
                                    rank_envelope_t *envelope);

/*
 * Waits for one and ends all that are complete then: *ndone of them, their
 * places in indices (room for n), what they learned in the first *ndone of
 * envelopes (may be NULL), each with its status. Returns the first error in
 * array order. *ndone is RANK_UNDEFINED if all are null. Nothing is allocated.
 */
RANK_API rank_status_t rank_waitsome(int n, rank_request_t *reqs, int *ndone, int *indices,
                                     rank_envelope_t *envelopes);
/* The same without waiting: *ndone may be 0. */
RANK_API rank_status_t rank_testsome(int n, rank_request_t *reqs, int *ndone, int *indices,
                                     rank_envelope_t *envelopes);

/*
 * Take back what has not begun: a receive that has not matched, a send that
 * waits in this process for room. It then completes with RANK_ERR_CANCELED, in
 * its status and in its envelope's; test or wait have still to be called. What
 * is complete or further on is left alone and ends as it would have; one-sided
 * calls are under way as soon as they have returned. Local: it
 * never waits, and makes no progress. RANK_ERR_NOT_SUPPORTED for collectives.
 */
RANK_API rank_status_t rank_cancel(rank_request_t *req);

/*
 * Call fn when the request is complete: exactly once. If it is complete already
 * fn runs before this call returns, unless 256 others are to be called first,
 * or this is a callback itself: then in one of the next calls that make
 * progress. *req becomes
 * RANK_REQUEST_NULL: the library frees the request before it calls. A
 * persistent one stays the caller's and is ready to be started again when fn
 * is called; until then test and wait of it are RANK_ERR_STATE.
 * fn is called from within this or any other call that makes progress, on the
 * thread that made it. It may start operations and give them callbacks, test,
 * and make progress; it must not wait or finalize. Callbacks run one after the
 * other, never inside each other, in the order in which requests completed.
 * What is not complete when rank_finalize returns is not told.
 */
typedef void (*rank_done_fn)(const rank_envelope_t *envelope, void *arg);
RANK_API rank_status_t rank_on_done(rank_request_t *req, rank_done_fn fn, void *arg);

/*
 * Persistent operations: described once, started often. They are not under way
 * until rank_start, and again when test or wait have found them complete. The
 * arguments are those of the nonblocking forms, which a started one behaves as.
 */
RANK_API rank_status_t rank_send_init(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                      int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ssend_init(const void *buf, int64_t count, rank_dtype_t dtype,
                                       int peer, int64_t tag, rank_team_t team,
                                       rank_request_t *req);
RANK_API rank_status_t rank_recv_init(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                      int64_t tag, rank_team_t team, rank_request_t *req);

/* RANK_ERR_STATE if it is under way already, RANK_ERR_HANDLE if it is not persistent or its team has been freed. startall
 * starts in array order, and none if it finds that of one of them, or one twice; where debug builds refuse a receive for an
 * overlap, those before it are under way. */
RANK_API rank_status_t rank_start(rank_request_t *req);
RANK_API rank_status_t rank_startall(int n, rank_request_t *reqs);

/*
 * Let go of a request and set *req to RANK_REQUEST_NULL. One that is under way
 * goes on and is freed when it is complete; its buffer belongs to the library
 * until then, and nothing tells when that is. RANK_ERR_NOT_SUPPORTED for a
 * collective that is under way.
 */
RANK_API rank_status_t rank_request_free(rank_request_t *req);

/* Move things on without waiting. */
RANK_API rank_status_t rank_progress(void);

/*
 * A descriptor for the caller's own event loop (poll, epoll, libevent): the
 * library's, always the same one, closed by rank_finalize; not to be read.
 * rank_progress_arm before each wait on it: RANK_OK says that nothing is left
 * to do and that the descriptor will become readable when there is;
 * RANK_ERR_AGAIN that there was something: look at your requests and arm
 * again. While a send waits for room, for which nobody rings, it becomes
 * readable every millisecond. When it has become readable, call rank_progress; it may be for nothing.
 * Arm again after any other call. Among threads one watches, the last that has armed: others' calls
 * do not end that, and what they do in its place makes it readable.
 * RANK_ERR_STATE: arm before rank_progress_fd. RANK_ERR_SYSTEM: no descriptor is left.
 */
RANK_API rank_status_t rank_progress_fd(int *fd);
RANK_API rank_status_t rank_progress_arm(void);

/* ------------------------------------------------------ memory and one-sided */

/*
 * What is visible when, to whom, and what a death does: doc/rma.md.
 */

typedef enum rank_mem_kind {
    RANK_MEM_HOST = 0,
    RANK_MEM_CUDA /* later */
} rank_mem_kind_t;

/*
 * Allocate bytes on every rank of the team, the same number on each, zeroed.
 * 4096 bytes and more begin on a page, fewer on a multiple of 128. Collective.
 * *ptr is this rank's part, *mem names all parts. flags: 0. Fails on every rank
 * or on none; RANK_ERR_ARG: the ranks ask for different sizes. There is no end
 * to it but the machine's memory. Free it before its team.
 */
RANK_API rank_status_t rank_alloc(rank_team_t team, rank_mem_kind_t kind, int64_t bytes,
                                  uint64_t flags, void **ptr, rank_mem_t *mem);

/* Free it and set *mem to RANK_MEM_NULL. Collective; waits for all ranks. */
RANK_API rank_status_t rank_free(rank_mem_t *mem);

/* The address of peer's part in this process, or *ptr = NULL where it cannot be mapped. */
RANK_API rank_status_t rank_ptr(rank_mem_t mem, int peer, void **ptr);

/*
 * Register memory of this rank, from wherever it is, so that peers can be given a key
 * to it. Not collective. The handle is this rank's own: its one peer is the caller's rank in the
 * world. The memory must stay until rank_dereg, which the caller makes after the peers' last
 * rank_flush. Peers of the node that open a key map what is shared memory (memfd_create,
 * shm_open, MAP_SHARED); then rank_ptr has its address, and all goes as with rank_alloc. Memory of which some cannot be written
 * (or read) when it is registered can be read (or nothing) by peers: RANK_ERR_ARG.
 */
RANK_API rank_status_t rank_reg(void *ptr, int64_t bytes, rank_mem_t *mem);
RANK_API rank_status_t rank_dereg(rank_mem_t *mem);

enum { RANK_RKEY_MAX = 1024 }; /* no key is longer */

/* Write the key of registered memory, to be sent to peers in any way. *len: in, the room in key;
 * out, the key's length. RANK_ERR_TRUNCATED: there is too little room. */
RANK_API rank_status_t rank_rkey_pack(rank_mem_t mem, void *key, size_t *len);

/*
 * Open a key that peer has packed: *mem then serves one-sided calls with that peer (a rank of the
 * team), offsets from the beginning of the registered memory. What is no key of that peer, or of
 * memory that is no longer registered, is refused with RANK_ERR_HANDLE. Where the peer's memory cannot
 * be looked into from here the peer is asked: it has to be in a call of the library.
 */
RANK_API rank_status_t rank_rkey_open(rank_team_t team, int peer, const void *key, size_t len,
                                      rank_mem_t *mem);
/* Waits as rank_flush does, and forgets it; sets *mem to RANK_MEM_NULL. */
RANK_API rank_status_t rank_rkey_close(rank_mem_t *mem);

/*
 * Copy bytes to offset in peer's part. On return src may be reused; the data
 * is visible at the peer after rank_flush. Puts to one peer are not ordered
 * before that, unless rank_fence stands between them.
 */
RANK_API rank_status_t rank_put(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                int64_t offset);

/* Copy from peer's part; on return dst holds the data. */
RANK_API rank_status_t rank_get(void *dst, int64_t bytes, int peer, rank_mem_t mem,
                                int64_t offset);

/* Nonblocking forms: src may be reused, dst holds the data, when the request is complete. There is one after each call
 * that returns RANK_OK, also where all is done at once (mapped memory, 0 bytes). They are tested, waited for and given callbacks
 * like others, also after rank_flush has completed them. */
RANK_API rank_status_t rank_iput(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                 int64_t offset, rank_request_t *req);
RANK_API rank_status_t rank_iget(void *dst, int64_t bytes, int peer, rank_mem_t mem,
                                 int64_t offset, rank_request_t *req);

/* A piece of a vector. A put reads local, a get writes it. */
typedef struct rank_piece {
    void *local;
    int64_t bytes;
    int64_t offset; /* in peer's part */
} rank_piece_t;

/* As n calls of rank_put or rank_get, but faster for many small pieces. If one piece is
 * refused none is moved. pieces is read during the call only. Where a get writes they must not overlap: debug builds look,
 * and refuse it with RANK_ERR_ARG. */
RANK_API rank_status_t rank_putv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem);
RANK_API rank_status_t rank_getv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem);

/* count blocks of block bytes each, block i at src + i * src_stride here and at
 * offset + i * stride there. Strides are in bytes and may be negative; blocks must not overlap where they
 * are written (RANK_ERR_ARG). RANK_ERR_COUNT: src's go beyond what addresses can be; RANK_ERR_BOUNDS: the others. */
RANK_API rank_status_t rank_put_strided(const void *src, int64_t src_stride, int64_t block,
                                        int64_t count, int peer, rank_mem_t mem, int64_t offset,
                                        int64_t stride);
RANK_API rank_status_t rank_get_strided(void *dst, int64_t dst_stride, int64_t block,
                                        int64_t count, int peer, rank_mem_t mem, int64_t offset,
                                        int64_t stride);

/* All that this rank has started towards peer (or RANK_ALL) on mem is complete: puts and atomics are
 * visible there, gets have their data. Of several threads each waits for what was started before its own call.
 * RANK_ERR_PEER_DEAD: peer has died, and which of the bytes have arrived is not known; each time for a peer, once for
 * each death for RANK_ALL, and then what goes to the living is complete all the same. */
RANK_API rank_status_t rank_flush(rank_mem_t mem, int peer);

/* As far as this rank goes: buffers of its nonblocking calls with peer (or RANK_ALL) on mem may be
 * reused, and gets have their data. */
RANK_API rank_status_t rank_flush_local(rank_mem_t mem, int peer);

/* Puts, atomics and signals on mem before it are visible at a peer before those to that peer after it, on whatever memory. It may
 * wait for the peer as rank_flush does. */
RANK_API rank_status_t rank_fence(rank_mem_t mem);

typedef enum rank_amo {
    RANK_AMO_ADD = 0,  /* result may be NULL and is not written */
    RANK_AMO_FETCH_ADD, /* FETCH and SWAP: the value before goes to *result */
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
 * An atomic update of one naturally aligned element in peer's part, of type INT32, UINT32, INT64,
 * UINT64, or for ADD, FETCH_ADD and SWAP also F32 and F64. Atomic with every other atomic of the
 * library on it, and with plain CPU atomics of ranks on the peer's node. One that
 * gives no result may still be under way when it returns; rank_flush completes it.
 */
RANK_API rank_status_t rank_atomic(rank_amo_t amo, rank_dtype_t dtype, const void *operand,
                                   int peer, rank_mem_t mem, int64_t offset, void *result);

/* If the element has the bits of *expected it becomes *desired. *result: the value before, which
 * tells. Types as for RANK_AMO_SWAP. */
RANK_API rank_status_t rank_compare_swap(rank_dtype_t dtype, const void *expected,
                                         const void *desired, int peer, rank_mem_t mem,
                                         int64_t offset, void *result);

typedef enum rank_signal_op {
    RANK_SIGNAL_SET = 0,
    RANK_SIGNAL_ADD
} rank_signal_op_t;

/*
 * Put, then update a signal, a uint64_t at signal_offset (a multiple of 8) of peer's part of signal_mem,
 * and wake the peer if it sleeps. Whoever sees the signal's new value sees the data. peer is the same
 * process in both; bytes may be 0. On return src may be reused. Not ordered with other puts but by rank_fence
 * on the memory of those.
 */
RANK_API rank_status_t rank_put_signal(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                       int64_t offset, rank_mem_t signal_mem,
                                       int64_t signal_offset, uint64_t value,
                                       rank_signal_op_t op);

typedef enum rank_cmp {
    RANK_CMP_EQ = 0,
    RANK_CMP_NE,
    RANK_CMP_GT,
    RANK_CMP_GE,
    RANK_CMP_LT,
    RANK_CMP_LE
} rank_cmp_t;

/*
 * Wait until the uint64_t at offset (a multiple of 8) of this rank's own part compares so with value, as
 * unsigned numbers. Any one-sided call, or a CPU store of a rank of this node, may write it; the wait
 * looks at least once a millisecond. RANK_ERR_PEER_DEAD: a rank of mem's team has died; it is told
 * once for each such death, and a later call waits for the others, while there are any.
 */
RANK_API rank_status_t rank_wait_until(rank_mem_t mem, int64_t offset, rank_cmp_t cmp,
                                       uint64_t value);

/*
 * The same for a signal that peer (or RANK_ANY_SOURCE) gives by rank_put_signal, and no other way: the wait may
 * sleep until it is woken. *seen (seen may be NULL) is the value that ended it. RANK_ERR_PEER_DEAD: that peer is
 * dead and has not given it; for RANK_ANY_SOURCE as in rank_wait_until.
 */
RANK_API rank_status_t rank_signal_wait(rank_mem_t mem, int64_t offset, rank_cmp_t cmp,
                                        uint64_t value, int peer, uint64_t *seen);

/* -------------------------------------------------------------- collectives */

/*
 * Buffers of different arguments must not overlap (debug builds look: RANK_ERR_ARG). At one team size and
 * placement a reduction gives the same bits in every run.
 * All ranks call the same form: a blocking call does not match a nonblocking
 * one.
 * In place: allreduce, reduce_scatter, allgather(v), alltoall take RANK_IN_PLACE
 * as sbuf on every rank; reduce and gather at the root; scatter takes it as
 * rbuf at the root. For gather-like calls the input lies in this rank's block
 * of rbuf; for reduce_scatter all of it lies in rbuf and the result is
 * written to its beginning.
 */
RANK_API rank_status_t rank_barrier(rank_team_t team);
RANK_API rank_status_t rank_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root,
                                  rank_team_t team);
RANK_API rank_status_t rank_reduce(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, rank_op_t op, int root, rank_team_t team);
RANK_API rank_status_t rank_allreduce(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_op_t op, rank_team_t team);
/* count: elements that each rank contributes; rbuf at the root holds size * count. */
RANK_API rank_status_t rank_gather(const void *sbuf, void *rbuf, int64_t count,
                                   rank_dtype_t dtype, int root, rank_team_t team);
RANK_API rank_status_t rank_allgather(const void *sbuf, void *rbuf, int64_t count,
                                      rank_dtype_t dtype, rank_team_t team);
/* rcounts and displs (elements, size entries each) are the same on every rank and are
 * read during the call only. */
RANK_API rank_status_t rank_allgatherv(const void *sbuf, int64_t scount, void *rbuf,
                                       const int64_t *rcounts, const int64_t *displs,
                                       rank_dtype_t dtype, rank_team_t team);
/* count: elements that each rank receives. */
RANK_API rank_status_t rank_scatter(const void *sbuf, void *rbuf, int64_t count,
                                    rank_dtype_t dtype, int root, rank_team_t team);
/* count: elements that each rank receives; sbuf holds size * count. */
RANK_API rank_status_t rank_reduce_scatter(const void *sbuf, void *rbuf, int64_t count,
                                           rank_dtype_t dtype, rank_op_t op, rank_team_t team);
/* count: elements for each peer. */
RANK_API rank_status_t rank_alltoall(const void *sbuf, void *rbuf, int64_t count,
                                     rank_dtype_t dtype, rank_team_t team);

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

/* ----------------------------------------------------------------- looking in */

/*
 * Which channel carries messages to peer: "self", "shm" or "ucx" (makes first
 * contact if need be). Static storage; NULL on an error.
 */
RANK_API const char *rank_channel_name(rank_team_t team, int peer);

#ifdef __cplusplus
}
#endif

#endif
