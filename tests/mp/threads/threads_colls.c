/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_colls.c: run collectives on teams of several threads at the same time.
 *
 * Each thread has a team of all ranks and one of a half. It makes random calls of all kinds and forms there, several
 * under way at once, checks the results, and makes its teams anew now and then.
 *   --threads N, --rounds N, --seed N
 */
#include "tests/coll/any_coll.h"
#include "tests/mp/threads/worker_threads.h"

enum { AT_ONCE = 3 };

struct shared {
    rank_team_t team[WORKERS_MAX]; /* a thread's */
    rank_op_t add;
};

static void add(const void *in, void *inout, int64_t count, rank_dtype_t dtype, void *arg)
{
    (void)dtype, (void)arg;
    for (int64_t i = 0; i < count; i++)
        ((uint64_t *)inout)[i] += ((const uint64_t *)in)[i];
}

/* The same on all ranks, but for its length: short ones often. */
static int64_t draw_count(uint64_t *seed)
{
    return (int64_t)mp_below(seed, UINT64_C(1) << mp_below(seed, 14));
}

static void make_calls(struct shared *x, rank_team_t team, uint64_t *common)
{
    struct any_coll c[AT_ONCE];
    int n = 1 + (int)mp_below(common, AT_ONCE);

    for (int i = 0; i < n; i++) {
        enum any_kind kind = (enum any_kind)mp_below(common, ANY_KINDS);
        rank_op_t op = mp_below(common, 4) ? RANK_SUM : x->add;
        int64_t count = draw_count(common);

        any_coll_open(&c[i], team, kind, count, RANK_UINT64, op, common);
    }
    for (int i = 0; i < n; i++)
        MP_OK(any_coll_start(&c[i]));
    for (int i = n; i-- > 0;) {
        MP_OK(any_coll_finish(&c[i]));
        any_coll_check(&c[i]);
        any_coll_close(&c[i]);
    }
}

static void work(struct hand *me)
{
    struct shared *x = me->arg;
    uint64_t common = me->mp->seed * 31 + (uint64_t)me->t;
    rank_team_t all = x->team[me->t], half;

    MP_OK(rank_team_split(all, me->mp->rank % 2, 0, &half));
    for (int i = 0; i < me->workers->rounds; i++) {
        uint64_t what = mp_below(&common, 20);

        if (what == 0) {
            rank_team_t anew;

            MP_OK(rank_team_free(&half));
            MP_OK(rank_team_dup(all, &anew));
            MP_OK(rank_team_free(&all));
            all = anew;
            MP_OK(rank_team_split(all, me->mp->rank % 2, 0, &half));
        }
        make_calls(x, what % 4 == 1 ? half : all, &common);
    }
    MP_OK(rank_team_free(&half));
    x->team[me->t] = all;
}

int main(int argc, char **argv)
{
    struct workers workers;
    struct shared x;
    struct mp mp;

    workers_start(&workers, &mp, &argc, argv);
    MP_OK(rank_op_create(add, NULL, RANK_OP_COMMUTATIVE, &x.add));
    for (int t = 0; t < workers.threads; t++)
        MP_OK(rank_team_dup(mp.world, &x.team[t]));
    mp_case(&mp, "collectives of all kinds");
    workers_run(&workers, work, &x);
    for (int t = 0; t < workers.threads; t++)
        MP_OK(rank_team_free(&x.team[t]));
    MP_OK(rank_op_free(&x.add));
    mp_end(&mp);
    return 0;
}
