/* SPDX-License-Identifier: BSD-3-Clause */
/* describe_p2p.c: describe waits of sends, receives and probes. */
#include "lib/core/describe.h"
#include "lib/p2p/p2p_internal.h"

static void describe_team(const struct rank_team *team, struct rk_wait_for *out)
{
    if (!team)
        return;
    out->flags |= RK_WAIT_TEAM;
    out->team = team->id;
    out->team_size = (uint32_t)team->size;
}

static void describe_tag(uint64_t tag, struct rk_wait_for *out)
{
    out->flags |= tag == RK_TAG_ANY ? RK_WAIT_ANY_TAG : RK_WAIT_TAG;
    out->tag = tag;
}

/* r: rank in the team, or RK_SRC_ANY. */
static void describe_source(const struct rank_team *team, uint32_t r, struct rk_wait_for *out)
{
    if (r == RK_SRC_ANY)
        out->flags |= RK_WAIT_ANY_SOURCE;
    else if (team && r < (uint32_t)team->size)
        rk_describe_peer(out, rk_team_world_rank(team, (int)r));
}

void rk_message_describe(const struct rank_request *req, struct rk_wait_for *out)
{
    const struct rank_team *team = rk_team_table_find(&req->ctx->p2p->by_id, req->team & ~RK_TEAM_COLL);

    describe_team(team, out);
    describe_tag(req->tag, out);
    out->flags |= RK_WAIT_BYTES;
    out->bytes = req->view.bytes;
    if (req->type == RK_REQ_SEND) {
        rk_describe_call(out, req->flags & RK_REQ_SYNC ? "synchronous send" : "send");
        if (req->peer)
            rk_describe_peer(out, req->peer->number);
    } else {
        rk_describe_call(out, "receive");
        if (req->peer)
            rk_describe_peer(out, req->peer->number);
        else
            describe_source(team, req->src, out);
    }
}

void rk_any_describe(const struct rk_wait *w, struct rk_wait_for *out)
{
    const struct rk_any_wait *any = (const struct rk_any_wait *)w;
    const struct rank_request *last = NULL;
    int n = 0;

    for (int64_t i = 0; i < any->n; i++) {
        const struct rank_request *req = any->reqs[i];
        struct rk_wait_for one = {.flags = 0};

        if (!req || req->done)
            continue;
        last = req;
        n++;
        if (req->type > RK_REQ_RECV)
            continue;
        rk_message_describe(req, &one);
        if (one.npeers)
            rk_describe_peer(out, one.peers[0]);
        out->flags |= one.flags & RK_WAIT_ANY_SOURCE;
    }
    rk_describe_call(out, "waitany of %d requests", n);
    if (n == 1 && last->ctx->engine->describe[last->type]) {
        *out = (struct rk_wait_for){.flags = 0};
        last->ctx->engine->describe[last->type](last, out);
    }
}

void rk_probe_describe(const struct rk_wait *w, struct rk_wait_for *out)
{
    const struct rk_probe *probe = (const struct rk_probe *)w;

    rk_describe_call(out, "probe");
    describe_team(probe->team, out);
    describe_tag(probe->tag, out);
    describe_source(probe->team, (uint32_t)probe->source, out);
}
