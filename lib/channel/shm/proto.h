/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto.h: describe the protocols of large messages between ranks of a node.
 *
 * A protocol is one way to move a payload from its sender into the receive buffer. The receiver selects it when
 * the message is matched (shm_rndv.c). Each has a file proto_NAME.c. The table of rates lists all (proto_table.h).
 */
#ifndef RK_CHANNEL_SHM_PROTO_H
#define RK_CHANNEL_SHM_PROTO_H

#include <stdbool.h>
#include <stdint.h>

/* Index in rk_shm_protos and column of the rates, in the order of RANK_LARGE's values after auto. */
enum rk_proto {
    RK_PROTO_MAPPED,
    RK_PROTO_CMA,
    RK_PROTO_CMA2,
    RK_PROTO_RING,
    RK_PROTO_RING_NT,
    RK_PROTO_MAPPED2,
    RK_PROTOS
};

/* What a protocol needs, and what a message has. */
enum {
    RK_NEEDS_MAPPING = 1, /* the receiver has mapped the payload */
    RK_NEEDS_CMA = 2,     /* the kernel lets the receiver read the payload */
    RK_NEEDS_ASSIST = 4,  /* the sender can be requested to copy a share */
    RK_NEEDS_RING = 8,   /* the sender makes progress while the message moves */
    RK_NEEDS_ACCESS = RK_NEEDS_MAPPING | RK_NEEDS_CMA,
    RK_NEEDS_SENDER = RK_NEEDS_ASSIST | RK_NEEDS_RING /* both sides take part at the same time */
};

/* A matched message on its way into the receive buffer, which is the view of req. */
struct rk_shm_recv {
    struct rk_shm *shm;
    struct rk_shm_ep *ep;
    struct rank_request *req;
    uint64_t sender;     /* packed id of its request */
    uint64_t at;         /* address of the payload at the sender, or of its struct rk_pieces */
    uint64_t want;       /* bytes to move */
    unsigned int has;    /* RK_NEEDS_... that are met */
    bool waited;         /* the sender only waits */
    bool in_pieces;      /* the sender has a list of pieces */
    const char *here;    /* own mapping of the payload, with RK_NEEDS_MAPPING */
    uint64_t to_segment; /* how the sender reaches the buffer: offset to in that segment; */
    uint64_t to;         /* for a registered one, or none (0), the address at the receiver */
};

struct rk_shm_proto {
    const char *name;
    enum rk_proto id;
    unsigned int needs;
    const struct rk_shm_proto *alone; /* the same without a share of the sender */
    /* Move the message, or begin to. Returns false if its memory is inaccessible, and removes that from r->has. */
    bool (*run)(struct rk_shm_recv *r);
};

extern const struct rk_shm_proto rk_shm_proto_mapped, rk_shm_proto_cma, rk_shm_proto_cma2, rk_shm_proto_ring,
    rk_shm_proto_ring_nt, rk_shm_proto_mapped2;

#endif
