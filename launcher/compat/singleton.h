/*
 * singleton.h: did a program of several ranks turn out to be as many jobs of one?
 *
 * An MPI program whose library finds no launcher that it understands does not
 * fail: each of its processes takes itself for rank 0 of 1. So whether nobody
 * of a program has joined the job by PMIx or PMI-1 is looked at when all its ranks on the
 * host have ended well (the first may be done before the others have come so far),
 * and once after some seconds; and whether the program uses MPI is looked up
 * then, and now and then before. xrun knows of the ranks of other hosts, and of other programs.
 */
#ifndef XR_LAUNCHER_COMPAT_SINGLETON_H
#define XR_LAUNCHER_COMPAT_SINGLETON_H

#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct xr_singletons;

/* A program as this host has it. */
struct xr_singletons_app {
    const char *program; /* its path, which stays */
    uint32_t local;      /* its ranks here; 0: it is somebody else's matter */
    pid_t pid;           /* of the first of them */
};

/* say: it is program number app whose ranks here have not joined although it uses that; once each, if at all. over: all of them
 * have ended. */
rank_status_t xr_singletons_watch(struct event_base *base, const struct xr_singletons_app *apps, uint32_t napps,
                                  void (*say)(void *arg, uint32_t app, bool over, const char *uses), void *arg,
                                  struct xr_singletons **out);
void xr_singletons_destroy(struct xr_singletons *singletons);

/* What follows may be NULL. */
/* A rank of the program is a client. */
void xr_singletons_joined(struct xr_singletons *singletons, uint32_t app);
/* A rank of it has ended; well: with code 0. */
void xr_singletons_ended(struct xr_singletons *singletons, uint32_t app, bool well);

#endif
