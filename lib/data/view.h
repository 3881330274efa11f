/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h: describe a sender's or receiver's payload.
 *
 * Room: payload: views of contiguous and noncontiguous data, datatypes, small copies.
 * Callers: lib/core, lib/channel, lib/p2p, lib/rma, collectives.
 * Never: keeps state; sends.
 * Tests: tests/unit/iov_test.c, tests/mp/p2p_iov.c, tests/mp/memory_kinds.c.
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
    void (*pack)(const struct rk_view *view, size_t offset, void *to, size_t bytes);
    void (*unpack)(const struct rk_view *view, size_t offset, const void *from, size_t bytes);
    /*
     * List the memory for copies by address: at most max pieces that hold the bytes from offset on, at most bytes;
     * returns their number. NULL if the CPU, the kernel or a network cannot access it: pack and unpack it.
     */
    int (*list)(const void *base, size_t offset, size_t bytes, struct iovec *out, int max);
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
    return rk_likely(rk_nkinds == 0) ? (struct rk_view){(void *)(uintptr_t)base, bytes, NULL} : rk_view_of_kind(base, bytes);
}

/* Copy payload to host memory, */
RK_INLINE void rk_copy_out(void *to, const struct rk_view *view, size_t offset, size_t bytes)
{
    if (rk_unlikely(view->ops != NULL))
        view->ops->pack(view, offset, to, bytes);
    else if (bytes)
        memcpy(to, (const char *)view->base + offset, bytes);
}

/* and from it. */
RK_INLINE void rk_copy_in(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    if (rk_unlikely(view->ops != NULL))
        view->ops->unpack(view, offset, from, bytes);
    else if (bytes)
        memcpy((char *)view->base + offset, from, bytes);
}

/* Copy bytes from the start of one view to that of another. */
void rk_view_copy(const struct rk_view *to, const struct rk_view *from, size_t bytes);

#endif
