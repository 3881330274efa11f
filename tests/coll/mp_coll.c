/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mp_coll.c: collectives between ranks, against results computed serially.
 *
 *   --full        everything; without it a few seconds' worth
 *   --only NAME   one part: reductions movers barriers mixed teams bits arguments counts user_ops
 *   --bits        print a hash of the bits of all sums, to be compared between runs
 *   --seed N      repeat the random parts of a run
 *
 * RANK_COLL and RANK_COLL_SHM choose what is tested; see the file cases.
 */
#include "tests/coll/mp_coll.h"

#include <string.h>

bool coll_toss(struct coll_test *t)
{
    return mp_below(&t->seed, 2);
}

void coll_on(struct coll_test *t, rank_team_t team, void (*part)(struct coll_test *))
{
    struct coll_test inner = *t;

    inner.team = team;
    inner.rank = rank_team_rank(team);
    inner.size = rank_team_size(team);
    inner.full = false;
    part(&inner);
    t->checks = inner.checks; /* ranks of different teams may have drawn differently */
}

static void bits(struct coll_test *t)
{
    coll_bits(t, true);
}

static const struct {
    const char *name;
    void (*run)(struct coll_test *);
} parts[] = {
    {"arguments", coll_arguments}, {"counts", coll_counts}, {"barriers", coll_barriers}, {"reductions", coll_reductions},
    {"movers", coll_movers},       {"mixed", coll_mixed},       {"teams", coll_teams},
    {"bits", bits},                {"user_ops", coll_user_ops},
};

int main(int argc, char **argv)
{
    struct mp mp;
    struct coll_test t;
    const char *only = NULL;
    int passed = 0;

    mp_start(&mp, &argc, argv);
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
    }
    t = (struct coll_test){.mp = &mp, .team = mp.world, .rank = mp.rank, .size = mp.size,
                           .full = mp_flag(argc, argv, "--full"), .seed = mp.seed};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        double start = mp_now();
        if (only && strcmp(only, parts[i].name) != 0)
            continue;
        mp_case(&mp, parts[i].name);
        parts[i].run(&t);
        mp_barrier(mp.world);
        passed++;
        if (mp.rank == 0)
            printf("ok %d - %s (%.0f ms)\n", passed, parts[i].name, (mp_now() - start) * 1e3);
    }
    if (mp.rank == 0)
        printf("%d passed, 0 failed (%ld calls checked)\n", passed, t.checks);
    MP_CHECK(passed > 0);
    mp_end(&mp);
    return 0;
}
