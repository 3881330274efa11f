/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h: count the contexts of this process, and what they share. */
#ifndef RK_WORLD_PROCESS_H
#define RK_WORLD_PROCESS_H

#include "lib/rank.h"

struct rk_ctx;

/* A context is about to open: the first one loads the configuration, watches forks and so on. Any thread. */
rank_status_t rk_process_enter(void);
/* It is closed: the last one unloads. After each rk_process_enter, also a failed one. */
void rk_process_leave(void);

/* List an open context: in a forked child its handles are invalid, and its sockets closed. */
void rk_process_add(struct rk_ctx *ctx);
/* No-op if it is not listed. */
void rk_process_remove(struct rk_ctx *ctx);

#endif
