/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_bad_packets.c: refuse and count random and changed packets.
 * Rank 1 sends them to rank 0 by UCX's own calls, past the channel: first impossible ones, of
 * random bytes and of true ones with some changed, each of which is refused and counted; then possible ones, with any frames and any
 * order. Rank 2's frames come meanwhile, all and in order. AddressSanitizer, if used, checks that nothing is read or written
 * out of bounds.
 */
#include "lib/channel/ucx/decode.h"
#include "lib/channel/ucx/ucx.h"
#include "tests/ucx/ucx_fixture.h"

enum { REFUSED = 3000, ANY = 2000, HONEST = 400, BODY_MAX = 300, HEAD_ROOM = RK_UCX_HEAD_MAX + 16 };
static const uint64_t last_tag = 1ull << 40;
static uint64_t seed;

static struct {
    int honest; /* of rank 2, in order */
    bool broken, last;
} came;

static uint64_t below(uint64_t n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % n;
}

static void on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                     const struct rk_rndv *rndv)
{
    uint64_t value;

    (void)ctx;
    if (peer->id.rank == 1) {
        came.last = came.last || hdr->tag == last_tag;
        return; /* whatever it is */
    }
    if (hdr->len == sizeof(value))
        memcpy(&value, payload, sizeof(value));
    came.broken = came.broken || rndv || hdr->len != sizeof(value) || hdr->tag != (uint64_t)came.honest || value != hdr->tag;
    came.honest++;
}

static bool all_came(void *arg)
{
    int *honest = arg;

    return came.honest >= *honest && (came.last || *honest > HONEST);
}

static void be_honest(struct rig *r, uint64_t from)
{
    for (uint64_t i = from; i < from + HONEST; i++) {
        struct rk_hdr hdr = {.kind = RK_KIND_MSG, .src = 2, .team = 1, .tag = i, .len = sizeof(i)};
        RIG_CHECK(rig_send(r, 0, &hdr, &i) == RANK_OK);
        if (i % 16 == 0)
            rk_progress(r->ctx);
    }
}

/* ---------------------------------------------------------------------- rank 1 */

struct packet {
    unsigned char head[HEAD_ROOM], body[BODY_MAX];
    size_t head_len, len;
};

static void random_bytes(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(below(3) ? below(256) : below(4));
}

static void change_some(unsigned char *p, size_t n)
{
    for (uint64_t k = below(4); n && k > 0; k--)
        p[below(n)] = (unsigned char)(below(2) ? below(256) : below(64));
}

/* Two frames, as the channel might have put them, from us and no other. */
static void make_true(const struct rk_ucx_link *l, struct packet *p)
{
    struct rk_ucx_head head = {.to = l->theirs, .first = {.kind = RK_KIND_MSG, .src = 1, .team = 1, .turn = l->turn, .len = 24}};
    const struct rk_procid me = {l->ucx->job, l->ucx->me};
    struct rk_ucx_hello hello = {.magic = RK_UCX_MAGIC, .rank = me.rank, .job = me.job, .from = l->id};
    struct rk_hdr second = {.kind = RK_KIND_MSG, .src = 1, .team = 1, .len = 16};

    memcpy(p->head, &head, sizeof(head));
    memcpy(p->head + sizeof(head), &hello, sizeof(hello));
    p->head_len = RK_UCX_HEAD_MAX;
    random_bytes(p->body, sizeof(p->body));
    memcpy(p->body + head.first.len, &second, sizeof(second));
    p->len = head.first.len + sizeof(second) + second.len;
}

static void make_wrong(const struct rk_ucx_link *l, struct packet *p)
{
    if (below(3) == 0) {
        p->head_len = below(HEAD_ROOM + 1);
        p->len = below(BODY_MAX + 1);
        random_bytes(p->head, p->head_len);
        random_bytes(p->body, p->len);
        return;
    }
    make_true(l, p);
    change_some(p->head, p->head_len);
    change_some(p->body, p->len);
    if (below(3) == 0)
        p->head_len = below(p->head_len + 1);
    if (below(3) == 0)
        p->len = below(BODY_MAX + 1);
}

