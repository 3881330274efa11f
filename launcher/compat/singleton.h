/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * singleton.h: detect a program that runs as singletons.
 *
 * An MPI program without a launcher that its library supports does not fail: each
 * process runs as rank 0 of 1. The check is whether any rank of a program joined
 * the job by PMIx or PMI-1. It runs when all its ranks on the host have ended
 * normally, and once after some seconds. Whether the program uses MPI is probed
 * then, and a few times before. xrun combines the reports of hosts and programs.
 */
#ifndef XR_LAUNCHER_COMPAT_SINGLETON_H
#define XR_LAUNCHER_COMPAT_SINGLETON_H

#include "lib/rank.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct xr_singletons;

/* A program and its ranks on this host. */
struct xr_singletons_app {
    const char *program; /* its path; borrowed */
    uint32_t local;      /* its ranks here; 0: it is not checked here */
    pid_t pid;           /* of the first of them */
};

/*
 * report is called at most once for a program: its ranks on this host have not joined although it uses that library.
 * app: its number. over: all of them have ended.
 */
rank_status_t xr_singletons_watch(struct event_base *base, const struct xr_singletons_app *apps, uint32_t napps,
                                  void (*report)(void *arg, uint32_t app, bool over, const char *uses), void *arg,
                                  struct xr_singletons **out);
void xr_singletons_destroy(struct xr_singletons *singletons);

/* The functions below accept NULL. */
/* A rank of the program is a client. */
void xr_singletons_joined(struct xr_singletons *singletons, uint32_t app);
/* A rank of it has ended; well: with code 0. */
void xr_singletons_ended(struct xr_singletons *singletons, uint32_t app, bool well);

#endif
