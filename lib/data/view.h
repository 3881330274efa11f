/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h: describe a sender's or receiver's payload.
 *
 * Room: payload: views of contiguous and noncontiguous data, datatypes, small copies.
 * Callers: lib/core, lib/channel, lib/p2p, lib/rma, collectives.
 * Never: keeps state; sends.
 * Tests: tests/unit/iov_test.c, tests/mp/p2p_iov.c.
 */
#ifndef RK_DATA_VIEW_H
#define RK_DATA_VIEW_H

#include <stddef.h>

struct iovec;

/* ops NULL: contiguous at base. Otherwise base is the state of pack and unpack (iovecs, strides, user types). */
struct rk_view_ops {
    void (*pack)(const void *base, size_t offset, void *to, size_t bytes);
    void (*unpack)(void *base, size_t offset, const void *from, size_t bytes);
    /*
     * List the memory for copies by address: at most max pieces that hold the bytes from offset on, at most bytes;
     * returns their number. NULL if there is no such memory.
     */
    int (*list)(const void *base, size_t offset, size_t bytes, struct iovec *out, int max);
};

struct rk_view {
    void *base;
    size_t bytes;
    const struct rk_view_ops *ops;
};

#endif
