/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_wire.h: define the wire format of one-sided calls that the owner executes.
 *
 * A request (RK_KIND_RMA_REQ) is a struct rk_rma_request_head, the operands of its op, and data. A reply (RK_KIND_RMA_REP)
 * is a struct rk_rma_reply and data. Validated here: the format; the owner checks id and range. No state and no
 * memory of ranks here: the fuzzer calls it directly.
 */
#ifndef RK_RMA_RMA_WIRE_H
#define RK_RMA_RMA_WIRE_H

#include "lib/core/frame.h"

#include <stdbool.h>

enum rk_rma_op {
    RK_RMA_PUT = 1, /* blocks, then their data; without blocks: data for mem from offset on */
    RK_RMA_GET,     /* blocks; the reply has their data */
    RK_RMA_AMO,     /* struct rk_rma_operands */
    RK_RMA_SIGNAL,  /* struct rk_rma_signal, then data to put before it */
    RK_RMA_FLUSH,   /* nothing: earlier frames have been executed when the reply arrives */
    RK_RMA_KEYS,    /* struct rk_rma_name, many: verify keys; before of the reply: the first that is none */
    RK_RMA_REVOKE,  /* struct rk_rma_operands: the sender ends a registration */
    RK_RMA_OP_END
};

/* ERROR: reply only if it fails, once for all frames of the origin. MEMS: each block names its memory; else it is a piece of mem. */
enum { RK_RMA_WANTS_REPLY = 1, RK_RMA_WANTS_ERROR = 2, RK_RMA_HAS_MEMS = 4 };

struct rk_rma_request_head {
    uint8_t op;    /* enum rk_rma_op */
    uint8_t amo;   /* AMO: rank_amo_t or RK_AMO_CAS; SIGNAL: rank_signal_op_t */
    uint8_t dtype; /* AMO */
    uint8_t flags;
    uint32_t n;          /* blocks */
    struct rk_id mem;    /* the owner's id of the memory */
    struct rk_id origin; /* the operation there; returned in the reply, as are at and in */
    uint64_t offset;     /* PUT without blocks, AMO, SIGNAL (of its data) */
    uint64_t at, in;
};

struct rk_rma_operands {
    uint64_t operand, compare; /* REVOKE: nonce of the key, and 0 */
};

struct rk_rma_signal {
    struct rk_id mem;
    uint64_t offset, value;
};

/* What proves a key. */
struct rk_rma_name {
    struct rk_id mem;
    uint64_t nonce, sum;
};
enum { RK_RMA_NAMES_MAX = 640 /* of a request */ };

struct rk_rma_piece {
    uint64_t offset, bytes;
};

/* A piece of any memory of the owner. */
struct rk_rma_block {
    struct rk_id mem;
    uint64_t offset, bytes;
};

struct rk_rma_reply {
    struct rk_id origin;
    int32_t status;
    uint32_t reserved;
    uint64_t before;
    uint64_t at, in;
};

/* Longest operands between a request and its data. */
enum { RK_RMA_EXTRA_MAX = sizeof(struct rk_rma_signal), RK_RMA_BLOCKS_MAX = 512 };

/* Everything but the data is a copy: the frame may be in memory that the sender can still write. */
struct rk_rma_parsed_request {
    struct rk_rma_request_head head;
    struct rk_rma_operands operands;
    struct rk_rma_signal signal;
    const unsigned char *data;
    size_t bytes;  /* of data; GET: of the reply */
    uint32_t nblocks;
    struct rk_rma_block block[RK_RMA_BLOCKS_MAX]; /* PUT, GET; SIGNAL: where its data goes, if any */
};

/* Update of rank_atomic_cas, which rank_atomic does not have. */
enum { RK_AMO_CAS = RANK_AMO_FETCH_XOR + 1 };
/* Updates that return the value before. */
enum {
    RK_AMO_FETCHING = 1 << RANK_AMO_FETCH_ADD | 1 << RANK_AMO_SWAP | 1 << RANK_AMO_FETCH_AND |
                      1 << RANK_AMO_FETCH_OR | 1 << RANK_AMO_FETCH_XOR | 1 << RK_AMO_CAS
};

/* Is the update defined for the datatype, which is its index here and in frames? */
bool rk_amo_defined(unsigned amo, unsigned dtype);

/* Returns false if malformed. */
bool rk_rma_decode_request(const void *payload, size_t len, struct rk_rma_parsed_request *out);
bool rk_rma_decode_reply(const void *payload, size_t len, struct rk_rma_reply *out,
                         const void **data, size_t *bytes);

#endif
