/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module_glue.c: export the module's symbol, forward calls to the core.
 */
#include "config.h"

#include "lib/channel/services.h"
#include "lib/base/log.h"
#include "lib/channel/ucx/ucx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The core's functions, configuration and log; set once. */
static const struct rk_services *core;
int rk_log_threshold;

__attribute__((visibility("default"))) const void *rank_module(const struct rk_services *services);

const void *rank_module(const struct rk_services *services)
{
    if (!rk_services_match(services))
        return NULL;
    core = services;
    rk_log_threshold = *services->log_threshold;
    return &rk_channel_ucx;
}

const struct rk_conf *rk_ucx_conf(void)
{
    return core->conf;
}

void rk_log_write(int level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    core->log_text(level, text);
}

const char *rk_env(const char *name)
{
    return core->env(name);
}

rank_status_t rk_peer_card(struct rk_peer *peer, const char *key, void *data, size_t *len)
{
    return core->peer_card(peer, key, data, len);
}

struct rk_peer *rk_engine_peer(struct rk_ctx *ctx, int number)
{
    return core->engine_peer(ctx, number);
}

struct rk_peer *rk_engine_find_peer(struct rk_ctx *ctx, struct rk_procid id)
{
    return core->find_peer(ctx, id);
}

rank_status_t rk_peer_connect(struct rk_peer *peer)
{
    return core->peer_connect(peer);
}

rank_status_t rk_peer_try_connect(struct rk_peer *peer)
{
    return core->peer_try_connect(peer);
}

void rk_send_control(struct rk_peer *peer, uint8_t kind, uint64_t tag, const void *payload, uint32_t len)
{
    core->send_control(peer, kind, tag, payload, len);
}

void rk_engine_report_death(struct rk_ctx *ctx, int number)
{
    core->report_death(ctx, number);
}

rank_status_t rk_engine_why_unreached(struct rk_peer *peer)
{
    return core->why_unreached(peer);
}

void rk_req_complete(struct rank_request *req, rank_status_t status)
{
    core->req_complete(req, status);
}

rank_status_t rk_req_wait(struct rank_request *req)
{
    return core->req_wait(req);
}
