/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nspaces.h: whose ranks have which numbers, for news of deaths in other jobs.
 *
 * PMIx names a process by namespace and rank; the rooms above know it by a number
 * (lib/core/procs.h). PMIx's thread asks here. What it hears of a namespace that nobody has
 * named yet is kept for a while: a spawned rank may die before its namespace is known here.
 */
#ifndef RK_BOOT_NSPACES_H
#define RK_BOOT_NSPACES_H

#include "lib/boot/boot.h"

struct rk_spaces;

enum { RK_SPACE_ALL = -1 }; /* as a rank: the whole job has ended */

struct rk_spaces *rk_spaces_new(void);
void rk_spaces_free(struct rk_spaces *spaces);

/* The ranks of a namespace are the numbers from first on. Says again what was heard of it; naming
 * it twice is fine. */
rank_status_t rk_spaces_name(struct rk_spaces *spaces, const char *space, int first, int size,
                             rk_boot_death_fn fn, void *arg);
/* These numbers are somebody else's from now on. */
void rk_spaces_forget(struct rk_spaces *spaces, int first);
/* Whose number is it? False: of no namespace that was named. */
bool rk_spaces_find(struct rk_spaces *spaces, int number, char name[RK_SPACE_MAX], int *rank);
/* A rank of it, or all, has ended: fn is called for each number. Any thread. */
void rk_spaces_ended(struct rk_spaces *spaces, const char *space, int rank, rk_boot_death_fn fn,
                     void *arg);

#endif
