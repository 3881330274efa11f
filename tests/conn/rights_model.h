/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rights_model.h: compare calls on memories with rights with a model.
 *
 * Two processes register memories of all sorts, exchange lists of keys, call on them, and end registrations.
 */
#ifndef TESTS_CONN_RIGHTS_MODEL_H
#define TESTS_CONN_RIGHTS_MODEL_H

#include "lib/rank.h"

/* Both ranks of team call this with the other's rank. A failed check prints its place and ends the process. */
void rights_run(rank_ctx_t ctx, rank_team_t team, int other, uint64_t seed, int rounds);
/* The same for many small memories in one list. */
void rights_many(rank_ctx_t ctx, rank_team_t team, int other, int n);

#endif
