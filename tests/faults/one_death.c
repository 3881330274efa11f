/* SPDX-License-Identifier: BSD-3-Clause */
/* one_death.c: see one_death.h. */
#include "tests/faults/one_death.h"

#include <string.h>

/* A death is reported within a second; slow builds get more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WITHIN_S = 4 };
#else
enum { WITHIN_S = 1 };
#endif

const char *one_death_scene(int argc, char **argv, const char *dflt)
{
    const char *name = dflt;

    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--in") == 0)
            name = argv[i + 1];
    }
    return name;
}

void one_death_init(struct one_death *d, const struct mp *mp, int argc, char **argv)
{
    d->within = (double)mp_option(argc, argv, "--within", WITHIN_S);
    d->victim = (int)mp_option(argc, argv, "--victim", mp->size - 1);
    MP_OK(rank_team_split(mp->world, mp->rank == d->victim ? RANK_UNDEFINED : 0, 0, &d->living));
}

void one_death_arm(struct one_death *d, const struct mp *mp, double min_s, uint64_t spread_us)
{
    uint64_t seed = mp->seed;

    if (mp->rank == 0) {
        d->when = mp_now() + min_s + (double)mp_below(&seed, spread_us) * 1e-6;
        for (int r = 1; r < mp->size; r++)
            MP_OK(rank_send(&d->when, 1, RANK_F64, r, 1, mp->world));
    } else {
        MP_OK(rank_recv(&d->when, 1, RANK_F64, 0, 1, mp->world, NULL));
    }
    if (mp->rank == d->victim)
        mp_die_at(&d->when);
}

void one_death_check(const char *file, int line, const struct one_death *d, const char *what, rank_status_t st)
{
    double late = mp_now() - d->when;

    if (st != RANK_ERR_PEER_DEAD)
        mp_fail(file, line, "%s gave %d (%s), not RANK_ERR_PEER_DEAD", what, (int)st, rank_status_string(st));
    if (late < 0)
        mp_fail(file, line, "%s: a death %.3f s before it happened", what, -late);
    if (late > d->within)
        mp_fail(file, line, "%s: reported after %.3f s", what, late);
}

void one_death_overdue(const char *file, int line, const struct one_death *d, const char *what)
{
    if (mp_now() > d->when + 2 * d->within)
        mp_fail(file, line, "%s still succeeds %g s after the death", what, 2 * d->within);
}

void one_death_end(struct one_death *d, struct mp *mp)
{
    double t0;

    MP_OK(rank_team_free(&d->living));
    t0 = mp_now();
    mp_end_survivor(mp);
    if (mp_now() - t0 > 2 * d->within)
        mp_fail(__FILE__, __LINE__, "rank_finalize took %.3f s", mp_now() - t0);
}
