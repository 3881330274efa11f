/* SPDX-License-Identifier: BSD-3-Clause */
/* network.c: open the channels to ranks of other hosts. */
#include "lib/conn/network.h"
#include "lib/base/arg_error.h"
#include "lib/base/auth.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/channel/module.h"
#include "lib/conn/conns.h"
#include "lib/core/card.h"
#include "lib/core/engine.h"

#include <stdlib.h>

static rank_status_t open_ucx(struct rk_ctx *ctx)
{
    const void *ucx;
    unsigned char *card;
    size_t len = RK_CARD_MAX;
    rank_status_t st = rk_module_open("ucx", &ucx);

    if (st)
        return st;
    card = malloc(RK_CARD_MAX);
    if (!card)
        return RANK_ERR_NO_MEMORY;
    st = rk_engine_open_channel(ctx, ucx, card, &len);
    free(card);
    return st;
}

rank_status_t rk_network_open(struct rk_ctx *ctx)
{
    bool ucx = rk_conf.channels & RK_CONF_UCX, tcp = rk_conf.channels & RK_CONF_TCP;
    rank_status_t st = RANK_OK;

    if (ctx->engine->card)
        return RANK_OK;
    if (ucx && tcp && !rk_auth_open()) {
        rk_info("ranks of other hosts are reached by ucx: " RK_AUTH_MISSING);
        tcp = false;
    }
    if (!tcp && !ucx)
        return rk_fail(RANK_ERR_CONFIG, "rank %d needs the channel ucx or tcp to reach all others, but RANK_CHANNELS leaves them "
                       "out", ctx->boot->rank);
    if (ucx && (!tcp || rk_ucx_is_wanted()))
        st = open_ucx(ctx);
    if (st && st != RANK_ERR_CONFIG && tcp) {
        rk_warn("ranks of other hosts are reached by tcp: UCX does not open");
        st = RANK_OK;
    }
    return st || !tcp ? st : rk_conns_open_ranks(ctx);
}
