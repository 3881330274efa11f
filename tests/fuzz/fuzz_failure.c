/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_failure.c: handle reports of failed collectives, from any peer.
 *
 * Each 26 bytes are a peer, a length and a frame. A team may end only by a report of a member, whenever it came; what
 * the handler refuses changes nothing.
 */
#include "collectives/state.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

enum { TEAMS = 3, PEERS = 8, RECORD = 26 };

static int members[TEAMS][4] = {{0, 1, 2, 3}, {3, 1, 5, 7}, {6, 2, 4, 0}}; /* the last team is created late */

static bool is_named(const struct rank_team *team, const struct rk_failure_frame *f, int peer)
{
    return f->team == team->id && f->src < (uint32_t)team->size && team->world_ranks[f->src] == peer;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    static struct rk_engine engine;
    struct rk_p2p *p2p = calloc(1, sizeof(*p2p));
    struct rk_coll *coll = calloc(1, sizeof(*coll));
    struct rk_ctx ctx = {.engine = &engine, .p2p = p2p, .coll = coll};
    struct rank_team team[TEAMS];
    bool named[TEAMS] = {false};
    size_t records = len / RECORD;

    rk_scheds_init(&coll->scheds, &ctx);
    for (int t = 0; t < TEAMS; t++) {
        team[t] = (struct rank_team){.ctx = &ctx, .id = (uint64_t)t + 1, .size = 4, .world_ranks = members[t]};
        if (t < TEAMS - 1 && rk_team_table_add(&p2p->by_id, &team[t]))
            abort();
    }
    for (size_t i = 0; i < records; i++) {
        const uint8_t *at = input + i * RECORD;
        struct rk_peer peer = {.ctx = &ctx, .number = at[0] % PEERS};
        struct rk_hdr hdr = {.kind = RK_KIND_COLL_FAILED, .len = at[1] % 8 ? sizeof(struct rk_failure_frame) : at[1] % 24};
        struct rk_failure_frame f;
        void *payload = malloc(hdr.len + 1);

        memcpy(payload, at + 2, hdr.len < RECORD - 2 ? hdr.len : RECORD - 2);
        if (rk_failure_decode(payload, hdr.len, &f)) {
            for (int t = 0; t < TEAMS; t++)
                named[t] |= is_named(&team[t], &f, peer.number);
        }
        rk_failure_arrived(&ctx, &peer, &hdr, payload, NULL);
        free(payload);
    }
    if (rk_team_table_add(&p2p->by_id, &team[TEAMS - 1]))
        abort();
    rk_failure_recall(&team[TEAMS - 1]);
    for (int t = 0; t < TEAMS; t++) {
        bool may_be_lost = t == TEAMS - 1 && records > RK_FAILURE_EARLY;
        if (team[t].coll_failed ? !named[t] : named[t] && !may_be_lost)
            abort();
        rk_team_table_remove(&p2p->by_id, &team[t]);
    }
    free(coll);
    free(p2p);
    return 0;
}
