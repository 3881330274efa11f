/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_death.h: kill one rank at an agreed moment; the others check their status.
 *
 * Options of every program that uses it:
 *   --in NAME       the scene
 *   --victim N      the rank that dies (default: the last)
 *   --within S      seconds in which all get it: 1, between hosts more
 *   --seed N        decides the moment
 */
#ifndef TESTS_FAULTS_ONE_DEATH_H
#define TESTS_FAULTS_ONE_DEATH_H

#include "tests/mp/mp.h"

struct one_death {
    int victim;
    double when;        /* of CLOCK_MONOTONIC, which is one on a host */
    double within;      /* seconds */
    rank_team_t living; /* all but the victim, made before the death */
};

/* The value of --in, or dflt. Call it before mp_start. */
const char *one_death_scene(int argc, char **argv, const char *dflt);
/* Takes the options and makes the team of the living. Collective; call it after mp_start. */
void one_death_init(struct one_death *d, const struct mp *mp, int argc, char **argv);
/*
 * Rank 0 draws a moment between min_s and min_s + spread_us from now and sends it to all; the victim sets its timer.
 * Collective. d has to stay where it is.
 */
void one_death_arm(struct one_death *d, const struct mp *mp, double min_s, uint64_t spread_us);
/* Fails unless st is RANK_ERR_PEER_DEAD, after the death and in time. */
void one_death_check(const char *file, int line, const struct one_death *d, const char *what, rank_status_t st);
/* Fails if the death is twice the time ago: what still succeeds. */
void one_death_overdue(const char *file, int line, const struct one_death *d, const char *what);
/* Frees the team of the living and finalizes, in time. */
void one_death_end(struct one_death *d, struct mp *mp);

#define ONE_DEATH_ENDED(d, call) one_death_check(__FILE__, __LINE__, d, #call, (call))

#endif
