/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_bad_p2p.c: drop and count messages with wrong senders, tags and lengths.
 * Rank 1 sends them to rank 0 under other ranks' numbers, or of ranks that do not exist. Tags and lengths cannot be. They are for a
 * team that rank 0 has, and for one that it makes later. A
 * wildcard receive sees none of them; rank 2's messages come meanwhile, all and in order.
 * And a sender without end is given up.
 */
#include "lib/channel/ucx/decode.h"
#include "lib/p2p/p2p_internal.h"
#include "tests/ucx/ucx_fixture.h"

#include <stdlib.h>

enum { TEAM = 77, LATE = 78, HONEST = 300, ROUNDS = 40 };
static const uint64_t last_tag = 1ull << 40;

static void answered(struct rank_request *req, void *arg)
{
    (void)req;
    free(arg);
}

/* Announce a message of some bytes to rank 0. */
static rank_status_t announce(struct rig *r, const struct rk_hdr *hdr)
{
    static char some[64];
    struct rk_peer *peer = rig_peer(r, 0);
    struct rk_view view = {some, sizeof(some), NULL};
    struct rank_request *req = calloc(1, sizeof(*req));
    rank_status_t st;

    RIG_CHECK(req);
    *req = (struct rank_request){.type = RK_REQ_SEND, .ctx = r->ctx, .peer = peer, .on_done = answered, .arg = req};
    while ((st = peer->channel->rndv_send(peer, hdr, &view, req)) == RK_AGAIN)
        rk_progress(r->ctx);
    if (st)
        free(req);
    return st;
}

/* Each is refused. Returns how many. */
static uint64_t throw_claims(struct rig *r, uint64_t team, uint8_t kind)
{
    static const struct {
        uint32_t src;
        uint64_t tag;
    } lies[] = {{0, 7}, {2, 7}, {3, 7}, {12345, 7}, {INT32_MAX, 7}, {UINT32_MAX - 1, 7}, {UINT32_MAX, 7}, {1u << 31, 7}, {2, UINT64_MAX - 5}};
    unsigned char some[64] = {1};
    bool announces = kind == RK_KIND_RNDV;

    for (size_t i = 0; i < RK_ARRAY_LEN(lies); i++) {
        struct rk_hdr hdr = {.kind = kind, .src = lies[i].src, .tag = lies[i].tag, .team = team,
                             .len = announces ? 0 : 8 + (uint32_t)i};
        RIG_CHECK((announces ? announce(r, &hdr) : rig_send(r, 0, &hdr, some)) == RANK_OK);
    }
    return RK_ARRAY_LEN(lies);
}

static uint64_t attack(struct rig *r)
{
    struct rk_hdr tag = {.kind = RK_KIND_MSG, .src = 1, .team = TEAM, .tag = UINT64_MAX - 5, .len = 8},
                  cut = {.kind = RK_KIND_SMSG, .src = 1, .team = TEAM, .tag = 7, .len = 3},
                  matched = {.kind = RK_KIND_MATCHED, .len = 1},
                  credit = {.kind = RK_KIND_CREDIT, .tag = UINT64_MAX};
    unsigned char some[64] = {1};
    uint64_t n = 0;

    for (int i = 0; i < ROUNDS; i++) {
        n += throw_claims(r, TEAM, RK_KIND_MSG);
        n += throw_claims(r, TEAM, RK_KIND_SMSG);
        n += throw_claims(r, TEAM, RK_KIND_RNDV);
        n += throw_claims(r, TEAM | RK_TEAM_COLL, RK_KIND_MSG);
        n += throw_claims(r, LATE, RK_KIND_MSG);
        RIG_CHECK(rig_send(r, 0, &tag, some) == RANK_OK);
        RIG_CHECK(rig_send(r, 0, &cut, some) == RANK_OK);
        RIG_CHECK(rig_send(r, 0, &matched, some) == RANK_OK);
        RIG_CHECK(rig_send(r, 0, &credit, NULL) == RANK_OK);
        n += 4;
        rk_progress(r->ctx);
    }
    return n;
}

