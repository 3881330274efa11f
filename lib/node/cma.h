/* SPDX-License-Identifier: BSD-3-Clause */
/* cma.h: copy straight from and to another process's memory. */
#ifndef RK_NODE_CMA_H
#define RK_NODE_CMA_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Let the ranks of this user do so with us where a security module asks for it (Yama). */
void rk_cma_allow(void);

/* Tried, not assumed: read the word at addr of process pid and compare. */
bool rk_cma_works(int pid, uint64_t addr, uint32_t expected);

/* All of bytes or an error: RANK_ERR_PEER_DEAD if the process is gone. */
rank_status_t rk_cma_read(int pid, void *to, uint64_t from, size_t bytes);
rank_status_t rk_cma_write(int pid, uint64_t to, const void *from, size_t bytes);

struct iovec;
/* Pieces here and there (at most 1024 each) at once, as long together on either side. False: not all of it has been moved, and it may be
 * tried piece by piece. */
bool rk_cma_move(int pid, bool write, const struct iovec *here, int nhere, const struct iovec *there, int nthere);

#endif
