/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nspaces.h: map namespaces and ranks of other jobs to numbers, for death reports.
 *
 * PMIx names a process by namespace and rank, the rooms above by number (lib/core/procs.h). The map is used on the
 * PMIx thread. Reports about an unregistered namespace are kept for a while: a spawned rank may die before its
 * namespace is registered.
 */
#ifndef RK_BOOT_NSPACES_H
#define RK_BOOT_NSPACES_H

#include "lib/boot/boot.h"

struct rk_nspaces;

enum { RK_NSPACE_ALL = -1 }; /* as a rank: all ranks of the job have ended */

struct rk_nspaces *rk_nspaces_new(void);
void rk_nspaces_free(struct rk_nspaces *spaces);

/* Register a namespace: its ranks have the numbers from first on. Delivers kept reports about it. Idempotent. */
rank_status_t rk_nspaces_register(struct rk_nspaces *spaces, const char *space, int first, int size,
                                  rk_boot_death_fn fn, void *arg);
/* Unregister these numbers. */
void rk_nspaces_unregister(struct rk_nspaces *spaces, int first);
/* Process of a number. Returns false if it is in no registered namespace. */
bool rk_nspaces_find(struct rk_nspaces *spaces, int number, char name[RK_NSPACE_MAX], int *rank);
/* A rank, or all, has ended: calls fn for each number. Any thread. */
void rk_nspaces_ended(struct rk_nspaces *spaces, const char *space, int rank, rk_boot_death_fn fn,
                      void *arg);

#endif
