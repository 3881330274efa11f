/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_device.c: report GPU, NIC and cores of this rank.
 *
 * xrun passes them in a variable if it has given devices to the ranks. Else the module librank-topo.so finds them from
 * the machine and the cores of the ranks of this host, which are in the segment of the node.
 */
#include "lib/base/arg_error.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/channel/module.h"
#include "lib/core/engine.h"
#include "lib/core/root.h"
#include "lib/core/threads.h"
#include "lib/node/node.h"
#include "lib/topo/pair_text.h"
#include "lib/topo/device_text.h"
#include "lib/topo/module/topo_module.h"

#include <stdlib.h>
#include <string.h>

#define VISIBLE "CUDA_VISIBLE_DEVICES"

/* Describe the ranks of this host. Without the node's segment the cores of the others are not known. */
static struct rk_topo_query make_topo_query(const struct rk_ctx *ctx, struct rk_affinity *mine)
{
    struct rk_topo_query query = {(uint32_t)ctx->boot->local_index, (uint32_t)ctx->boot->nlocal, NULL, rk_env(VISIBLE)};

    if (ctx->node && ctx->node->nlocal == ctx->boot->nlocal) {
        query.cores = ctx->node->cores;
    } else if (query.nlocal == 1) {
        rk_affinity_query(mine);
        query.cores = mine;
    }
    return query;
}

/* Find the text once; it stays with the context. */
static rank_status_t find_devices(struct rk_ctx *ctx)
{
    const char *given = rk_env_is_of_xrun() ? rk_env(RK_PAIR_VARIABLE) : NULL;
    const struct rk_topo_ops *ops;
    struct rk_topo_query query;
    struct rk_affinity mine;
    const void *module;
    char err[512];
    rank_status_t st;

    if (ctx->devices)
        return RANK_OK;
    if (given) {
        ctx->devices = strdup(given);
        return ctx->devices ? RANK_OK : RANK_ERR_NO_MEMORY;
    }
    st = rk_module_open("topo", &module);
    if (st)
        return st;
    ops = module;
    query = make_topo_query(ctx, &mine);
    ctx->devices = ops->describe(&query, err, sizeof(err));
    if (ctx->devices)
        return RANK_OK;
    return rk_fail(RANK_ERR_SYSTEM, "rank_device_query: %s", err);
}

rank_status_t rank_device_query(rank_device_t *out)
{
    rank_device_t found = RANK_DEVICE_INIT;
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(__func__, RANK_CTX_NULL, &ctx);

    if (st)
        return st;
    if (!out)
        return rk_arg_null(__func__, "out");
    if (out->size < offsetof(rank_device_t, cpus))
        return rk_arg_error(RANK_ERR_ARG, __func__, "out->size %u is too small; set it by RANK_DEVICE_INIT",
                            (unsigned)out->size);
    RK_ENTER(ctx);
    st = find_devices(ctx);
    if (st)
        return st;
    if (!rk_device_text(ctx->devices, rk_env(VISIBLE), &found)) {
        return rk_fail(RANK_ERR_BOOT, "rank_device_query: " RK_PAIR_VARIABLE " is malformed");
    }
    found.size = out->size;
    memcpy(out, &found, out->size < sizeof(found) ? out->size : sizeof(found));
    return RANK_OK;
}

RK_PUBLIC(rank_device_query);