static void last(struct rig *r, uint64_t team)
{
    struct rk_hdr hdr = {.kind = RK_KIND_MSG, .src = (uint32_t)r->me, .team = team, .tag = last_tag};

    RIG_CHECK(rig_send(r, 0, &hdr, NULL) == RANK_OK);
}

static void be_honest(struct rig *r, struct rank_team *team)
{
    for (uint64_t i = 0; i < HONEST; i++)
        RIG_CHECK(rk_p2p_send(team, &i, sizeof(i), 0, i) == RANK_OK);
    last(r, TEAM);
    last(r, LATE);
}

/* What any rank sends on the team, until both have sent their last. */
static void be_victim(struct rig *r, struct rank_team *team, uint64_t honest)
{
    uint64_t value, next = 0;
    int ended = 0;

    while (ended < 2) {
        rank_envelope_t e;
        RIG_CHECK(rk_p2p_recv_view(team, &(struct rk_view){&value, sizeof(value), NULL}, RANK_ANY_SOURCE, RK_TAG_ANY, 1, &e) == RANK_OK);
        RIG_CHECK(e.source == 1 || e.source == 2);
        if (e.tag == (int64_t)last_tag) {
            ended++;
            continue;
        }
        RIG_CHECK(e.source == 2 && e.tag == (int64_t)next && value == next && e.bytes == 8);
        next++;
    }
    RIG_CHECK(next == honest);
}

void hostile_p2p_body(struct rig *r)
{
    static struct rk_board_slot slot;
    struct rk_board board = {.mine = &slot};
    struct rank_team *team, *late;

    r->ctx->board = &board; /* which the launcher reads */
    RIG_CHECK(rk_room_open(r->ctx, &rk_room_p2p) == RANK_OK);
    RIG_CHECK(rk_team_create(r->ctx, TEAM, r->me, r->n, NULL, &team) == RANK_OK);
    rig_meet(r, r->n);
    if (r->me == 1) {
        atomic_store(&r->shared->word[2], attack(r));
        last(r, TEAM);
        last(r, LATE);
    } else if (r->me == 2) {
        be_honest(r, team);
    } else {
        be_victim(r, team, HONEST);
    }
    rig_meet(r, r->n);
    for (int i = 0; i < 1000; i++) /* what is still on its way */
        rk_progress(r->ctx);
    rig_meet(r, r->n);
    if (r->me == 0) {
        RIG_CHECK(rk_team_create(r->ctx, LATE, r->me, r->n, NULL, &late) == RANK_OK);
        be_victim(r, late, 0);
        RIG_CHECK(r->ctx->p2p->match.nwaiting == 0);
        if (r->ctx->p2p->bad_frames != atomic_load(&r->shared->word[2]))
            fprintf(stderr, "# %llu of %llu frames were counted\n", (unsigned long long)r->ctx->p2p->bad_frames,
                    (unsigned long long)atomic_load(&r->shared->word[2]));
        RIG_CHECK(r->ctx->p2p->bad_frames == atomic_load(&r->shared->word[2]));
        RIG_CHECK(atomic_load(&slot.refused) >= r->ctx->p2p->bad_frames);
    }
    RIG_CHECK(r->me != 2 || r->ctx->p2p->bad_frames == 0);
    rig_meet(r, r->n);
    r->ctx->p2p->bad_frames = 0; /* that were meant to be */
    rk_room_p2p.close(r->ctx);
    r->ctx->board = NULL;
}

/* ------------------------------------------------------------------ without end */

enum { UNKNOWN = 79, SOME = 1000, BYTES_MAX = 512 * 1024, ENVELOPES_MAX = BYTES_MAX / RK_UNEXPECTED_ENVELOPE, TIMES = 4 };

