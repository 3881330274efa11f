/* SPDX-License-Identifier: BSD-3-Clause */
/* types.h: declare status codes, handles, constants, datatypes. Part of rank.h. */
#ifndef RANK_TYPES_H
#define RANK_TYPES_H

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

/* ------------------------------------------------------------------- rank_status: status codes, version and clock */

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
    X(-23, ERR_AGAIN, "there is something to do: make progress first")          \
    X(-24, ERR_COLLECTIVE, "ranks of the team did not make the same call, or it failed on another of them") \
    X(-25, ERR_DEVICE, "a device or its driver failed")                         \
    X(-26, ERR_CLOSED, "the other side has closed the connection")              \
    X(-27, ERR_REFUSED, "the connection was refused")                           \
    X(-28, ERR_SECRET, "the secret is wrong or missing")

typedef enum rank_status {
#define RANK_STATUS_ENUM(code, name, text) RANK_##name = code,
    RANK_STATUS_MAP(RANK_STATUS_ENUM)
#undef RANK_STATUS_ENUM
} rank_status_t;

/* Returns the text of a status, never NULL, in static storage. */
RANK_API const char *rank_status_string(rank_status_t status);

/*
 * Returns why a call failed: one line with the call, the cause and the remedy. status is what the last call of this thread
 * returned. The line is returned once, and stays until the next error of this thread. Without one: rank_status_string.
 * The library prints the same line on standard error, or ends the job (RANK_ERRORS).
 */
RANK_API const char *rank_status_reason(rank_status_t status);

/* Returns seconds of a monotonic clock. Its start is equal on all ranks of a host, and differs between hosts. */
RANK_API double rank_wtime(void);

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

/* Special values of a peer, a tag, a color or an index. They are distinct and far from all ranks. */
enum {
    RANK_ANY_SOURCE = -0x7f000001, /* peer in a receive or probe: any rank of the team */
    RANK_ANY_TAG = -0x7f000002,    /* tag in a receive or probe: any tag */
    RANK_UNDEFINED = -0x7f000003,  /* color: this rank joins no new team */
    RANK_ALL = -0x7f000004,        /* peer in rank_flush: all ranks */
    RANK_PROC_NULL = -0x7f000005   /* peer: no process; the operation is complete at once */
};

/* In a collective: the input is already in the output buffer. */
#define RANK_IN_PLACE ((void *)-1)

/* --------------------------------------------------------------------------- rank_dtype: datatypes and operations */

/* The datatype of elements. 0 is none. In a predefined one, bits 0 to 7 are the bytes of an element. */
typedef uint64_t rank_dtype_t;
#define RANK_BYTE ((rank_dtype_t)0x01000001)
#define RANK_INT8 ((rank_dtype_t)0x01000101)
#define RANK_INT16 ((rank_dtype_t)0x01000202)
#define RANK_INT32 ((rank_dtype_t)0x01000304)
#define RANK_INT64 ((rank_dtype_t)0x01000408)
#define RANK_UINT8 ((rank_dtype_t)0x01000501)
#define RANK_UINT16 ((rank_dtype_t)0x01000602)
#define RANK_UINT32 ((rank_dtype_t)0x01000704)
#define RANK_UINT64 ((rank_dtype_t)0x01000808)
#define RANK_F16 ((rank_dtype_t)0x01000902) /* IEEE binary16 */
#define RANK_BF16 ((rank_dtype_t)0x01000a02) /* bfloat16: the upper half of an F32 */
#define RANK_F32 ((rank_dtype_t)0x01000b04)
#define RANK_F64 ((rank_dtype_t)0x01000c08)
#define RANK_F32_COMPLEX ((rank_dtype_t)0x01000d08) /* complex of two F32 */
#define RANK_F64_COMPLEX ((rank_dtype_t)0x01000e10) /* complex of two F64 */
#define RANK_PAIR_INT32 ((rank_dtype_t)0x01000f08) /* value and index, for MINLOC and MAXLOC */
#define RANK_PAIR_INT64 ((rank_dtype_t)0x01001010)
#define RANK_PAIR_F32 ((rank_dtype_t)0x01001108)
#define RANK_PAIR_F64 ((rank_dtype_t)0x01001210)

