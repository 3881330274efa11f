/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_p2p.c: handle frames of messages from unknown peers.
 * Among receives, probes, sends and deaths that the fuzzer chooses: the
 * way of a frame behind the decoder, as lib/channel/ucx goes it. Each payload and each receive's buffer lies in memory of
 * just its size. What a receive reports has to be from a rank that exists, and no longer than its buffer.
 */
#include "lib/boot/boot.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

enum { RANKS = 4, ME = 0, TEAM = 5, LATE = 6, SLOTS = 8, LENGTHS = 600 };

static struct slot {
    struct rank_request req;
    char *buf;
    bool used;
} slots[SLOTS];

static const uint8_t *at, *end;

static unsigned next(void)
{
    return at < end ? *at++ : 0;
}

static unsigned number(unsigned below)
{
    unsigned n = next();

    return (n | next() << 8) % below;
}

/* ------------------------------------------------------------ a channel that takes all */

static rank_status_t take_frame(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    unsigned sum = 0;

    (void)peer;
    for (uint32_t i = 0; i < hdr->len; i++)
        sum += ((const unsigned char *)payload)[i];
    __asm__ __volatile__("" : : "r"(sum));
    return next() % 8 ? RANK_OK : RK_AGAIN;
}

static rank_status_t take_two(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first, size_t first_len,
                              const void *second)
{
    (void)first;
    (void)second;
    (void)first_len;
    return take_frame(peer, &(struct rk_hdr){.kind = hdr->kind}, NULL);
}

static rank_status_t announce_large(struct rk_peer *peer, const struct rk_hdr *hdr, const struct rk_view *view,
                                    struct rank_request *req)
{
    (void)peer;
    (void)hdr;
    (void)view;
    rk_req_complete(req, RANK_OK);
    return RANK_OK;
}

/* All of it comes at once. */
static void fetch(const struct rk_rndv *rndv, const struct rk_view *view, struct rank_request *req)
{
    uint64_t n = rndv->total < view->bytes ? rndv->total : view->bytes;

    if (view->ops)
        abort();
    memset(view->base, 7, n);
    rk_req_complete(req, RANK_OK);
}

static void drop(const struct rk_rndv *rndv)
{
    (void)rndv;
}

static void disconnect(void *state, struct rk_peer *peer)
{
    (void)state;
    peer->ep = NULL;
}

static size_t frame_max(const struct rk_peer *peer)
{
    (void)peer;
    return LENGTHS;
}

static const struct rk_channel channel = {.name = "fuzz", .send = take_frame, .send2 = take_two, .rndv_send = announce_large,
                                          .rndv_recv = fetch, .rndv_drop = drop, .disconnect = disconnect,
                                          .frame_max = frame_max};

/* ------------------------------------------------------------------------- steps */

static uint64_t some_tag(void)
{
    unsigned n = next();

    return n < 128 ? n % 3 : n < 160 ? UINT64_MAX - n % 3 : (uint64_t)n << 40;
}

