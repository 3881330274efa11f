/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nameserver_internal.h: what is published and who waits for it share; see nameserver.h.
 *
 * A name is found by its key, how far it can be seen, and from where: a job, a
 * host or a process, so that there is at most one of each. Who waits is found by
 * the keys, and what somebody has published or waits for by that process.
 */
#ifndef XR_LAUNCHER_DPM_NAMESERVER_INTERNAL_H
#define XR_LAUNCHER_DPM_NAMESERVER_INTERNAL_H

#include "launcher/dpm/nameserver.h"
#include "launcher/util/hash.h"
#include "lib/base/list.h"

/* A process that has published something or waits. */
struct xr_names_owner {
    struct xr_table_item item;
    uint32_t job, rank;
    struct rk_link names, waiters;
};

struct xr_name {
    struct xr_table_item item;
    struct rk_link link, of_owner; /* in the order of publishing */
    struct xr_names_owner *owner;
    uint32_t app, range, keep;
    const char *key, *id, *host; /* the texts and the value are behind this */
    const void *value;
    size_t len, bytes; /* of the value; of all */
    char texts[];
};

/* A key that somebody waits for. */
struct xr_wanted {
    struct xr_table_item item;
    struct rk_link wishes; /* who came first is first */
    char key[];
};

struct xr_wish {
    struct rk_link link;
    struct xr_wanted *wanted;
    struct xr_waiter *waiter;
};

struct xr_waiter {
    struct rk_link link, of_owner, ready;
    struct xr_names *names;
    struct xr_names_owner *owner;
    struct xr_names_who who;
    uint32_t range, want, nkeys;
    uint32_t found; /* of the keys, or less: names go, and the same key may come twice */
    char **keys;
    struct xr_wish *wishes; /* [nkeys] */
    struct xr_asker asker;
    struct event *timer;
};

struct xr_names {
    struct event_base *base;
    xr_names_answer_fn answer;
    void *arg;
    struct xr_table names, wanted, owners;
    struct rk_link all, waiting, ready;
    size_t bytes;
    uint32_t nwaiters, nkeys;
};

/* nameserver.c */
/* NULL: it has nothing. */
struct xr_names_owner *xr_names_owner_of(struct xr_names *n, uint32_t job, uint32_t rank);
/* NULL: no memory. */
struct xr_names_owner *xr_names_make_owner(struct xr_names *n, const struct xr_names_who *who);
/* If there is nothing of it any more. */
void xr_names_drop_idle(struct xr_names *n, struct xr_names_owner *owner);
void xr_names_drop(struct xr_names *n, struct xr_name *name);
bool xr_names_within(uint32_t range, const struct xr_name *name, const struct xr_names_who *who);
/* What somebody sees who looks that far; NULL: nothing. */
struct xr_name *xr_names_find(struct xr_names *n, const char *key, uint32_t range, const struct xr_names_who *who);

/* nameserver_wait.c */
void xr_names_refuse(struct xr_names *n, enum xr_errand_status status, const struct xr_asker *asker);
/* A name is new: note who may have waited for it; they are served when all new ones have been announced. */
void xr_names_announce(struct xr_names *n, const struct xr_name *name);
void xr_names_serve(struct xr_names *n);
void xr_names_drop_waiter(struct xr_waiter *waiter);
/* The same, and its owner may have nothing any more. */
void xr_names_remove_waiter(struct xr_waiter *waiter);

#endif
