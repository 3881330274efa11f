/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_failure.c: handle reports of failed collectives and calls of any peer.
 *
 * Each RECORD bytes are a peer and a kind, a length and a frame. A team may end only by a report of a member, whenever it
 * came, or by another call of a member; what the handlers refuse changes nothing.
 */
#include "collectives/call_query.h"
#include "collectives/state.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

enum { TEAMS = 3, PEERS = 8, RECORD = 2 + sizeof(struct rk_call_frame), CALL = 0x80 };

static int members[TEAMS][4] = {{0, 1, 2, 3}, {3, 1, 5, 7}, {6, 2, 4, 0}}; /* the last team is created late */

static bool is_named(const struct rank_team *team, uint64_t id, uint32_t src, int peer)
{
    return id == team->id && src < (uint32_t)team->size && team->world_ranks[src] == peer;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    static struct rk_engine engine;
    struct rk_p2p *p2p = calloc(1, sizeof(*p2p));
    struct rk_coll *coll = calloc(1, sizeof(*coll));
    struct rk_ctx ctx = {.engine = &engine, .p2p = p2p, .coll = coll};
    struct rank_team team[TEAMS];
    struct rk_coll_team coll_team[TEAMS] = {{.history = 0}};
    bool named[TEAMS] = {false}, called[TEAMS] = {false};
    size_t records = len / RECORD;

    rk_scheds_init(&coll->scheds, &ctx);
    for (int t = 0; t < TEAMS; t++) {
        team[t] = (struct rank_team){.ctx = &ctx, .id = (uint64_t)t + 1, .size = 4, .world_ranks = members[t],
                                     .coll = &coll_team[t], .coll_seq = 1};
        coll_team[t].notes[1] = (struct rk_call_note){1, 0, {.count = 1, .form = RK_FORM_BLOCKING}};
        if (t < TEAMS - 1 && rk_team_table_add(&p2p->by_id, &team[t]))
            abort();
    }
    for (size_t i = 0; i < records; i++) {
        const uint8_t *at = input + i * RECORD;
        struct rk_peer peer = {.ctx = &ctx, .number = at[0] % PEERS};
        bool call = at[0] & CALL;
        uint32_t whole = call ? sizeof(struct rk_call_frame) : sizeof(struct rk_failure_frame);
        struct rk_hdr hdr = {.kind = call ? RK_KIND_COLL_CALL : RK_KIND_COLL_FAILED, .len = at[1] % 8 ? whole : at[1] % 24};
        struct rk_failure_frame f;
        struct rk_call_frame q;
        void *payload = malloc(hdr.len + 1);

        memcpy(payload, at + 2, hdr.len < RECORD - 2 ? hdr.len : RECORD - 2);
        if (!call && rk_failure_decode(payload, hdr.len, &f)) {
            for (int t = 0; t < TEAMS; t++)
                named[t] |= is_named(&team[t], f.team, f.src, peer.number);
        }
        if (call && rk_call_decode(payload, hdr.len, &q)) {
            for (int t = 0; t < TEAMS; t++)
                called[t] |= q.number == 1 && is_named(&team[t], q.team, q.src, peer.number);
        }
        (call ? rk_call_arrived : rk_failure_arrived)(&ctx, &peer, &hdr, payload, NULL);
        free(payload);
    }
    if (rk_team_table_add(&p2p->by_id, &team[TEAMS - 1]))
        abort();
    rk_failure_recall(&team[TEAMS - 1]);
    for (int t = 0; t < TEAMS; t++) {
        bool may_be_lost = t == TEAMS - 1 && records > RK_FAILURE_EARLY;
        if (team[t].coll_failed ? !named[t] && !called[t] : named[t] && !may_be_lost)
            abort();
        rk_team_table_remove(&p2p->by_id, &team[t]);
    }
    free(coll);
    free(p2p);
    return 0;
}
