/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memfd.h: anonymous shared memory that has no name in any file system.
 *
 * The maker's card says how to open it through /proc/PID/fd and holds a nonce
 * that stands at the beginning of the memory, so that a process of another
 * pid namespace, or a reused pid, is never taken for the maker.
 */
#ifndef RK_MEM_MEMFD_H
#define RK_MEM_MEMFD_H

#include "lib/rank.h"

#include <stddef.h>
#include <stdint.h>

struct rk_memfd_card {
    uint64_t nonce;
    uint64_t bytes;
    int32_t pid, fd;
};

/* A sparse mapping of bytes, whose first page is backed and begins with card->nonce.
 * what: for messages. */
rank_status_t rk_memfd_create(size_t bytes, const char *what, int *fd, void **base,
                              struct rk_memfd_card *card);

/* Map what the card names. RANK_ERR_UNREACHABLE: this process cannot (said at debug level only). */
rank_status_t rk_memfd_open(const struct rk_memfd_card *card, int *fd, void **base);

/* Back a piece with memory now, so that touching it never ends in SIGBUS. level: of the line that says why not. */
rank_status_t rk_memfd_commit(int fd, size_t offset, size_t bytes, int level, const char *what);

void rk_memfd_close(int fd, void *base, size_t bytes);

/* Logs at that level and returns RANK_ERR_NO_MEMORY if a file of file_bytes, of which more are to be backed
 * now, would pass a limit that the kernel answers with a signal: RLIMIT_FSIZE, a memory cgroup,
 * the machine's free memory. */
rank_status_t rk_mem_check_room(size_t file_bytes, size_t more, int level, const char *what);

#endif
