/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_liveness.h: the library's own watch over ranks of other hosts, under launchers
 * that may not tell of deaths there.
 *
 * It leaves all to the kernels. Each rank listens at a port, and never accepts:
 * its kernel does, and resets the connections when the process is gone, however
 * busy or stopped it was before. Children that it forks close the port (not those of _Fork and clone). Who has waited for RANK_HEARTBEAT for a rank of
 * another host connects to its port, and has its own kernel ask every now and then
 * whether that host is still there. Shorter waits begin nothing of this.
 *
 * A port that refuses says that the process is gone, or that the network does not
 * let us in: it counts only for those who have been let in somewhere.
 */
#ifndef RK_CORE_PEER_LIVENESS_H
#define RK_CORE_PEER_LIVENESS_H

#include "lib/core/engine.h"

/* Before the commit: listen, and tell the others where. Without it there is just no such watch. */
void rk_lives_open(struct rk_ctx *ctx);
/* From now on ranks leave in peace. */
void rk_lives_stop(struct rk_ctx *ctx);
void rk_lives_close(struct rk_ctx *ctx);

/* A wait has lasted since then: what do the living say? Deaths are reported to the engine. */
void rk_lives_look(struct rk_ctx *ctx, uint64_t since, bool (*cond)(void *), void *arg, uint64_t now);
/* In no wait, or in a short one: what do those say who are watched already? And of a rank with threads for all waits: the poller's
 * may be short, one after the other, where another's is long. */
void rk_lives_look_again(struct rk_ctx *ctx, uint64_t now);

#endif
