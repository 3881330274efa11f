/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_client.h: share the PMIx client between the files of this folder.
 */
#ifndef RK_BOOT_BOOT_CLIENT_H
#define RK_BOOT_BOOT_CLIENT_H

#include "lib/base/arg_error.h"
#include "lib/base/compiler.h"
#include "lib/boot/boot.h"
#include "lib/boot/nspaces.h"

#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>

struct rk_client {
    struct rk_boot pub; /* first: the public part */
    pmix_proc_t me;
    _Atomic int deaths;    /* deaths reported so far; checked by waits in a fence */
    _Atomic bool *dead;    /* [pub.size] of the own job, as reported; deaths.c owns it; NULL: not subscribed */
    struct rk_client *next_watching; /* deaths.c */
    pthread_mutex_t watch; /* held during a call of death_fn, which may be NULL */
    rk_boot_death_fn death_fn;
    void *death_arg;
    struct rk_nspaces *spaces; /* of other jobs */
    atomic_bool no_census; /* the server does not answer queries about dead processes */
    bool left;
    bool met; /* a fence is over: all have committed */
};

RK_INLINE struct rk_client *rk_client_of(struct rk_boot *boot)
{
    return (struct rk_client *)boot;
}

/*
 * For ThreadSanitizer only, which does not model PMIx's locks: writes before rk_tsan_release(p) are visible to the
 * PMIx thread after its rk_tsan_acquire(p). The other direction uses locks and atomics of the library.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *p);
void __tsan_release(void *p);
#define rk_tsan_acquire(p) __tsan_acquire(p)
#define rk_tsan_release(p) __tsan_release(p)
#else
#define rk_tsan_acquire(p) ((void)(p))
#define rk_tsan_release(p) ((void)(p))
#endif

/* The row pmix of boot.h. kvs.c: */
rank_status_t rk_client_put(struct rk_boot *boot, const char *key, const void *data, size_t len);
rank_status_t rk_client_commit(struct rk_boot *boot);
rank_status_t rk_client_get(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len);
rank_status_t rk_client_fence(struct rk_boot *boot);
/* deaths.c: */
rank_status_t rk_client_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg);
rank_status_t rk_client_name_job(struct rk_boot *boot, const char *space, int first, int size);
void rk_client_remove_job(struct rk_boot *boot, int first);
rank_status_t rk_client_subscribe_jobs(struct rk_boot *boot);
/* boot_spawn.c, disconnect.c: */
rank_status_t rk_client_spawn_begin(struct rk_boot *boot, const struct rk_boot_app *app, void (*wake)(void *), void *arg,
                                    struct rk_pending **out);
rank_status_t rk_client_spawn_end(struct rk_pending *answer, const char *program, char space[RK_NSPACE_MAX]);
rank_status_t rk_client_disconnect_begin(struct rk_boot *boot, const int *numbers, int n, void (*wake)(void *), void *arg,
                                         struct rk_pending **out);
rank_status_t rk_client_disconnect_end(struct rk_boot *boot, struct rk_pending *answer);

/* Log the failed call; returns RANK_ERR_BOOT. */
static inline rank_status_t rk_client_failed(const char *what, pmix_status_t rc)
{
    return rk_fail(RANK_ERR_BOOT, "%s failed: %s", what, PMIx_Error_string(rc));
}

/* identity.c: query the server about this process: job size, local ranks, parent job. */
rank_status_t rk_client_query_size(struct rk_client *c);
rank_status_t rk_client_query_local(struct rk_client *c);
rank_status_t rk_client_query_parent(struct rk_client *c);

/*
 * deaths.c: subscribe to deaths in the own job, before the first fence: a rank that dies in it must not block
 * others.
 */
rank_status_t rk_client_subscribe_deaths(struct rk_client *c);
/* Record a death that came without an event; runs on the PMIx thread. */
void rk_client_record_death(const pmix_proc_t *proc);
/* proc_table.c: query which processes of this host are gone. The answer is handled like death events. */
void rk_client_census(struct rk_client *c);
/* PMIx has ended, and an open query with it. */
void rk_client_census_over(void);
/* Queries are not possible; runs on the PMIx thread. */
void rk_client_no_census(void);
/* The client gets no event any more. */
void rk_client_unsubscribe(struct rk_client *c);
/* PMIx has ended, and its event handlers with it. */
void rk_client_events_over(void);

/*
 * pending.c: an answer of PMIx, which arrives on its thread and belongs to the waiting thread. A late answer is
 * kept until PMIx ends, since PMIx drops open requests silently.
 */
struct rk_pending {
    struct rk_boot_pending pending; /* first */
    struct rk_pending *next;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done, abandoned;
    void (*late)(struct rk_pending *); /* runs if it arrives after it was abandoned; or NULL */
    void (*wake)(void *); /* runs when the answer is there; or NULL */
    void *wake_arg;
    pmix_status_t rc;
    void *bytes; /* of a blob, or the name of a spawned job; NULL: none */
    size_t size;
};

struct rk_pending *rk_pending_new(void);
void rk_pending_free(struct rk_pending *a);
/* Callback for PMIx. */
void rk_pending_arrived(pmix_status_t rc, void *answer);
/*
 * Wait for the answer. True: it arrived, and the caller frees it. grace: as below, counted from the death of rank,
 * or of any rank if rank is negative. Before the first fence is over it also queries for deaths.
 */
bool rk_pending_wait(struct rk_client *c, struct rk_pending *a, int rank, int grace);
bool rk_pending_is_ready(void *answer);
/* Keep an answer that did not arrive in time. */
void rk_pending_abandon(struct rk_pending *a);
/* Free the abandoned ones of all contexts, after PMIx has ended. */
void rk_pending_free_all(void);

#endif