/* For a team that rank 0 does not have, without a check for room, until it does not read any more; or so many, for that
 * may not be seen here. */
static void send_without_end(struct rig *r)
{
    unsigned char some[SOME] = {1};
    bool announces = r->me == 3;
    struct rk_hdr hdr = {.kind = announces ? RK_KIND_RNDV : RK_KIND_MSG, .src = (uint32_t)r->me, .team = UNKNOWN,
                         .len = announces ? 0 : SOME};
    int n = TIMES * (announces ? ENVELOPES_MAX : BYTES_MAX / SOME);
    rank_status_t st = RANK_OK;

    for (int i = 0; i < n && st == RANK_OK; i++) {
        hdr.tag = (uint64_t)i;
        st = rig_peer(r, 0)->state != RK_PEER_UP ? RANK_ERR_PEER_DEAD : announces ? announce(r, &hdr) : rig_send(r, 0, &hdr, some);
        rk_progress(r->ctx);
    }
    RIG_CHECK(st == RANK_OK || st == RANK_ERR_PEER_DEAD);
}

static bool both_dead(void *rig)
{
    struct rig *r = rig;

    return r->ctx->engine->peers[1] && r->ctx->engine->peers[1]->state == RK_PEER_DEAD && r->ctx->engine->peers[3] &&
           r->ctx->engine->peers[3]->state == RK_PEER_DEAD;
}

/* Two of three senders do not keep to their window: they are given up, the third is served. */
void hostile_much_body(struct rig *r)
{
    struct rank_team *team, *unknown;
    struct rk_p2p *p2p;
    uint64_t value;

    if (r->me == 0)
        rk_conf.unexpected_max = 0;
    RIG_CHECK(rk_room_open(r->ctx, &rk_room_p2p) == RANK_OK);
    p2p = r->ctx->p2p;
    RIG_CHECK(p2p->kept_max > (200 << 20)); /* far from what others do */
    p2p->kept_max = BYTES_MAX;
    RIG_CHECK(rk_team_create(r->ctx, TEAM, r->me, r->n, NULL, &team) == RANK_OK);
    rig_meet(r, r->n);
    if (r->me == 1 || r->me == 3)
        send_without_end(r);
    else if (r->me == 2)
        for (uint64_t i = 0; i < HONEST; i++)
            RIG_CHECK(rk_p2p_send(team, &i, sizeof(i), 0, i) == RANK_OK);
    else
        rig_wait(r, both_dead, r);
    for (uint64_t i = 0; r->me == 0 && i < HONEST; i++)
        RIG_CHECK(rk_p2p_recv_view(team, &(struct rk_view){&value, sizeof(value), NULL}, 2, i, 1, NULL) == RANK_OK && value == i);
    rig_meet(r, r->n);
    if (r->me == 0) {
        struct rk_peer **peers = r->ctx->engine->peers;
        RIG_CHECK(peers[2]->state != RK_PEER_DEAD && peers[2]->kept == 0);
        for (int i = 1; i < 4; i += 2)
            RIG_CHECK(peers[i]->kept > BYTES_MAX && peers[i]->kept <= BYTES_MAX + SOME + RK_UNEXPECTED_COST);
        RIG_CHECK(p2p->bad_frames >= 2);
        /* What it has taken of them before is a message as others. */
        RIG_CHECK(rk_team_create(r->ctx, UNKNOWN, r->me, r->n, NULL, &unknown) == RANK_OK);
        RIG_CHECK(rk_p2p_probe(unknown, 1, 0, NULL) && rk_p2p_probe(unknown, 3, 0, NULL));
        rk_team_discard(unknown);
        rk_team_destroy(unknown);
        RIG_CHECK(p2p->match.nwaiting == 0 && peers[1]->kept == 0 && peers[3]->kept == 0);
        p2p->bad_frames = 0; /* that were meant to be */
    }
    rig_meet(r, r->n);
    rk_room_p2p.close(r->ctx);
}
