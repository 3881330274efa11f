/* SPDX-License-Identifier: BSD-3-Clause */
/* cma.c: copy from and to the memory of another process (process_vm_readv). */
#include "lib/node/cma.h"
#include "lib/base/log.h"
#include "lib/mem/memfd.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

void rk_cma_allow(void)
{
    /* Fails without Yama, which is fine. */
    prctl(PR_SET_PTRACER, (unsigned long)-1, 0, 0, 0);
}

bool rk_cma_works(int pid, uint64_t addr, uint32_t expected)
{
    uint32_t word = ~expected;

    /* A filter of system calls may refuse one of the two. An empty write checks no access. */
    return rk_is_own_process(pid) && rk_cma_read(pid, &word, addr, sizeof(word)) == RANK_OK && word == expected &&
           process_vm_writev(pid, NULL, 0, NULL, 0, 0) == 0;
}

typedef ssize_t (*move_fn)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                           unsigned long, unsigned long);

static rank_status_t move_all(move_fn move, int pid, char *mine, uint64_t theirs, size_t bytes)
{
    while (bytes) {
        /* The kernel moves less than 2 GiB in a call. */
        size_t n = bytes < (1u << 30) ? bytes : 1u << 30;
        struct iovec a = {mine, n}, b = {(void *)(uintptr_t)theirs, n};
        ssize_t got = move(pid, &a, 1, &b, 1, 0);

        if (got <= 0) {
            if (got < 0 && errno == EINTR)
                continue;
            if (got < 0 && errno == ESRCH)
                return RANK_ERR_PEER_DEAD;
            rk_debug("CMA with process %d: %m", pid);
            return RANK_ERR_CHANNEL;
        }
        mine += got;
        theirs += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return RANK_OK;
}

rank_status_t rk_cma_read(int pid, void *to, uint64_t from, size_t bytes)
{
    return move_all(process_vm_readv, pid, to, from, bytes);
}

rank_status_t rk_cma_write(int pid, uint64_t to, const void *from, size_t bytes)
{
    return move_all(process_vm_writev, pid, (char *)(uintptr_t)from, to, bytes);
}

bool rk_cma_move(int pid, bool write, const struct iovec *here, int nhere, const struct iovec *there, int nthere)
{
    size_t bytes = 0;
    ssize_t got;

    for (int i = 0; i < nhere; i++)
        bytes += here[i].iov_len;
    got = (write ? process_vm_writev : process_vm_readv)(pid, here, (unsigned long)nhere, there,
                                                         (unsigned long)nthere, 0);
    return got >= 0 && (size_t)got == bytes;
}
