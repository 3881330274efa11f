/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_stream.h: let a stream of a device start work and wait for its end.
 *
 * A stream executes work in order. Two words serve it, in memory that both it and the CPU access: it writes the number
 * of each start to one, and waits until the other has at least that number. Numbers only increase.
 */
#ifndef RK_MEM_DEVICE_STREAM_H
#define RK_MEM_DEVICE_STREAM_H

#include "lib/rank.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct rk_stream {
    _Atomic uint64_t *reached; /* number of the last start that the stream has reached */
    uint64_t last;             /* before the first start; the first has the next number */
};

/* Of a kind of memory. Calls may block while the device is busy: hold no lock that the end of a start needs. */
struct rk_stream_ops {
    /* handle: the device's, of the program. On error why gets the reason. */
    rank_status_t (*open)(void *handle, struct rk_stream **out, char *why, size_t room);
    /*
     * Append to the stream: write the number, wait for its end. One thread at a time. After an error the number may be
     * reached or not, and raise still follows once.
     */
    rank_status_t (*start)(struct rk_stream *stream, uint64_t number, char *why, size_t room);
    /* The start has ended, and all before it: the stream goes on. Once for each number, in order. Never blocks. */
    void (*raise)(struct rk_stream *stream, uint64_t number);
    /* RANK_ERR_DEVICE: the stream has failed, and will reach nothing more. */
    rank_status_t (*check)(struct rk_stream *stream);
    /* All starts have ended. The stream may still be about to go on. */
    void (*close)(struct rk_stream *stream);
};

#endif
