/*
 * nameserver_internal.h: what is published and who waits for it share; see names.h.
 *
 * A name is found by its key, how far it can be seen, and from where: a job, a
 * host or a process, so that there is at most one of each. Who waits is found by
 * the keys, and what somebody has published or waits for by that process.
 */
#ifndef RK_LAUNCHER_DPM_NAMESERVER_INTERNAL_H
#define RK_LAUNCHER_DPM_NAMESERVER_INTERNAL_H

#include "launcher/dpm/nameserver.h"
#include "launcher/util/hash.h"
#include "lib/base/list.h"

/* A process that has published something or waits. */
struct rk_names_owner {
    struct rk_table_item item;
    uint32_t job, rank;
    struct rk_link names, waiters;
};

struct rk_name {
    struct rk_table_item item;
    struct rk_link link, of_owner; /* in the order of publishing */
    struct rk_names_owner *owner;
    uint32_t app, range, keep;
    const char *key, *id, *host; /* the texts and the value are behind this */
    const void *value;
    size_t len, bytes; /* of the value; of all */
    char texts[];
};

/* A key that somebody waits for. */
struct rk_wanted {
    struct rk_table_item item;
    struct rk_link wishes; /* who came first is first */
    char key[];
};

struct rk_wish {
    struct rk_link link;
    struct rk_wanted *wanted;
    struct rk_waiter *waiter;
};

struct rk_waiter {
    struct rk_link link, of_owner, ready;
    struct rk_names *names;
    struct rk_names_owner *owner;
    struct rk_names_who who;
    uint32_t range, want, nkeys;
    uint32_t found; /* of the keys, or less: names go, and the same key may come twice */
    char **keys;
    struct rk_wish *wishes; /* [nkeys] */
    struct rk_asker asker;
    struct event *timer;
};

struct rk_names {
    struct event_base *base;
    rk_names_answer_fn answer;
    void *arg;
    struct rk_table names, wanted, owners;
    struct rk_link all, waiting, ready;
    size_t bytes;
    uint32_t nwaiters, nkeys;
};

/* nameserver.c */
/* NULL: it has nothing. */
struct rk_names_owner *rk_names_owner_of(struct rk_names *n, uint32_t job, uint32_t rank);
/* NULL: no memory. */
struct rk_names_owner *rk_names_make_owner(struct rk_names *n, const struct rk_names_who *who);
/* If there is nothing of it any more. */
void rk_names_drop_idle(struct rk_names *n, struct rk_names_owner *owner);
void rk_names_drop(struct rk_names *n, struct rk_name *name);
bool rk_names_within(uint32_t range, const struct rk_name *name, const struct rk_names_who *who);
/* What somebody sees who looks that far; NULL: nothing. */
struct rk_name *rk_names_find(struct rk_names *n, const char *key, uint32_t range, const struct rk_names_who *who);

/* nameserver_wait.c */
void rk_names_refuse(struct rk_names *n, enum rk_errand_status status, const struct rk_asker *asker);
/* A name is new: note who may have waited for it; they are served when all new ones have been announced. */
void rk_names_announce(struct rk_names *n, const struct rk_name *name);
void rk_names_serve(struct rk_names *n);
void rk_names_drop_waiter(struct rk_waiter *waiter);
/* The same, and its owner may have nothing any more. */
void rk_names_remove_waiter(struct rk_waiter *waiter);

#endif
