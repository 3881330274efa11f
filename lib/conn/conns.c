/* SPDX-License-Identifier: BSD-3-Clause */
/* conns.c: make the objects of a context that connects; serve its sockets. */
#include "lib/conn/conns.h"
#include "lib/base/clock.h"
#include "lib/boot/boot.h"
#include "lib/core/procs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void conns_idle(void *arg, uint64_t now)
{
    struct rk_conns *c = arg;

    rk_listeners_check(c, now);
    rk_connects_settle(c, now);
    if (c->ranks)
        rk_ranks_settle(c->ranks);
}

static rank_status_t conns_contact(void *arg, struct rk_peer *peer)
{
    const struct rk_conns *c = arg;

    return c->ranks && !peer->by_conn ? rk_ranks_contact(c->ranks, peer) : RANK_ERR_UNREACHABLE;
}

static void conns_settle(void *arg)
{
    struct rk_conns *c = arg;

    rk_connects_settle(c, rk_clock_ns());
    if (c->ranks)
        rk_ranks_settle(c->ranks);
}

static const struct rk_tcp_hooks tcp_hooks = {.contact = conns_contact, .settle = conns_settle, .idle = conns_idle};

static rank_status_t conns_make(struct rk_ctx *ctx, struct rk_conns **out)
{
    struct rk_conns *c = *out = ctx->conns;
    size_t none = 0;
    rank_status_t st;

    if (c)
        return RANK_OK;
    c = calloc(1, sizeof(*c));
    if (!c)
        return RANK_ERR_NO_MEMORY;
    st = rk_engine_open_channel(ctx, &rk_channel_tcp, NULL, &none);
    if (st) {
        free(c);
        return st;
    }
    c->ctx = ctx;
    c->tcp = rk_engine_state(ctx, &rk_channel_tcp);
    c->tcp->hooks = &tcp_hooks;
    c->tcp->hooks_arg = c;
    c->context = rk_procid_hash((struct rk_procid){ctx->engine->job, (uint32_t)ctx->boot->rank});
    c->host = rk_address_host_id();
    snprintf(c->name, sizeof(c->name), "%s", ctx->name ? ctx->name : program_invocation_short_name);
    rk_list_init(&c->listeners);
    rk_list_init(&c->clients);
    rk_list_init(&c->attempts);
    rk_list_init(&c->failed);
    rk_list_init(&c->conns);
    *out = ctx->conns = c;
    return RANK_OK;
}

rank_status_t rk_conns_of(struct rk_ctx *ctx, struct rk_conns **out)
{
    rank_status_t st = conns_make(ctx, out);

    if (!st && !(*out)->connects) {
        rk_conn_ucx_open(*out);
        (*out)->connects = ctx->connects = true;
    }
    return st;
}

rank_status_t rk_conns_open_ranks(struct rk_ctx *ctx)
{
    struct rk_conns *c;
    rank_status_t st = conns_make(ctx, &c);

    return st ? st : rk_ranks_open(c);
}

static void close_list(struct rk_link *list)
{
    struct rk_link *at;

    rk_list_for_each(at, list)
        close(rk_list_entry(at, struct rk_shaking, link)->source.fd);
}

void rk_conns_forked(struct rk_ctx *ctx)
{
    struct rk_conns *c = ctx->conns;
    struct rk_link *at;

    if (!c)
        return;
    close_list(&c->clients);
    rk_list_for_each(at, &c->listeners)
    {
        rank_listener_t t = rk_list_entry(at, struct rank_listener, link);
        close_list(&t->half_open);
        close_list(&t->ready);
        close(t->source.fd);
    }
    rk_list_for_each(at, &c->tcp->links)
        close(rk_list_entry(at, struct rk_tcp_link, on_links)->source.fd);
    close(c->tcp->set);
}
