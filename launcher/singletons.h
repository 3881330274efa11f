/*
 * singletons.h: did a job of several ranks turn out to be as many jobs of one?
 *
 * An MPI program whose library finds no launcher that it understands does not
 * fail: each of its processes takes itself for rank 0 of 1. So whether nobody
 * has joined the job by PMIx or PMI-1 is looked at when all ranks of the host
 * have ended well (the first may be done before the others have come so far),
 * and once after some seconds; and whether the program uses MPI is looked up
 * then, and now and then before. xrun knows of the ranks of other hosts.
 */
#ifndef RK_LAUNCHER_SINGLETONS_H
#define RK_LAUNCHER_SINGLETONS_H

#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rk_singletons;

/* size: ranks of the job; local: of this host. program: of the process pid, a rank. say: one line for
 * the user, once if at all; over: all ranks of this host have ended. *out is NULL where there is
 * nothing to watch. */
rank_status_t rk_singletons_watch(struct event_base *base, uint32_t size, uint32_t local,
                                  const char *program, pid_t pid,
                                  void (*say)(void *arg, bool over, const char *text), void *arg,
                                  struct rk_singletons **out);
void rk_singletons_destroy(struct rk_singletons *singletons);

/* What follows may be NULL. */
/* A rank is a client. */
void rk_singletons_joined(struct rk_singletons *singletons);
/* A rank has ended; well: with code 0. */
void rk_singletons_ended(struct rk_singletons *singletons, bool well);

#endif
