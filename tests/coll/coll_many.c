/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_many.c: run a thousand collectives at once, make teams ten thousand times.
 *
 * All ranks start the calls of one team in one order. Each rank has an order of its own between teams, and for its waits.
 * Teams that come and go leave no memory behind, in the process or in the segment that the ranks share.
 *   --calls N, --teams N, --seed N
 */
#include "tests/coll/any_coll.h"

#include <stdlib.h>

/* A sanitizer keeps freed memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GROWTH_KB = 300 << 10 };
#else
enum { GROWTH_KB = 1024 };
#endif
enum { TEAMS = 4, CALLS = 1000, MADE = 10000 };

/* Short blocks, and a long one now and then. */
static int64_t draw_count(uint64_t *seed)
{
    return (int64_t)mp_below(seed, mp_below(seed, 50) ? 40 : 3000);
}

/* Calls of all kinds that do not block, equal on all ranks of the team. */
static void open_calls(struct any_coll *c, int n, rank_team_t team, uint64_t seed)
{
    for (int i = 0; i < n; i++) {
        enum any_kind kind = (enum any_kind)mp_below(&seed, ANY_KINDS);
        int64_t count = draw_count(&seed);

        any_coll_open(&c[i], team, kind, count, RANK_UINT64, RANK_SUM, &seed);
        if (c[i].form == ANY_BLOCKING)
            c[i].form = ANY_NONBLOCKING;
    }
}

/* Wait for all in an order of this rank. */
static void finish_calls(struct any_coll *c, int n, uint64_t *own)
{
    int *order = mp_alloc((size_t)n * sizeof(*order));

    for (int i = 0; i < n; i++) {
        int k = (int)mp_below(own, (uint64_t)i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < n; i++) {
        MP_OK(any_coll_finish(&c[order[i]]));
        any_coll_check(&c[order[i]]);
        any_coll_close(&c[order[i]]);
    }
    free(order);
}

static void on_one_team(const struct mp *mp, int n, uint64_t *own)
{
    struct any_coll *c = mp_alloc((size_t)n * sizeof(*c));

    open_calls(c, n, mp->world, mp->seed);
    for (int i = 0; i < n; i++)
        MP_OK(any_coll_start(&c[i]));
    finish_calls(c, n, own);
    free(c);
}

static void on_several_teams(const struct mp *mp, int n, uint64_t *own)
{
    struct any_coll *c = mp_alloc((size_t)n * sizeof(*c));
    int each = n / TEAMS, begun[TEAMS] = {0}, left = each * TEAMS;
    rank_team_t team[TEAMS] = {mp->world};

    MP_OK(rank_team_split(mp->world, 0, -mp->rank, &team[1]));
    MP_OK(rank_team_split(mp->world, mp->rank % 2, 0, &team[2]));
    MP_OK(rank_team_split(mp->world, mp->rank < mp->size / 2, -mp->rank, &team[3]));
    for (int k = 0; k < TEAMS; k++)
        open_calls(c + k * each, each, team[k], mp->seed + (uint64_t)k);
    while (left > 0) { /* of a team that has calls left: between teams the order is this rank's */
        int k = (int)mp_below(own, TEAMS);

        if (begun[k] == each)
            continue;
        MP_OK(any_coll_start(&c[k * each + begun[k]]));
        begun[k]++;
        left--;
    }
    finish_calls(c, each * TEAMS, own);
    for (int k = 1; k < TEAMS; k++)
        MP_OK(rank_team_free(&team[k]));
    free(c);
}

/* A team that is used, and freed at times before its last call is done. */
static void use_team(const struct mp *mp, int i, uint64_t *common)
{
    int64_t one = 1, sum = 0, large[2048] = {0}, sums[2048];
    rank_request_t req = RANK_REQUEST_NULL;
    rank_team_t team;

    if (i % 2)
        MP_OK(rank_team_split(mp->world, (mp->rank + i) % 3, (int)mp_below(common, 10) * mp->rank, &team));
    else
        MP_OK(rank_team_dup(mp->world, &team));
    MP_OK(rank_allreduce(&one, &sum, 1, RANK_INT64, RANK_SUM, team));
    MP_CHECK_EQ(sum, rank_team_size(team));
    if (i % 8 == 0)
        MP_OK(rank_iallreduce(large, sums, 2048, RANK_INT64, RANK_SUM, team, &req));
    MP_OK(rank_team_free(&team));
    if (req != RANK_REQUEST_NULL)
        MP_OK(rank_wait(&req, NULL));
}

static void make_teams(const struct mp *mp, int64_t n)
{
    uint64_t common = mp->seed;
    int64_t before = 0, after;

    for (int64_t i = 0; i < n; i++) {
        if (i == n / 5)
            before = mp_status_kb("VmRSS");
        use_team(mp, (int)i, &common);
    }
    after = mp_status_kb("VmRSS");
    if (after > before + GROWTH_KB)
        mp_fail(__FILE__, __LINE__, "%lld teams: %lld kB at a fifth of them, %lld kB at the end", (long long)n,
                (long long)before, (long long)after);
}

int main(int argc, char **argv)
{
    int64_t calls, teams;
    uint64_t own;
    struct mp mp;

    mp_start(&mp, &argc, argv);
    calls = mp_option(argc, argv, "--calls", mp_rounds(CALLS));
    teams = mp_option(argc, argv, "--teams", mp_rounds(MADE));
    own = mp.seed + (uint64_t)mp.rank * 7919;
    mp_case(&mp, "many on one team");
    on_one_team(&mp, (int)calls, &own);
    mp_case(&mp, "many on several teams");
    on_several_teams(&mp, (int)calls, &own);
    mp_case(&mp, "teams");
    make_teams(&mp, teams);
    mp_end(&mp);
    return 0;
}