/* As frame_arrived and rk_ucx_announced. */
static void frame(struct rk_ctx *ctx)
{
    static const uint8_t kinds[] = {RK_KIND_MSG, RK_KIND_MSG, RK_KIND_SMSG, RK_KIND_RNDV, RK_KIND_MATCHED, RK_KIND_CREDIT};
    struct rk_peer *peer = ctx->engine->peers[1 + next() % (RANKS - 1)];
    struct rk_hdr hdr = {.kind = kinds[next() % sizeof(kinds)]};
    struct rk_rndv rndv = {.peer = peer};
    unsigned src = next();
    unsigned char *payload;

    hdr.src = src < 192 ? (uint32_t)peer->number : src < 224 ? src % RANKS : UINT32_MAX - src % 3;
    hdr.team = next() % 4 ? TEAM : LATE;
    if (next() % 8 == 0)
        hdr.team |= RK_TEAM_COLL;
    hdr.tag = some_tag();
    hdr.len = number(LENGTHS);
    if (hdr.kind == RK_KIND_MATCHED && next() % 2)
        hdr.len = sizeof(struct rk_id);
    if (peer->state != RK_PEER_UP)
        return;
    if (hdr.kind == RK_KIND_RNDV) {
        rndv.total = (uint64_t)hdr.len << (next() % 8 == 0 ? 50 : 6);
        hdr.flags = next() % 2 ? RK_FLAG_SYNC : 0;
        hdr.len = 0;
        if (rk_validate_header(ctx, peer, &hdr))
            ctx->engine->handler[RK_KIND_RNDV](ctx, peer, &hdr, NULL, &rndv);
        return;
    }
    payload = malloc(hdr.len + !hdr.len);
    if (!payload)
        return;
    for (uint32_t i = 0; i < hdr.len; i++)
        payload[i] = i < 16 ? (unsigned char)next() : 9;
    if (hdr.kind > RK_KIND_SMSG || rk_validate_header(ctx, peer, &hdr))
        ctx->engine->handler[hdr.kind](ctx, peer, &hdr, payload, NULL);
    free(payload);
}

static void see_envelope(int64_t source, int64_t tag, uint64_t got, uint64_t room)
{
    if (source < 1 || source >= RANKS || tag < 0 || got > room)
        abort();
}

static void end_if_done(struct slot *s)
{
    if (!s->used || !s->req.done)
        return;
    if (s->req.type == RK_REQ_RECV && (s->req.status == RANK_OK || s->req.status == RANK_ERR_TRUNCATED))
        see_envelope((int64_t)s->req.env_src, (int64_t)s->req.env_tag, s->req.got, s->req.view.bytes);
    free(s->buf);
    s->used = false;
}

static struct slot *free_slot(size_t bytes)
{
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].used)
            continue;
        slots[i].buf = malloc(bytes + !bytes);
        if (!slots[i].buf)
            return NULL;
        memset(slots[i].buf, 1, bytes);
        slots[i].used = true;
        rk_req_init(&slots[i].req, NULL, NULL);
        return &slots[i];
    }
    return NULL;
}

static int some_source(void)
{
    unsigned n = next() % 6;

    return n >= RANKS ? RANK_ANY_SOURCE : n == ME ? 1 : (int)n;
}

static void local(struct rank_team *team, unsigned what)
{
    struct rk_ctx *ctx = team->ctx;
    size_t bytes = number(LENGTHS);
    struct slot *s = &slots[next() % SLOTS];
    uint64_t tag = next() % 4 ? next() % 3 : RK_TAG_ANY;
    struct rk_unexpected *u;
    rank_envelope_t e;
    int source = some_source();

    switch (what) {
    case 0:
        if ((s = free_slot(bytes)) != NULL)
            rk_p2p_irecv(team, s->buf, bytes, source, tag, 0, &s->req);
        break;
    case 1:
        if (source > 0 && tag != RK_TAG_ANY && (s = free_slot(bytes)) != NULL) {
            s->req.flags = next() % 2 ? RK_REQ_SYNC : 0;
            rk_p2p_isend(team, s->buf, bytes, source, tag, 0, &s->req);
        }
        break;
    case 2:
        if (s->used && !s->req.done && !rk_p2p_cancel_recv(&s->req, RANK_ERR_CANCELED))
            rk_p2p_cancel_send(&s->req, RANK_ERR_CANCELED);
        break;
    case 3:
        if (rk_p2p_probe(team, source, tag, &e))
            see_envelope(e.source, e.tag, 0, 0);
        break;
    case 4:
        u = rk_p2p_take(team, source, tag);
        if (u && next() % 4 && (s = free_slot(bytes)) != NULL)
            rk_p2p_mrecv(u, rk_view_of(s->buf, bytes), &s->req);
        break; /* else it is freed at the end */
    default:
        rk_sendq_progress(ctx);
        break;
    }
}

