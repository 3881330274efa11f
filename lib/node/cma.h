/* SPDX-License-Identifier: BSD-3-Clause */
/* cma.h: copy from and to the memory of another process. */
#ifndef RK_NODE_CMA_H
#define RK_NODE_CMA_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Permit processes of this user to access this one, where a security module (Yama) requires it. */
void rk_cma_allow(void);

/*
 * Test it: read the word at addr of process pid, compare it, and write nothing. A peer names the pid: another user's
 * process fails, also where root could read it. The calls below take pids that have passed.
 */
bool rk_cma_works(int pid, uint64_t addr, uint32_t expected);

/* Copies all bytes or returns an error: RANK_ERR_PEER_DEAD if the process is gone. */
rank_status_t rk_cma_read(int pid, void *to, uint64_t from, size_t bytes);
rank_status_t rk_cma_write(int pid, uint64_t to, const void *from, size_t bytes);

struct iovec;
/*
 * Copy between lists (at most 1024 entries each, equal sums). Returns false if not everything was moved; a retry
 * entry by entry may succeed.
 */
bool rk_cma_move(int pid, bool write, const struct iovec *here, int nhere, const struct iovec *there, int nthere);

#endif