/* The name and the rank stay ours: in the name of another it would be that one's link that breaks. */
static void make_any(const struct rk_ucx_link *l, struct packet *p)
{
    const size_t hdr = offsetof(struct rk_ucx_head, first);

    make_true(l, p);
    change_some(p->head + hdr, sizeof(struct rk_hdr));
    change_some(p->body, p->len);
    if (below(2)) /* as the next one, which it would be if all before had been taken */
        memcpy(p->head + hdr, &l->turn, sizeof(l->turn));
}

/* False: rank 0 does not listen any more. */
static bool throw(struct rig *r, struct rk_ucx_link *l, const struct packet *p)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_EAGER};
    ucs_status_ptr_t sent;

    if (!l->ep || l->failed || l->dropped)
        return false;
    sent = ucp_am_send_nbx(l->ep, RK_UCX_AM, p->head, p->head_len, p->body, p->len, &param);
    while (UCS_PTR_IS_PTR(sent) && ucp_request_check_status(sent) == UCS_INPROGRESS)
        rk_progress(r->ctx);
    if (UCS_PTR_IS_PTR(sent))
        ucp_request_free(sent);
    return !UCS_PTR_IS_ERR(sent);
}

static uint64_t throw_wrong(struct rig *r, struct rk_ucx_link *l)
{
    uint64_t n = 0;

    while (n < REFUSED) {
        struct rk_ucx_packet out;
        struct packet p;

        make_wrong(l, &p);
        if (rk_ucx_decode(p.head, p.head_len, p.body, p.len, false, &out))
            continue; /* it might be true */
        RIG_CHECK(throw(r, l, &p));
        n++;
    }
    return n;
}

/* Until its own link is given up for them, or so many. */
static void throw_any(struct rig *r, struct rk_ucx_link *l)
{
    for (int i = 0; i < ANY; i++) {
        struct packet p;

        make_any(l, &p);
        l->turn += (uint32_t)below(2);
        if (!throw(r, l, &p))
            return;
    }
}

void noise_body(struct rig *r)
{
    struct rk_hdr last = {.kind = RK_KIND_MSG, .src = 1, .team = 1, .tag = last_tag};
    struct rk_ucx *ucx = r->state;
    uint64_t bad = ucx->bad_frames;
    int honest = HONEST;

    seed = 815;
    memset(&came, 0, sizeof(came));
    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    if (r->me == 1)
        RIG_CHECK(rig_send(r, 0, &(struct rk_hdr){.kind = RK_KIND_MSG, .src = 1, .team = 1}, NULL) == RANK_OK);
    rig_meet(r, r->n);
    if (r->me == 1) {
        atomic_store(&r->shared->word[3], throw_wrong(r, rig_peer(r, 0)->ep));
        RIG_CHECK(rig_send(r, 0, &last, NULL) == RANK_OK);
    } else if (r->me == 2) {
        be_honest(r, 0);
    } else {
        rig_wait(r, all_came, &honest);
    }
    rig_meet(r, r->n);
    if (r->me == 0 && ucx->bad_frames - bad != atomic_load(&r->shared->word[3]))
        fprintf(stderr, "# %llu of %llu packets were counted\n", (unsigned long long)(ucx->bad_frames - bad),
                (unsigned long long)atomic_load(&r->shared->word[3]));
    RIG_CHECK(r->me != 0 || ucx->bad_frames - bad == atomic_load(&r->shared->word[3]));
    rig_meet(r, r->n);
    if (r->me == 1) {
        throw_any(r, rig_peer(r, 0)->ep);
    } else if (r->me == 2) {
        be_honest(r, HONEST);
    } else {
        honest = 2 * HONEST;
        rig_wait(r, all_came, &honest);
    }
    rig_meet(r, r->n);
    for (int i = 0; i < 1000; i++) /* what is still on its way */
        rk_progress(r->ctx);
    RIG_CHECK(!came.broken);
    RIG_CHECK(r->me != 0 || (came.honest == 2 * HONEST && rig_peer(r, 2)->state == RK_PEER_UP));
    rig_meet(r, r->n);
}
