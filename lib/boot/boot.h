/*
 * boot.h: who we are and what we tell each other before channels exist.
 *
 * A thin boundary round PMIx: nothing outside this folder includes pmix.h.
 * Works under any PMIx server, and alone. Blocking PMIx calls are made only
 * before channels exist.
 */
#ifndef RK_BOOT_BOOT_H
#define RK_BOOT_BOOT_H

#include "lib/rank.h"

#include <stdbool.h>

#define RK_CARD_MAX 4096

struct rk_boot {
    int rank, size;
    int nlocal;      /* ranks that the launcher says are on this host */
    int *local;      /* their world ranks, ascending */
    int local_index; /* mine among them */
    bool alone;      /* no PMIx server */
    char job[128];   /* the namespace */
    char host[64];
};

/* Called on PMIx's own thread when a process of the job is reported dead (rank, or -1 if not
 * known which). May only set flags and wake. */
typedef void (*rk_boot_death_fn)(int rank, void *arg);

rank_status_t rk_boot_open(struct rk_boot **out);
/* NULL and half-open are fine. */
void rk_boot_close(struct rk_boot *boot);

rank_status_t rk_boot_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg);

/* Store a card under key, for all (before the commit). */
rank_status_t rk_boot_put(struct rk_boot *boot, const char *key, const void *data, size_t len);
rank_status_t rk_boot_commit(struct rk_boot *boot);
/* Fetch a card; waits until that rank has committed. *len: capacity in, size out.
 * RANK_ERR_UNREACHABLE: that rank has none. */
rank_status_t rk_boot_get(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len);

/* A fence over the world, for before channels exist. RANK_ERR_PEER_DEAD: somebody died in it. */
rank_status_t rk_boot_fence(struct rk_boot *boot);

/* End the job through the server; returns if there is none or it did not act. */
void rk_boot_abort(struct rk_boot *boot, int code, const char *text);

#endif
