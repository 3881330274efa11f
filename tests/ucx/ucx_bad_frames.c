/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_bad_frames.c: drop and count frames without a handler, and of another epoch.
 * Messages of other ranks stay as they were, and later frames arrive.
 */
#include "tests/ucx/ucx_fixture.h"
#include "lib/channel/ucx/decode.h"
#include "lib/channel/ucx/ucx.h"

enum { BYTES = 64, LAST_TAG = 4711, UNOWNED = RK_KIND_COLL_CALL + 1, THROWN = RK_KIND_CHANNEL_FIRST - UNOWNED };

static int nlast, nother;
static struct rk_rndv announced;
static bool got_rndv;

static void on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                     const void *payload, const struct rk_rndv *rndv)
{
    (void)ctx;
    (void)peer;
    (void)payload;
    if (rndv) {
        announced = *rndv;
        got_rndv = true;
    } else if (hdr->tag == LAST_TAG) {
        nlast++;
    } else {
        nother++;
    }
}

static bool came(void *arg)
{
    (void)arg;
    return nlast > 0;
}

static bool rndv_came(void *arg)
{
    (void)arg;
    return got_rndv;
}

static bool is_done(void *req)
{
    return ((struct rank_request *)req)->done;
}

static void attack(struct rig *r)
{
    struct rk_hdr last = {.kind = RK_KIND_MSG, .tag = LAST_TAG}, late = last;
    static const unsigned char data[16];

    for (int kind = UNOWNED; kind < RK_KIND_CHANNEL_FIRST; kind++) { /* without a handler */
        struct rk_hdr hdr = {.kind = (uint8_t)kind, .len = sizeof(data)};
        RIG_CHECK(rig_send(r, 0, &hdr, data) == RANK_OK);
    }
    late.epoch = 9;
    late.tag = 1;
    RIG_CHECK(rig_send(r, 0, &late, NULL) == RANK_OK);
    RIG_CHECK(rig_send(r, 0, &last, NULL) == RANK_OK);
}

void hostile_body(struct rig *r)
{
    struct rk_hdr hdr = {.kind = RK_KIND_RNDV};
    static unsigned char out[BYTES], in[BYTES];
    struct rank_request send = {0}, recv = {0};
    struct rk_view out_view = {out, BYTES, NULL}, in_view = {in, BYTES, NULL};
    const struct rk_ucx *ucx = r->state;
    uint64_t bad = ucx->bad_frames, late = ucx->late_frames;
    struct rk_peer *p;

    nlast = nother = 0;
    got_rndv = false;
    memset(out, r->me + 1, BYTES);
    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    r->ctx->engine->handler[RK_KIND_RNDV] = on_frame;
    if (r->me == 1) {
        rig_meet(r, r->n);
        attack(r);
        rig_meet(r, r->n);
        return;
    }
    /* Ranks 0 and 2 announce messages to each other. */
    p = rig_peer(r, 2 - r->me);
    send = (struct rank_request){.type = RK_REQ_SEND, .ctx = r->ctx, .peer = p};
    recv = (struct rank_request){.type = RK_REQ_RECV, .ctx = r->ctx, .peer = p};
    RIG_CHECK(p->channel->rndv_send(p, &hdr, &out_view, &send) == RANK_OK);
    rig_wait(r, rndv_came, NULL);
    rig_meet(r, r->n);
    if (r->me == 0)
        rig_wait(r, came, NULL);
    RIG_CHECK(nother == 0 && !send.done);
    RIG_CHECK(ucx->bad_frames - bad == (r->me == 0 ? THROWN : 0) && ucx->late_frames - late == (r->me == 0));
    rig_meet(r, r->n);
    p->channel->rndv_recv(&announced, &in_view, &recv);
    rig_wait(r, is_done, &recv);
    rig_wait(r, is_done, &send);
    RIG_CHECK(send.status == RANK_OK && recv.status == RANK_OK);
    for (int i = 0; i < BYTES; i++)
        RIG_CHECK(in[i] == 3 - r->me);
}
