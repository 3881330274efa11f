/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h: open the channels to ranks of other hosts. */
#ifndef RK_CONN_NETWORK_H
#define RK_CONN_NETWORK_H

#include "lib/base/ctx.h"
#include "lib/rank.h"

/* Open ucx and tcp, as RANK_CHANNELS selects. Leaves the card in the engine. No-op if it has one. */
rank_status_t rk_network_open(struct rk_ctx *ctx);

#endif
