/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_ucx.c: let UCX carry connections between machines with RDMA devices.
 *
 * UCX is opened with the first listener or connection of a context, where the machine has such devices or the user sets
 * UCX_TLS. UCX reads cards without checks: only a peer that has proved the secret gets one, or has one read.
 */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/channel/module.h"
#include "lib/conn/conns.h"
#include "lib/core/card.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_wanted(const struct rk_ctx *ctx)
{
    char path[PATH_MAX];

    /* A context of rank_init may open UCX for its job, with tcp. */
    return ctx->connects && rk_conf.channels & RK_CONF_UCX && (rk_rdma_devices() || rk_env("UCX_TLS")) &&
           rk_module_find("ucx", path, sizeof(path)) == RANK_OK;
}

void rk_conn_ucx_open(struct rk_conns *c)
{
    struct rk_ctx *ctx = c->ctx;
    size_t len = RK_CARD_MAX;
    const void *channel;
    rank_status_t st;
    void *card;

    if (!is_wanted(ctx) || rk_module_open("ucx", &channel) != RANK_OK || !(card = malloc(len)))
        return;
    ctx->ucx_for_conns = true;
    st = rk_engine_open_channel(ctx, channel, card, &len);
    free(card);
    if (st) {
        rk_info("connections go by tcp: UCX does not open");
    } else if (len > RK_SHAKE_CARD_MAX) {
        rk_warn("connections go by tcp: UCX has an address of %zu bytes, and a handshake takes %d; name fewer devices in "
                "UCX_NET_DEVICES or RANK_NICS", len, RK_SHAKE_CARD_MAX);
    } else {
        c->ucx = channel;
        c->ucx_state = rk_engine_state(ctx, channel);
    }
}

static bool may_use_ucx(const struct rk_shaking *s)
{
    return s->of->ucx && s->opts->secret.bytes && !(s->opts->flags & RANK_CONN_NO_RDMA);
}

void rk_conn_ucx_add_card(const struct rk_shaking *s, struct rk_shake *m)
{
    const struct rk_engine *e = s->of->ctx->engine;
    const void *part;
    size_t bytes;

    if (!may_use_ucx(s) || !(part = rk_card_part(e->card, e->card_len, "ucx", &bytes)))
        return;
    m->card_bytes = (uint16_t)bytes;
    memcpy(m->card, part, bytes);
}

bool rk_conn_ucx_prepare(struct rk_shaking *s)
{
    const struct rk_conns *c = s->of;
    rank_status_t st;
    char why[160];
    bool warn;

    if (!s->peer.card_bytes || !may_use_ucx(s))
        return false;
    st = c->ucx->links->prepare(c->ucx_state, s->peer.context, s->peer.card, s->peer.card_bytes, why, sizeof(why), &warn,
                                &s->ucx_link);
    if (st == RANK_ERR_NO_MEMORY)
        snprintf(why, sizeof(why), "out of memory");
    if (st)
        rk_log(warn ? RK_LOG_WARN : RK_LOG_INFO, "the connection to %s goes by tcp: %s", s->peer.name, why);
    return !st;
}

void rk_conn_ucx_drop(struct rk_shaking *s)
{
    if (s->ucx_link)
        s->of->ucx->links->unprepare(s->of->ucx_state, s->ucx_link);
    s->ucx_link = NULL;
}

rank_status_t rk_conn_ucx_adopt(struct rk_shaking *s, struct rk_peer *peer, uint64_t self)
{
    rank_status_t st = s->of->ucx->links->adopt(s->ucx_link, peer, (struct rk_procid){self, 0});

    if (st)
        return st;
    s->ucx_link = NULL;
    return rk_peer_try_connect(peer);
}
