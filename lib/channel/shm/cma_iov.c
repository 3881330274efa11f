/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cma_iov.c: copy noncontiguous payloads between processes by CMA.
 *
 * The sender's list is read first. Its entries come from another process and are checked; a wrong entry can at
 * worst make this process read memory that it may read anyway.
 */
#include "lib/channel/shm/cma_iov.h"
#include "lib/node/cma.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdlib.h>

/* Entries of a call; lists longer than LIST_MAX are streamed. */
enum { PIECES = 128, NEAR = 16, LIST_MAX = 1 << 20 };

static size_t sum(const struct iovec *v, int n)
{
    size_t s = 0;

    for (int i = 0; i < n; i++)
        s += v[i].iov_len;
    return s;
}

static int cut(struct iovec *v, int n, size_t bytes)
{
    int i = 0;

    for (; i < n && bytes; i++) {
        if (v[i].iov_len > bytes)
            v[i].iov_len = bytes;
        bytes -= v[i].iov_len;
    }
    return i;
}

/* Copy the common prefix; the longer list is cut. */
static rank_status_t cma_iov_copy(int pid, const struct rk_view *to, const struct rk_view *from,
                          uint64_t want)
{
    struct iovec here[PIECES], there[PIECES];
    uint64_t at = 0;

    while (at < want) {
        size_t n = want - at < (1u << 30) ? want - at : 1u << 30, a, b;
        int nh = rk_view_list(to, at, n, here, PIECES);
        int nt = rk_view_list(from, at, n, there, PIECES);
        ssize_t got;

        a = sum(here, nh);
        b = sum(there, nt);
        if (a > b)
            nh = cut(here, nh, b);
        else if (b > a)
            nt = cut(there, nt, a);
        got = process_vm_readv(pid, here, (unsigned long)nh, there, (unsigned long)nt, 0);
        if (got > 0) {
            at += (uint64_t)got;
        } else if (got == 0 || errno != EINTR) {
            if (got < 0 && errno == ESRCH)
                return RANK_ERR_PEER_DEAD;
            rk_debug("CMA of pieces with process %d: %m", pid);
            return RANK_ERR_CHANNEL;
        }
    }
    return RANK_OK;
}

static rank_status_t copy_from_pieces(int pid, uint64_t at, const struct rk_view *to, uint64_t want)
{
    rank_iov_t near[NEAR], *iov = near;
    struct rk_pieces theirs;
    struct rk_view from;
    size_t bytes;
    rank_status_t st = rk_cma_read(pid, &theirs, at, sizeof(theirs));

    if (st)
        return st;
    if (theirs.n <= 0 || theirs.n > LIST_MAX)
        return RANK_ERR_CHANNEL;
    if (theirs.n > NEAR && !(iov = malloc((size_t)theirs.n * sizeof(*iov))))
        return RANK_ERR_CHANNEL;
    st = rk_cma_read(pid, iov, (uint64_t)(uintptr_t)theirs.iov, (size_t)theirs.n * sizeof(*iov));
    if (!st && (rk_pieces_check(iov, theirs.n, false, &bytes) || bytes < want))
        st = RANK_ERR_CHANNEL;
    if (!st) {
        from = rk_pieces_view(&theirs, iov, theirs.n, bytes);
        st = cma_iov_copy(pid, to, &from, want);
    }
    if (iov != near)
        free(iov);
    return st;
}

rank_status_t rk_shm_gather(struct rk_shm_ep *ep, uint64_t at, bool in_pieces,
                            const struct rk_view *view, uint64_t want)
{
    struct rk_view from = {(void *)(uintptr_t)at, want, NULL};

    if (!ep->cma || (view->ops && !view->ops->list))
        return RANK_ERR_CHANNEL;
    return in_pieces ? copy_from_pieces(ep->pid, at, view, want) : cma_iov_copy(ep->pid, view, &from, want);
}
