/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv_early.c: fetch announced messages early, to break cycles of blocked sends. */
#include "lib/p2p/rndv_early.h"
#include "lib/base/clock.h"
#include "lib/base/timing.h"
#include "lib/core/threads.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>
#include <string.h>

/* Limit of one check: the wait may be over meanwhile. */
enum { BEGIN_BYTES = 1 << 20, BEGIN_MESSAGES = 64, ALIGN = 64 };
/*
 * A wait is stalled after RK_STALL_SEND_NS without traffic if it is a send, after RK_STALL_OTHER_NS otherwise, and after RK_STALL_LONG_NS or
 * RK_STALL_LONGER_NS even with traffic from other peers. RK_STALL_SEND_NS and RK_STALL_OTHER_NS are also the minimum age of a message to
 * fetch.
 */

/* The buffer of a message. */
struct rk_early {
    struct rk_link link;         /* while being fetched; first: see rk_engine.leavings */
    struct rk_unexpected *u;
    struct rank_request *fetch;  /* NULL: the fetch is over */
    struct rank_request *joined; /* receive that waits for it */
    uint64_t bytes;
    int64_t cost;                /* of the budget; 0: returned */
    rank_status_t status;
    bool dropped;
    unsigned char data[] __attribute__((aligned(ALIGN)));
};

static bool rndv_early_check(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now, uint64_t quiet, uint64_t waited);

void rk_early_init(struct rk_early_state *s)
{
    *s = (struct rk_early_state){.bytes = 0};
    rk_list_init(&s->announced);
    rk_list_init(&s->no_room);
    rk_list_init(&s->fetching);
}

/* Its share of RANK_RNDV_UNEXPECTED_MAX; an empty message takes memory, too. Longer ones would overflow the sum. */
static int64_t cost_of(uint64_t bytes)
{
    return (int64_t)(rk_round_up(sizeof(struct rk_early) + bytes, ALIGN) + sizeof(struct rk_unexpected));
}

/* Messages that found no room may retry. */
static void retry_no_room(struct rk_ctx *ctx)
{
    struct rk_early_state *s = &ctx->p2p->ahead;

    while (!rk_list_empty(&s->no_room)) {
        struct rk_link *l = s->no_room.next;
        rk_list_remove(l);
        rk_list_append(&s->announced, l);
        ctx->engine->stuck = rndv_early_check;
    }
}

/* Return its share of the budget. */
static void rndv_early_give_back(struct rk_ctx *ctx, struct rk_early *a)
{
    ctx->p2p->ahead.bytes -= a->cost;
    a->cost = 0;
    retry_no_room(ctx);
}

/* Discard the buffer. A channel may still write to it if its fetch has failed. */
static void discard(struct rk_ctx *ctx, struct rk_early *a)
{
    rk_list_remove(&a->link);
    rndv_early_give_back(ctx, a);
    if (a->status)
        rk_list_append(&ctx->engine->leavings, &a->link);
    else
        free(a);
}

static void rndv_early_finish(struct rk_p2p *p2p, struct rank_request *req, struct rk_unexpected *u)
{
    struct rk_early *a = u->u.ahead;
    rank_status_t st = a->status;
    struct rk_ctx *ctx = req->ctx;
    struct rk_peer *peer = u->peer;

    if (!st)
        st = rk_copy_in(&req->view, 0, a->data, req->got);
    discard(ctx, a);
    rk_unexpected_free(p2p, u);
    rk_req_complete(req, st);
    if (peer->state == RK_PEER_UP && rk_credit_is_due(peer))
        rk_send_credit(peer);
}

/* on_done of the fetch. */
static void fetched(struct rank_request *fetch, void *arg)
{
    struct rk_early *a = arg;
    struct rk_unexpected *u = a->u;
    struct rk_ctx *ctx = fetch->ctx;

    a->status = fetch->status;
    a->fetch = NULL;
    rk_list_remove(&a->link);
    rk_req_free(fetch);
    if (a->status) /* no receive may ever come */
        rndv_early_give_back(ctx, a);
    if (a->joined) {
        rndv_early_finish(ctx->p2p, a->joined, u);
    } else if (a->dropped) {
        discard(ctx, a);
        rk_unexpected_free(ctx->p2p, u);
    }
}

static bool has_room(const struct rk_early_state *s, const struct rk_unexpected *u)
{
    return s->bytes + cost_of(u->bytes) <= rk_conf.rndv_unexpected_max;
}

