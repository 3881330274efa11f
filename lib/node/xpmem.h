/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xpmem.h: attach other processes' memory by the kernel module XPMEM.
 *
 * libxpmem is opened for the first large message, if the module's device exists. A process offers all of its
 * memory under a name; a peer with the name attaches ranges of it once, and then copies without the kernel.
 * Attachments are kept, which is safe only if they follow when the owner unmaps pages and maps others there: this
 * is tested once, and without it XPMEM is not used.
 *
 * Attached memory can vanish during a copy, when its owner dies or unmaps it. A handler turns the kernel's SIGBUS
 * into a failed copy, and the caller uses the next protocol.
 */
#ifndef RK_NODE_XPMEM_H
#define RK_NODE_XPMEM_H

#include "lib/node/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Attached memory of one process. */
struct rk_xpmem;

/* Is it present and enabled (RANK_XPMEM)? If not, *why is the reason. */
bool rk_xpmem_works(const char **why);
/* Name of this process's memory, 0: none. rk_xpmem_open: access by a name; NULL: not possible. */
int64_t rk_xpmem_name(void);
struct rk_xpmem *rk_xpmem_open(int64_t name);
/* Publish the name of this process's memory in its slot, if possible. Idempotent. */
void rk_xpmem_offer(struct rk_node *node);

/* NULL: the rank offers nothing, or it cannot be attached. */
struct rk_xpmem *rk_xpmem_of(const struct rk_node *node, int index);
/* No-op if NULL. */
void rk_xpmem_close(struct rk_xpmem *x);

/*
 * Local address of bytes at the owner's address at, until rk_xpmem_end; attaches them if necessary. NULL: not
 * possible. One at a time in a thread.
 */
char *rk_xpmem_begin(struct rk_xpmem *x, uint64_t at, size_t bytes);
/* False: the memory vanished meanwhile; data read is invalid, data written is lost. */
bool rk_xpmem_end(struct rk_xpmem *x);

/* Copies all of it, or returns false. NULL has nothing attached. */
bool rk_xpmem_read(struct rk_xpmem *x, void *to, uint64_t from, size_t bytes);
bool rk_xpmem_write(struct rk_xpmem *x, uint64_t to, const void *from, size_t bytes);

#endif
