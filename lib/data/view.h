/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h: payload as a sender or receiver gives it.
 */
#ifndef RK_DATA_VIEW_H
#define RK_DATA_VIEW_H

#include <stddef.h>

struct iovec;

/*
 * ops NULL: contiguous at base.
 * Otherwise base is the state that pack and unpack work on (iovecs, strides
 * and user types come as such views).
 */
struct rk_view_ops {
    void (*pack)(const void *base, size_t offset, void *to, size_t bytes);
    void (*unpack)(void *base, size_t offset, const void *from, size_t bytes);
    /* The memory itself, for those who can copy it by address: at most max pieces that hold the bytes
     * from offset on, at most bytes; returns how many. NULL where there is no such memory. */
    int (*list)(const void *base, size_t offset, size_t bytes, struct iovec *out, int max);
};

struct rk_view {
    void *base;
    size_t bytes;
    const struct rk_view_ops *ops;
};

#endif
