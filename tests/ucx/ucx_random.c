/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_random.c: send frames and long messages between all ranks at once.
 * Of all sizes. Each must be handed up once, whole, and in the order in which it was sent.
 */
#include "tests/ucx/ucx_fixture.h"

enum { COUNT = 1500, LONGEST = 300 * 1000, LATER_MAX = 400, MANY = 150 };

/* The data is a function of sender, receiver and number: both ends can compute it. */
static uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t h = a * 0x9e3779b1u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;

    h ^= h >> 15;
    h *= 0x2c1b3ce5u;
    h ^= h >> 12;
    return h;
}

enum how { HOW_SEND, HOW_SEND2, HOW_RNDV, HOW_RNDV_VIEW };

struct plan {
    enum how how;
    size_t bytes;
    enum { ALL, CUT, NOTHING, DROP, VIEW } fate;
    bool later;
};

static struct plan plan_of(int from, int to, uint32_t i)
{
    uint32_t h = mix((uint32_t)from + 1, (uint32_t)to + 100, i);
    struct plan p = {.how = HOW_SEND};

    if (h % 16 == 0)
        p.how = h & 256 ? HOW_RNDV : HOW_RNDV_VIEW;
    else if (h % 16 < 4)
        p.how = HOW_SEND2;
    p.bytes = (h >> 8) % 64;
    if (h % 5 == 0)
        p.bytes = (h >> 8) % 16385;
    if (p.how >= HOW_RNDV && h % 3)
        p.bytes = (h >> 4) % LONGEST;
    if (i == COUNT / 2) { /* no rendezvous of nothing in UCP */
        p.how = HOW_RNDV;
        p.bytes = 0;
    }
    p.fate = (h >> 20) % 5;
    p.later = h & 1 << 19;
    if (i > COUNT / 2 && i <= COUNT / 2 + MANY) { /* more than UCP may announce */
        p.how = h & 256 ? HOW_RNDV : HOW_RNDV_VIEW;
        p.bytes = 17000 + h % 9000;
        p.later = true;
    }
    return p;
}

static unsigned char byte_of(int from, uint32_t i, size_t at)
{
    return (unsigned char)(mix((uint32_t)from, i, (uint32_t)(at >> 3)) >> (at & 7));
}

static bool bytes_fit(int from, uint32_t i, const unsigned char *b, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (b[k] != byte_of(from, i, k)) {
            fprintf(stderr, "# message %u of rank %d: byte %zu of %zu\n", i, from, k, n);
            return false;
        }
    }
    return true;
}

/* A view that stands for a type: every byte is kept with its bits turned. */
static rank_status_t pack_turned(const struct rk_view *view, size_t offset, void *to, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        ((unsigned char *)to)[k] = (unsigned char)~((const unsigned char *)view->base)[offset + k];
    return RANK_OK;
}

static rank_status_t unpack_turned(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        ((unsigned char *)view->base)[offset + k] = (unsigned char)~((const unsigned char *)from)[k];
    return RANK_OK;
}

static const struct rk_view_ops turned = {.pack = pack_turned, .unpack = unpack_turned};

/* ----------------------------------------------------------------------- receiving */

struct fetched {
    struct rank_request req;
    struct rk_rndv rndv;
    unsigned char *buf;
    size_t room;
    int from;
    uint32_t i;
    struct plan plan;
};

static struct {
    struct rig *r;
    uint32_t next[RIG_RANKS_MAX];
    int left; /* messages and transfers still to come */
    struct fetched *later[LATER_MAX];
    int nlater;
} in;

static void fetched(struct rank_request *req, void *arg)
{
    struct fetched *f = arg;
    struct rig *r = in.r;

    RIG_CHECK(req->status == RANK_OK);
    if (f->plan.fate == VIEW)
        unpack_turned(&(struct rk_view){.base = f->buf}, 0, f->buf, f->room);
    RIG_CHECK(bytes_fit(f->from, f->i, f->buf, f->room));
    RIG_CHECK(f->buf[f->room] == 0x5a); /* nothing behind it was touched */
    free(f->buf);
    free(f);
    in.left--;
}

static void fetch(struct fetched *f)
{
    struct rk_view view = {.bytes = f->plan.bytes};
    struct rig *r = in.r;

    if (f->plan.fate == DROP) {
        f->rndv.peer->channel->rndv_drop(&f->rndv);
        free(f);
        in.left--;
        return;
    }
    if (f->plan.fate == CUT)
        view.bytes = view.bytes * 2 / 3;
    else if (f->plan.fate == NOTHING)
        view.bytes = 0;
    f->room = view.bytes;
    f->buf = malloc(f->room + 1);
    RIG_CHECK(f->buf);
    f->buf[f->room] = 0x5a;
    view.base = f->buf;
    view.ops = f->plan.fate == VIEW ? &turned : NULL;
    f->req = (struct rank_request){.type = RK_REQ_RECV, .ctx = r->ctx, .peer = f->rndv.peer,
                                   .on_done = fetched, .arg = f};
    f->rndv.peer->channel->rndv_recv(&f->rndv, &view, &f->req);
}

