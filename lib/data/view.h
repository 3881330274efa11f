/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h: describe a sender's or receiver's payload.
 *
 * Room: payload: views of contiguous and noncontiguous data, datatypes, small copies.
 * Callers: lib/core, lib/channel, lib/p2p, lib/rma, collectives.
 * Never: keeps state; sends.
 * Tests: tests/unit/iov_test.c, tests/mp/p2p_iov.c, tests/standin/device_buffers.c.
 */
#ifndef RK_DATA_VIEW_H
#define RK_DATA_VIEW_H

#include "lib/base/compiler.h"
#include "lib/mem/kind.h"

#include <stddef.h>
#include <string.h>

struct iovec;
struct rk_view;

struct rk_view_ops {
    const struct rk_kind *kind; /* of all of the payload; NULL: host memory, or several kinds */
    /* RANK_ERR_DEVICE: what was to be written is undefined. Host memory never fails. */
    rank_status_t (*pack)(const struct rk_view *view, size_t offset, void *to, size_t bytes);
    rank_status_t (*unpack)(const struct rk_view *view, size_t offset, const void *from, size_t bytes);
    /*
     * List the memory for copies by address: at most max pieces that hold the bytes from offset on, at most bytes;
     * returns their number. NULL if the CPU, the kernel or a network cannot access it: pack and unpack it.
     */
    int (*list)(const void *base, size_t offset, size_t bytes, struct iovec *out, int max);
    /*
     * As pack, or unpack if in, but add to *list the copies that are under way (rk_kind_over), also on an error. NULL:
     * pack and unpack alone.
     */
    rank_status_t (*begin)(const struct rk_view *view, bool in, size_t offset, char *host, size_t bytes, struct rk_kind_copy **list);
};

/*
 * ops NULL: contiguous host memory at base. So fast paths reject lists and other kinds of memory by one test.
 * Otherwise base is what ops read: memory of ops->kind, or a list (struct rk_pieces).
 */
struct rk_view {
    void *base;
    size_t bytes;
    const struct rk_view_ops *ops;
};

/* View of contiguous memory that a user passes, of any kind. */
struct rk_view rk_view_of_kind(const void *base, size_t bytes);
RK_INLINE struct rk_view rk_view_of(const void *base, size_t bytes)
{
    return rk_likely(!rk_device_kind) ? (struct rk_view){(void *)(uintptr_t)base, bytes, NULL} : rk_view_of_kind(base, bytes);
}

/* May a copy fail? That is so if some of the payload is no host memory. */
RK_INLINE bool rk_view_may_fail(const struct rk_view *view)
{
    return view->ops && !view->ops->list;
}

/* Copy payload to host memory, */
RK_CHECKED RK_INLINE rank_status_t rk_copy_out(void *to, const struct rk_view *view, size_t offset, size_t bytes)
{
    if (rk_unlikely(view->ops != NULL))
        return view->ops->pack(view, offset, to, bytes);
    if (bytes)
        memcpy(to, (const char *)view->base + offset, bytes);
    return RANK_OK;
}

/* and from it. */
RK_CHECKED RK_INLINE rank_status_t rk_copy_in(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    if (rk_unlikely(view->ops != NULL))
        return view->ops->unpack(view, offset, from, bytes);
    if (bytes)
        memcpy((char *)view->base + offset, from, bytes);
    return RANK_OK;
}

/* Copy bytes from the start of one view to that of another. */
RK_CHECKED rank_status_t rk_view_copy(const struct rk_view *to, const struct rk_view *from, size_t bytes);

#endif