/* Returns false without room or memory. */
static bool rndv_early_begin(struct rk_ctx *ctx, struct rk_unexpected *u)
{
    struct rk_early_state *s = &ctx->p2p->ahead;
    struct rk_rndv rndv = u->u.rndv;
    struct rank_request *req;
    struct rk_early *a;

    if (!has_room(s, u))
        return false;
    a = aligned_alloc(ALIGN, rk_round_up(sizeof(*a) + u->bytes, ALIGN));
    req = a ? rk_req_alloc(ctx) : NULL;
    if (!req) {
        free(a);
        return false;
    }
    *a = (struct rk_early){.u = u, .fetch = req, .bytes = u->bytes, .cost = cost_of(u->bytes)};
    s->bytes += a->cost;
    rk_list_append(&s->fetching, &a->link);
    rk_unexpected_envelope_done(u);
    u->kind = RK_KIND_EARLY;
    u->u.ahead = a;
    req->type = RK_REQ_RECV;
    req->peer = rndv.peer;
    req->view = (struct rk_view){a->data, u->bytes, NULL};
    req->team = u->team;
    req->tag = req->env_tag = u->tag;
    req->src = req->env_src = u->src;
    req->got = req->sent = u->bytes;
    req->on_done = fetched;
    req->arg = a;
    rk_list_init(&req->link);
    rndv.peer->channel->rndv_recv(&rndv, &(struct rk_view){a->data, a->bytes, NULL}, req);
    return true;
}

/* Its message has arrived or is on its way: it completes without this rank's help. */
static bool is_matched(const struct rk_wait *w)
{
    return w->kind == RK_FOR_RECV && !(((const struct rk_req_wait *)w)->req->flags & RK_REQ_POSTED);
}

/* The stall handler (rk_engine.stuck). */
static bool rndv_early_check(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now, uint64_t quiet, uint64_t waited)
{
    struct rk_early_state *s = &ctx->p2p->ahead;
    bool for_send = w->kind == RK_FOR_SEND || ctx->engine->finalizing; /* perhaps part of a cycle */
    uint64_t age = !for_send ? RK_STALL_OTHER_NS : s->sending ? 0 : RK_STALL_SEND_NS, bytes = 0;
    bool stalls = false, young = false;

    if (!for_send && is_matched(w))
        return false;
    if (quiet < age && waited < (for_send ? RK_STALL_LONG_NS : RK_STALL_LONGER_NS))
        return for_send;
    for (int n = 0; n < BEGIN_MESSAGES && bytes < BEGIN_BYTES && !rk_list_empty(&s->announced); n++) {
        struct rk_unexpected *u = rk_list_entry(s->announced.next, struct rk_unexpected, u.announced.link);

        young = now < u->u.announced.since + age;
        if (young)
            break;
        rk_list_remove(&u->u.announced.link);
        if (u->peer->state != RK_PEER_UP) /* the receive reports it */
            continue;
        if (rndv_early_begin(ctx, u)) {
            bytes += u->bytes;
            stalls = for_send && !s->sending;
        } else if (has_room(s, u)) { /* out of memory: retry later, as perhaps nothing is ever freed */
            u->u.announced.since = now;
            rk_list_append(&s->announced, &u->u.announced.link);
        } else {
            rk_list_append(&s->no_room, &u->u.announced.link);
        }
    }
    if (stalls) {
        s->sending = true;
        rk_unexpected_open_windows(ctx->p2p);
    }
    if (!rk_list_empty(&s->announced))
        return for_send || !young;
    ctx->engine->stuck = NULL;
    return false;
}

void rk_early_add(struct rk_p2p *p2p, struct rk_unexpected *u, uint8_t flags)
{
    rk_list_init(&u->u.announced.link);
    if (flags & RK_FLAG_SYNC || u->team & RK_TEAM_COLL || u->bytes > (uint64_t)rk_conf.rndv_unexpected_max ||
        cost_of(u->bytes) > rk_conf.rndv_unexpected_max)
        return;
    u->u.announced.since = rk_clock_ns();
    rk_list_append(&p2p->ahead.announced, &u->u.announced.link);
    u->peer->ctx->engine->stuck = rndv_early_check;
}

void rk_early_receive(struct rk_p2p *p2p, struct rank_request *req, struct rk_unexpected *u)
{
    struct rk_early *a = u->u.ahead;

    req->peer = u->peer;
    if (a->fetch)
        a->joined = req;
    else
        rndv_early_finish(p2p, req, u);
}

void rk_early_drop(struct rk_p2p *p2p, struct rk_unexpected *u)
{
    struct rk_early *a = u->u.ahead;

    if (a->fetch) {
        a->dropped = true;
        return;
    }
    discard(u->peer->ctx, a);
    rk_unexpected_free(p2p, u);
}

void rk_early_free(struct rk_p2p *p2p, struct rk_unexpected *u)
{
    (void)p2p;
    if (!u->u.ahead->fetch)
        discard(u->peer->ctx, u->u.ahead);
}

void rk_early_close(struct rk_ctx *ctx)
{
    struct rk_early_state *s = &ctx->p2p->ahead;

    ctx->engine->stuck = NULL;
    while (!rk_list_empty(&s->fetching)) {
        struct rk_early *a = rk_list_entry(s->fetching.next, struct rk_early, link);
        a->fetch->on_done = NULL;
        rk_list_remove(&a->link);
        rk_list_append(&ctx->engine->leavings, &a->link);
    }
}
