/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_wire.h: one-sided calls that the owner of the memory carries out, as they
 * stand on the wire, and the one place where such bytes become something that
 * may be trusted.
 *
 * A question (RK_KIND_RMA_REQ) is a struct rk_rma_ask, what its op has behind
 * that, and data. An answer (RK_KIND_RMA_REP) is a struct rk_rma_answer and
 * data. No state, no memory of ranks here: the fuzzer drives it as it is.
 * Whether a name is known and a range lies inside is the owner's affair.
 */
#ifndef RK_RMA_RMA_WIRE_H
#define RK_RMA_RMA_WIRE_H

#include "lib/core/frame.h"

#include <stdbool.h>

enum rk_rma_op {
    RK_RMA_PUT = 1, /* data */
    RK_RMA_GET,     /* struct rk_rma_piece: how much is wanted */
    RK_RMA_PUTV,    /* pieces, then their data */
    RK_RMA_GETV,    /* pieces; the answer's data is theirs */
    RK_RMA_AMO,     /* struct rk_rma_operands */
    RK_RMA_SIGNAL,  /* struct rk_rma_signal, then data to be put before it */
    RK_RMA_FLUSH,   /* nothing: all before it has been done when the answer comes */
    RK_RMA_KEY,     /* struct rk_rma_operands: is this a key of yours? */
    RK_RMA_OP_END
};

enum { RK_RMA_WANTS_ANSWER = 1 };

struct rk_rma_ask {
    uint8_t op;    /* enum rk_rma_op */
    uint8_t amo;   /* AMO: rank_amo_t or RK_AMO_CSWAP; SIGNAL: rank_signal_op_t */
    uint8_t dtype; /* AMO */
    uint8_t flags;
    uint32_t n;          /* pieces */
    struct rk_id mem;    /* the owner's name for it */
    struct rk_id asker;  /* goes back with the answer, as do at and in */
    uint64_t offset;     /* PUT, GET, AMO, SIGNAL (of its data); pieces have their own */
    uint64_t at, in;
};

struct rk_rma_operands {
    uint64_t operand, compare; /* KEY: nonce and checksum */
};

struct rk_rma_signal {
    struct rk_id mem;
    uint64_t offset, value;
};

struct rk_rma_piece {
    uint64_t offset, bytes;
};

struct rk_rma_answer {
    struct rk_id asker;
    int32_t status;
    uint32_t reserved;
    uint64_t before;
    uint64_t at, in;
};

/* The longest thing between a question and its data. */
enum { RK_RMA_EXTRA_MAX = sizeof(struct rk_rma_signal), RK_RMA_PIECES_MAX = 512 };

/* All but the data is a copy: the frame may lie in memory that the asker can still write to. */
struct rk_rma_asked {
    struct rk_rma_ask ask;
    struct rk_rma_operands operands;
    struct rk_rma_signal signal;
    const unsigned char *data;
    size_t bytes;  /* of data; GET, GETV: that the answer is to bring */
    struct rk_rma_piece piece[RK_RMA_PIECES_MAX]; /* ask.n of them: PUTV, GETV */
};

/* An update that rank_atomic does not do: rank_compare_swap does. */
enum { RK_AMO_CSWAP = RANK_AMO_COUNT };

/* Is an update defined for a datatype? */
bool rk_amo_defined(unsigned amo, unsigned dtype);

/* False: broken. */
bool rk_rma_decode_ask(const void *payload, size_t len, struct rk_rma_asked *out);
bool rk_rma_decode_answer(const void *payload, size_t len, struct rk_rma_answer *out,
                          const void **data, size_t *bytes);

#endif
