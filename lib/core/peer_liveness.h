/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_liveness.h: detect dead ranks of other hosts without the launcher.
 *
 * The kernels do the work. Each rank listens on a port and never accepts: its kernel completes connections, and
 * resets them when the process is gone, even if the process was busy or stopped. Forked children close the port
 * (not those of _Fork and clone). A rank that has waited RANK_HEARTBEAT for a rank of another host connects to its
 * port and enables TCP keepalive. Shorter waits open nothing.
 *
 * ECONNREFUSED means that the process is gone, or that a firewall refuses us. It is trusted only after some other
 * peer has accepted a connection.
 */
#ifndef RK_CORE_PEER_LIVENESS_H
#define RK_CORE_PEER_LIVENESS_H

#include "lib/core/engine.h"

/* Call before the commit: listen, and publish the addresses. On failure there is no such detection. */
void rk_liveness_open(struct rk_ctx *ctx);
/* From now on ranks leave in an orderly way. */
void rk_liveness_stop(struct rk_ctx *ctx);
void rk_liveness_close(struct rk_ctx *ctx);

/* Check the connections in a wait that has been checked before (begun). Deaths are reported to the engine. */
void rk_liveness_check(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now);
/* Check existing connections: without a wait, in a short one, or for all waits of a rank with threads. */
void rk_liveness_recheck(struct rk_ctx *ctx, uint64_t now);

#endif
