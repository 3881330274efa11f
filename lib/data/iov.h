/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iov.h: payload that is not in one piece: the view (frame.h) of a list of rank_iov_t.
 *
 * The list is the caller's and stays while the request is under way, so no
 * state has to be kept but a place in it, which moves along with the offsets
 * that pack and unpack are called with.
 */
#ifndef RK_DATA_IOV_H
#define RK_DATA_IOV_H

#include "lib/base/compiler.h"
#include "lib/data/view.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <sys/uio.h>

/* What such a view's base points to. A rank of the node reads it from the sender's memory: see
 * shm/gather.c. */
struct rk_pieces {
    const rank_iov_t *iov;
    int32_t n;
    int32_t at;      /* the place: in this entry, */
    uint64_t before; /* with so many bytes before the entry */
};

extern const struct rk_view_ops rk_pieces_ops;

/* RANK_OK and the sum of the bytes, or what is wrong. to_write: pieces must not overlap, which is
 * looked at in debug builds; one that overlaps itself is always found. */
rank_status_t rk_pieces_check_for(const char *call, const rank_iov_t *iov, int n, bool to_write, size_t *bytes);
/* The same without a report. */
RK_INLINE rank_status_t rk_pieces_check(const rank_iov_t *iov, int n, bool to_write, size_t *bytes)
{
    return rk_pieces_check_for(NULL, iov, n, to_write, bytes);
}

/* Do two blocks of a list whose entries are sound share a byte? For builds that look for it (RK_CHECK_OVERLAP); of very many it
 * says no. */
bool rk_pieces_overlap(const rank_iov_t *iov, int n);

/* The view of a checked list, with its state in p; a plain one if it is in one piece. */
struct rk_view rk_pieces_view(struct rk_pieces *p, const rank_iov_t *iov, int n, size_t bytes);

/* Copy bytes from the beginning of one view to that of another. */
void rk_view_copy(const struct rk_view *to, const struct rk_view *from, size_t bytes);

/* At most max pieces of memory of a view, which hold the bytes from offset on, at most bytes. */
int rk_view_list(const struct rk_view *view, size_t offset, size_t bytes, struct iovec *out, int max);

#endif
