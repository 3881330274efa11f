/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_rights.c: compare rights, lists of keys and their end with a model.
 *
 * --seed N, --rounds N.
 */
#include "tests/conn/conn_pair.h"
#include "tests/conn/rights_model.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 1265, OPENED_LATER = 6 /* descriptors: of sleeps, and the list of own mappings */ };
static int nrounds = 12;

static void model_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, p->seed % 2 == 0);
    rank_conn_opts_t opts = pair_opts();
    rank_conn_info_t info = {.size = sizeof(info)};
    rank_team_t conn = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    int fds = mp_count_fds();

    rights_run(ctx, conn, 1 - rank_team_rank(conn), p->seed, nrounds);
    rights_many(ctx, conn, 1 - rank_team_rank(conn), MANY);
    OK(rank_conn_info(conn, &info));
    CHECK(pair_by_ucx || (info.messages_sent > 0 && info.messages_received > 0));
    CHECK(info.transfers > 0 && info.blocks >= info.transfers && info.refused >= 0);
    CHECK(!pair_by_socket || (info.sent_ago_ns >= 0 && info.sent_ago_ns < 60 * SECOND && info.received_ago_ns >= 0));
    CHECK(mp_count_fds() <= fds + OPENED_LATER);
    OK(rank_barrier(conn)); /* the end of the connection ends the counts */
    OK(rank_disconnect(&conn, 20 * SECOND));
    OK(rank_ctx_close(&ctx, SECOND));
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)mp_option(argc, argv, "--seed", 1);
    bool ok = true;

    nrounds = (int)mp_option(argc, argv, "--rounds", nrounds);
    for (int i = 0; i < 2 * PAIR_WAYS; i++) {
        if (pair_use(i % PAIR_WAYS))
            ok &= pair_run("rights", model_side, seed + (uint64_t)(i / PAIR_WAYS), 120, false);
    }
    return ok ? 0 : 1;
}
