/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xpmem.h: other processes' memory as a part of one's own, by the kernel module XPMEM, where there is one.
 *
 * libxpmem is opened when the first large message wants it, and only if the module's device is there. A process offers
 * all of its memory under a name; who has the name attaches ranges of it, once, and from then on copies without the
 * kernel. Attachments are kept, which is safe only if they follow the pages when their owner unmaps some and
 * maps others there: that is tried once, and where it is not so there is no XPMEM for us.
 *
 * What is attached can go away under a copy: its owner dies, or has unmapped it. The kernel tells that by SIGBUS, which
 * a handler of ours turns into a copy that has failed; who copies tries the next path.
 */
#ifndef RK_NODE_XPMEM_H
#define RK_NODE_XPMEM_H

#include "lib/node/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is attached of one process. */
struct rk_xpmem;

/* Is it here, and wanted (RANK_XPMEM)? Then why is left alone, else it says why not. */
bool rk_xpmem_works(const char **why);
/* The name of this process's memory, 0: none; and what is attached of a process by its name. NULL: we cannot have it. */
int64_t rk_xpmem_name(void);
struct rk_xpmem *rk_xpmem_open(int64_t name);
/* Put the name of this process's memory where peers find it, as far as that works; again costs nothing. */
void rk_xpmem_offer(struct rk_node *node);

/* NULL: it offers nothing, or we cannot have it. */
struct rk_xpmem *rk_xpmem_of(const struct rk_node *node, int index);
/* NULL is fine. */
void rk_xpmem_close(struct rk_xpmem *x);

/*
 * bytes of the other's memory at the address at, here, until rk_xpmem_end: attached now if they have not been. NULL: not possible. One at
 * a time in a thread.
 */
char *rk_xpmem_begin(struct rk_xpmem *x, uint64_t at, size_t bytes);
/* False: it went away meanwhile; what was read since is worthless, what was written is lost. */
bool rk_xpmem_end(struct rk_xpmem *x);

/* All of it, or false. NULL has nothing attached. */
bool rk_xpmem_read(struct rk_xpmem *x, void *to, uint64_t from, size_t bytes);
bool rk_xpmem_write(struct rk_xpmem *x, uint64_t to, const void *from, size_t bytes);

#endif
