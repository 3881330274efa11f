/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_wire.h: cut the stream of a connection into frames.
 *
 * A frame is a struct rk_hdr and its payload, filled up to a multiple of 8 bytes. The channel's own kinds carry rendezvous: the sender announces a message,
 * the receiver pulls it or drops it, and the sender sends the data in chunks, which frames may separate. Chunks also go
 * to and come from memory that a side has registered. No state: the fuzzer calls it directly.
 */
#ifndef RK_CHANNEL_TCP_TCP_WIRE_H
#define RK_CHANNEL_TCP_TCP_WIRE_H

#include "lib/core/frame.h"

#include <stdbool.h>

enum {
    RK_TCP_FRAME_MAX = 65536,    /* payload of one frame */
    RK_TCP_CHUNK_MAX = 256 << 10 /* payload of one chunk of data */
};

enum {
    RK_TCP_ANNOUNCE = RK_KIND_CHANNEL_FIRST, /* payload: struct rk_tcp_announce; the rest of the header is the message's */
    RK_TCP_PULL, /* payload: struct rk_tcp_pull */
    RK_TCP_DROP, /* tag: the sender's id */
    RK_TCP_DATA, /* tag: the receiver's id; payload: the next bytes of the message */
    RK_TCP_BYE,  /* the last frame */
    RK_TCP_WRITE,   /* a chunk for the receiver's memory tag, at offset team; turn and src: the sender's id */
    RK_TCP_WRITTEN, /* payload: struct rk_tcp_written; answers the last chunk of a WRITE, and those that fail */
    RK_TCP_READ,    /* payload: struct rk_tcp_read; DATA answers it, until one has the flag RK_TCP_END */
    RK_TCP_READY, /* of a lifeline: the sender receives what the other channel carries */
    RK_TCP_KIND_END
};
/*
 * Flags. Of DATA, UNREAD: the sender cannot read the rest of the payload. Of DATA without payload, END: all of a READ has
 * been sent; src: status. Of WRITE, END: the last chunk. Of a rank's BYE, ALONE: it leaves its job without the others, after
 * a death; DISCONNECTED: its job is disconnected from the peer's.
 */
enum { RK_TCP_UNREAD = 1, RK_TCP_END = 2, RK_TCP_ALONE = 4, RK_TCP_DISCONNECTED = 8 };

struct rk_tcp_announce {
    struct rk_id op;
    uint64_t total;
};

struct rk_tcp_read {
    struct rk_id to; /* the sender's id, for the data */
    struct rk_id mem;
    uint64_t offset, bytes;
};

struct rk_tcp_written {
    struct rk_id op; /* the writer's */
    int32_t status;
    uint32_t reserved;
};

struct rk_tcp_pull {
    struct rk_id op, to; /* the sender's id; the receiver's, for the data */
    uint64_t want;       /* bytes: the first of the message */
};

RK_INLINE size_t rk_tcp_length(uint32_t payload)
{
    return sizeof(struct rk_hdr) + (((size_t)payload + 7) & ~(size_t)7);
}

RK_INLINE bool rk_tcp_is_status(int32_t word)
{
    return word <= 0 && word >= -255;
}

/*
 * Decode the header of the first frame of len bytes. Returns its length with header and filling, which may exceed len; 0: the header is not
 * whole; -1: the stream is invalid. hdr is set unless the result is not positive.
 */
long rk_tcp_next(const void *data, size_t len, struct rk_hdr *hdr);

#endif