/* What counts against the bound on what a peer has here is what is here. */
static void check_kept(const struct rk_ctx *ctx)
{
    const struct rk_link *lists[] = {&ctx->p2p->match.arrived, &ctx->p2p->probed}, *l;
    int64_t sum[RANKS] = {0};

    for (size_t i = 0; i < RK_ARRAY_LEN(lists); i++) {
        rk_list_for_each(l, lists[i])
        {
            const struct rk_unexpected *u = rk_list_entry(l, struct rk_unexpected, order);
            if (!u->credited && u->kind != RK_KIND_EARLY)
                sum[u->peer->number] += u->kind == RK_KIND_RNDV ? RK_UNEXPECTED_ENVELOPE : (int64_t)u->bytes + RK_UNEXPECTED_COST;
        }
    }
    for (int i = 0; i < RANKS; i++) {
        if (ctx->engine->peers[i]->kept != sum[i])
            abort();
    }
}

static struct rank_team *make_or_free(struct rk_ctx *ctx, struct rank_team *late)
{
    if (!late)
        return rk_team_create(ctx, LATE, ME, RANKS, NULL, &late) ? NULL : late;
    if (next() % 4)
        return late;
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].used && (slots[i].req.team & ~RK_TEAM_COLL) == LATE)
            return late; /* no program frees a team with requests under way */
    }
    rk_team_discard(late);
    rk_team_destroy(late);
    return NULL;
}

static void play(struct rk_ctx *ctx, struct rank_team *team)
{
    struct rank_team *late = NULL;

    while (at < end) {
        unsigned what = next() % 16;

        if (what < 8)
            frame(ctx);
        else if (what < 14)
            local(late && next() % 2 ? late : team, what - 8);
        else if (what == 14)
            late = make_or_free(ctx, late);
        else if (what == 15 && next() % 8 == 0)
            rk_peer_died(ctx->engine->peers[1 + next() % (RANKS - 1)]);
        for (int i = 0; i < SLOTS; i++)
            end_if_done(&slots[i]);
    }
    check_kept(ctx);
}

/* All that is under way ends with its peer. */
static void end_all(struct rk_ctx *ctx)
{
    for (int i = 1; i < RANKS; i++)
        rk_peer_died(ctx->engine->peers[i]);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].used && !slots[i].req.done && !rk_p2p_cancel_recv(&slots[i].req, RANK_ERR_CANCELED))
            abort();
        end_if_done(&slots[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    static struct rk_peer peer[RANKS];
    struct rk_peer *peers[RANKS];
    struct rk_boot boot = {.rank = ME, .size = RANKS};
    struct rk_engine e = {.job = 1, .npeers = RANKS, .peers = peers};
    struct rk_ctx ctx = {.boot = &boot, .engine = &e};
    struct rank_team *team;

    at = input;
    end = input + len;
    rk_conf.eager_window = 2000;
    rk_conf.unexpected_max = 4000;
    rk_conf.rndv_unexpected_max = 1 << 20;
    pthread_mutex_init(&e.deaths_lock, NULL);
    rk_sendq_open(&e);
    rk_list_init(&e.calls);
    rk_list_init(&e.leavings);
    e.open[0].ops = &channel;
    e.nopen = 1;
    for (int i = 0; i < RANKS; i++) {
        peer[i] = (struct rk_peer){.ctx = &ctx, .channel = &channel, .id = {1, (uint32_t)i}, .number = i, .local = -1,
                                   .state = RK_PEER_UP, .eager_limit = 300};
        rk_sendq_init(&peer[i].sendq);
        peers[i] = &peer[i];
    }
    if (rk_requests_open(&ctx) != RANK_OK || rk_room_open(&ctx, &rk_room_p2p) != RANK_OK ||
        rk_team_create(&ctx, TEAM, ME, RANKS, NULL, &team) != RANK_OK)
        abort();
    play(&ctx, team);
    end_all(&ctx);
    ctx.p2p->bad_frames = 0; /* they are meant to be */
    rk_room_p2p.close(&ctx);
    rk_requests_close(&ctx);
    rk_slab_close(&e.controls);
    pthread_mutex_destroy(&e.deaths_lock);
    return 0;
}