typedef struct rank_pair_int32 { int32_t value, index; } rank_pair_int32_t;
typedef struct rank_pair_int64 { int64_t value, index; } rank_pair_int64_t;
typedef struct rank_pair_f32 { float value; int32_t index; } rank_pair_f32_t;
typedef struct rank_pair_f64 { double value; int64_t index; } rank_pair_f64_t;

/* The operation of a reduction. 0 is none.
 *
 * 16-bit floats are reduced as F32. AVG of F16 does not overflow, but small inputs lose low bits. SUM of F16 is
 * infinite beyond 65,504. */
typedef uint64_t rank_op_t;
#define RANK_SUM ((rank_op_t)0x11000000)
#define RANK_PROD ((rank_op_t)0x11000100)
#define RANK_MIN ((rank_op_t)0x11000200) /* a NaN, if one input is a NaN, of any sign and payload */
#define RANK_MAX ((rank_op_t)0x11000300)
#define RANK_AVG ((rank_op_t)0x11000400) /* sum divided by the team size; floating point and complex only */
#define RANK_LAND ((rank_op_t)0x11000500) /* LAND, LOR, LXOR: 0 or 1, also in a team of one */
#define RANK_LOR ((rank_op_t)0x11000600)
#define RANK_LXOR ((rank_op_t)0x11000700)
#define RANK_BAND ((rank_op_t)0x11000800)
#define RANK_BOR ((rank_op_t)0x11000900)
#define RANK_BXOR ((rank_op_t)0x11000a00)
#define RANK_MINLOC ((rank_op_t)0x11000b00) /* pairs only; the lower index wins a tie; a NaN comes first */
#define RANK_MAXLOC ((rank_op_t)0x11000c00)

/* Returns the bytes of one element, or a negative status. */
RANK_API int64_t rank_dtype_size(rank_dtype_t dtype);

/* Returns 1 if the operation is defined for the datatype, else 0. One of rank_op_create is defined for all. */
RANK_API int rank_op_defined(rank_op_t op, rank_dtype_t dtype);

/*
 * Make a datatype of 1 B to 1 MiB without a format, for messages, for collectives that move data, and for operations of
 * rank_op_create. It belongs to the process. The four calls that make and free datatypes and operations are local,
 * and work at any time.
 * RANK_ERR_COUNT: bytes is out of range. RANK_ERR_NO_MEMORY: 65,536 datatypes exist.
 */
RANK_API rank_status_t rank_dtype_create(int64_t bytes, rank_dtype_t *dtype);

/* Free a datatype, and set *dtype to 0. Calls and requests that use it are not affected.
 * RANK_ERR_DTYPE: it is predefined, freed or none. */
RANK_API rank_status_t rank_dtype_free(rank_dtype_t *dtype);

/*
 * Combine count elements: inout[i] = in[i] op inout[i]. in comes from the lower ranks. arg is that of rank_op_create.
 * The function must be associative. A collective calls it for parts of the data, on any thread. It must not call the
 * library.
 */
typedef void(rank_op_fn_t)(const void *in, void *inout, int64_t count, rank_dtype_t dtype, void *arg);

/* Flags of rank_op_create. */
enum { RANK_OP_COMMUTATIVE = 1 /* operands may be combined in any order, not in that of ranks only */ };

/*
 * Make an operation for reductions of any datatype. Every rank of a collective gives an operation of the same
 * function and flags.
 * RANK_ERR_ARG: fn is NULL, or flags has unknown bits.
 */
RANK_API rank_status_t rank_op_create(rank_op_fn_t *fn, void *arg, uint64_t flags, rank_op_t *op);

/* Free an operation, and set *op to 0. Requests that use it still call its function, until they are
 * complete, and persistent ones until they are freed.
 * RANK_ERR_OP: it is predefined, freed or none. */
RANK_API rank_status_t rank_op_free(rank_op_t *op);

/*
 * Combine two buffers of this rank: inout[i] = in[i] op inout[i] for count elements. Local, at any time, any thread.
 * RANK_ERR_OP: op is RANK_AVG, which needs a team.
 */
RANK_API rank_status_t rank_reduce_local(const void *in, void *inout, int64_t count, rank_dtype_t dtype, rank_op_t op);

#ifdef __cplusplus
}
#endif

#endif