static void on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                     const void *payload, const struct rk_rndv *rndv)
{
    struct rig *r = in.r;
    int from = (int)peer->id.rank;
    uint32_t i = in.next[from]++;
    struct plan plan = plan_of(from, r->me, i);
    struct fetched *f;

    (void)ctx;
    RIG_CHECK(hdr->tag == i);
    RIG_CHECK(hdr->team == 7 && hdr->src == (uint32_t)from);
    RIG_CHECK((rndv != NULL) == (plan.how >= HOW_RNDV));
    in.left--;
    if (!rndv) {
        RIG_CHECK(hdr->len == plan.bytes && bytes_fit(from, i, payload, hdr->len));
        return;
    }
    RIG_CHECK(rndv->total == plan.bytes && rndv->peer == peer);
    f = calloc(1, sizeof(*f));
    RIG_CHECK(f);
    f->rndv = *rndv;
    f->from = from;
    f->i = i;
    f->plan = plan;
    in.left++;
    if (plan.later && in.nlater < LATER_MAX)
        in.later[in.nlater++] = f;
    else
        fetch(f);
}

/* --------------------------------------------------------------------------- sending */

struct sent {
    struct rank_request req;
    unsigned char *buf;
};

static int unsent;

static void sent(struct rank_request *req, void *arg)
{
    struct sent *s = arg;
    struct rig *r = in.r;

    RIG_CHECK(req->status == RANK_OK);
    free(s->buf);
    free(s);
    unsent--;
}

static void send_one(struct rig *r, int to, uint32_t i)
{
    struct plan plan = plan_of(r->me, to, i);
    struct rk_peer *peer = rig_peer(r, to);
    struct rk_hdr hdr = {.kind = RK_KIND_MSG, .src = (uint32_t)r->me, .team = 7, .tag = i,
                         .len = (uint32_t)plan.bytes};
    unsigned char *buf = malloc(plan.bytes + 1);
    struct rk_view view = {buf, plan.bytes, NULL};
    struct sent *s;
    rank_status_t st;

    RIG_CHECK(buf);
    for (size_t k = 0; k < plan.bytes; k++)
        buf[k] = byte_of(r->me, i, k);
    if (plan.how == HOW_SEND) {
        RIG_CHECK(rig_send(r, to, &hdr, buf) == RANK_OK);
        free(buf);
        return;
    }
    if (plan.how == HOW_SEND2) {
        size_t cut = plan.bytes / 3;
        while ((st = peer->channel->send2(peer, &hdr, buf, cut, buf + cut)) == RK_AGAIN)
            rk_progress(r->ctx);
        RIG_CHECK(st == RANK_OK);
        free(buf);
        return;
    }
    if (plan.how == HOW_RNDV_VIEW) {
        unpack_turned(&(struct rk_view){.base = buf}, 0, buf, plan.bytes);
        view.ops = &turned;
    }
    s = calloc(1, sizeof(*s));
    RIG_CHECK(s);
    s->buf = buf;
    s->req = (struct rank_request){.type = RK_REQ_SEND, .ctx = r->ctx, .peer = peer,
                                   .on_done = sent, .arg = s};
    unsent++;
    hdr.kind = RK_KIND_RNDV;
    hdr.len = 0;
    while ((st = peer->channel->rndv_send(peer, &hdr, &view, &s->req)) == RK_AGAIN)
        rk_progress(r->ctx);
    RIG_CHECK(st == RANK_OK);
}

static bool over(void *arg)
{
    (void)arg;
    while (in.nlater > 0)
        fetch(in.later[--in.nlater]);
    return in.left == 0 && unsent == 0;
}

void storm_body(struct rig *r)
{
    memset(&in, 0, sizeof(in));
    in.r = r;
    in.left = COUNT * (r->n - 1);
    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    r->ctx->engine->handler[RK_KIND_RNDV] = on_frame;
    for (uint32_t i = 0; i < COUNT; i++) {
        for (int to = 0; to < r->n; to++) {
            if (to != r->me)
                send_one(r, to, i);
        }
        if (i % 7 == 0)
            rk_progress(r->ctx);
        if (in.nlater > LATER_MAX - 50)
            fetch(in.later[--in.nlater]);
    }
    rig_wait(r, over, NULL);
    for (int from = 0; from < r->n; from++)
        RIG_CHECK(from == r->me || in.next[from] == COUNT);
}
