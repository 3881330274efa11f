/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iov.h: view a list of rank_iov_t as payload.
 *
 * The caller keeps the list until the request is complete. The only state is a position, which follows the offsets
 * passed to pack and unpack.
 */
#ifndef RK_DATA_IOV_H
#define RK_DATA_IOV_H

#include "lib/base/compiler.h"
#include "lib/data/view.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <sys/uio.h>

/*
 * Target of such a view's base. A rank of the node reads it from the sender's memory: see channel/shm/cma_iov.c.
 */
struct rk_pieces {
    const rank_iov_t *iov;
    int64_t n;
    int64_t at;      /* position: entry, */
    uint64_t before; /* and bytes before the entry */
};

extern const struct rk_view_ops rk_pieces_ops;

/*
 * Returns RANK_OK and the total size, or an error. to_write: pieces must not overlap, which debug builds check; an
 * entry that overlaps itself is always detected.
 */
rank_status_t rk_pieces_check_for(const char *call, const rank_iov_t *iov, int64_t n, bool to_write, size_t *bytes);
/* The same without a report. */
RK_INLINE rank_status_t rk_pieces_check(const rank_iov_t *iov, int64_t n, bool to_write, size_t *bytes)
{
    return rk_pieces_check_for(NULL, iov, n, to_write, bytes);
}

/* Do blocks of a valid list overlap? For builds with RK_CHECK_OVERLAP; false for very long lists. */
bool rk_pieces_overlap(const rank_iov_t *iov, int64_t n);

/* View of a checked list, with its state in p; a plain view if it is contiguous. */
struct rk_view rk_pieces_view(struct rk_pieces *p, const rank_iov_t *iov, int64_t n, size_t bytes);

/* Mean bytes of the blocks of a list that the CPU may access; UINT64_MAX: the view is none. Reads the whole list. */
uint64_t rk_pieces_block(const struct rk_view *view);

/* List at most max pieces of memory that hold the view's bytes from offset on, at most bytes. */
int rk_view_list(const struct rk_view *view, size_t offset, size_t bytes, struct iovec *out, int max);

#endif
