/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memfd.h: share anonymous memory that has no name in a file system.
 *
 * The creator's card has the path through /proc/PID/fd and a nonce. The nonce at the start of the memory reveals
 * another pid namespace or a reused pid. The memory is sealed: its size never changes, so that no peer can truncate it
 * and end this process by SIGBUS.
 */
#ifndef RK_MEM_MEMFD_H
#define RK_MEM_MEMFD_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rk_memfd_card {
    uint64_t nonce;
    uint64_t bytes;
    int32_t pid, fd;
};

/* Create a sparse mapping of bytes; its first page is backed and begins with card->nonce. what: for messages. */
rank_status_t rk_memfd_create(size_t bytes, const char *what, int *fd, void **base,
                              struct rk_memfd_card *card);

/*
 * Map the memory of a card. RANK_ERR_UNREACHABLE: this process cannot, or the memory is another user's or not sealed
 * (logged at debug level only).
 */
rank_status_t rk_memfd_open(const struct rk_memfd_card *card, int *fd, void **base);

/* Return whether a process that a peer names runs as this user. False if there is none. */
bool rk_is_own_process(int pid);

/* Back a piece now, so that touching it never raises SIGBUS. level: of the log line on failure. */
rank_status_t rk_memfd_commit(int fd, size_t offset, size_t bytes, int level, const char *what);

void rk_memfd_close(int fd, void *base, size_t bytes);

/*
 * Check whether backing more of a file of file_bytes would pass a limit that the kernel enforces by a signal:
 * RLIMIT_FSIZE, a memory cgroup, the machine's free memory. Then logs at that level and returns
 * RANK_ERR_NO_MEMORY.
 */
rank_status_t rk_mem_check_room(size_t file_bytes, size_t more, int level, const char *what);

/* The memory cgroups with a limit that a process is in, by ids that processes of a machine can compare. 0: none. */
enum { RK_MEM_GROUPS = 8 };
struct rk_mem_groups {
    uint64_t id[RK_MEM_GROUPS];
};
void rk_mem_groups_get(struct rk_mem_groups *out);

/*
 * n processes of this machine are about to back bytes each; this one is of[mine]. Check the sum of those that share a limit
 * with this one. All check before one begins. RANK_ERR_NO_MEMORY: it is too much, and the first of them prints the line.
 */
rank_status_t rk_mem_check_sum(const struct rk_mem_groups *of, int n, size_t bytes, int mine, const char *what);
/* More than a limit allows: log at that level, or fail by it. Returns RANK_ERR_NO_MEMORY. */
rank_status_t rk_mem_refuse(int level, const char *fmt, ...) RK_PRINTF(2, 3);

#endif
