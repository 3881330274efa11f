/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module_glue.c: export the module's symbol, forward calls to the core.
 */
#include "config.h"

#include "lib/channel/module_core.h"
#include "lib/channel/ucx/ucx.h"


const void *rank_module(const struct rk_services *services)
{
    return rk_module_begin(services) ? &rk_channel_ucx : NULL;
}

const struct rk_conf *rk_ucx_conf(void)
{
    return rk_core->conf;
}

const char *rk_env(const char *name)
{
    return rk_core->env(name);
}

rank_status_t rk_peer_card(struct rk_peer *peer, const char *channel, void *data, size_t *len)
{
    return rk_core->peer_card(peer, channel, data, len);
}

struct rk_peer *rk_engine_peer(struct rk_ctx *ctx, int number)
{
    return rk_core->engine_peer(ctx, number);
}

struct rk_peer *rk_engine_find_peer(struct rk_ctx *ctx, struct rk_procid id)
{
    return rk_core->find_peer(ctx, id);
}

rank_status_t rk_peer_connect(struct rk_peer *peer)
{
    return rk_core->peer_connect(peer);
}

rank_status_t rk_peer_try_connect(struct rk_peer *peer)
{
    return rk_core->peer_try_connect(peer);
}

void rk_send_control(struct rk_peer *peer, uint8_t kind, uint64_t tag, const void *payload, uint32_t len)
{
    rk_core->send_control(peer, kind, tag, payload, len);
}

void rk_engine_report_death(struct rk_ctx *ctx, int number)
{
    rk_core->report_death(ctx, number);
}

rank_status_t rk_engine_why_unreached(struct rk_peer *peer)
{
    return rk_core->why_unreached(peer);
}

void rk_req_complete(struct rank_request *req, rank_status_t status)
{
    rk_core->req_complete(req, status);
}

rank_status_t rk_req_wait(struct rank_request *req)
{
    return rk_core->req_wait(req);
}
