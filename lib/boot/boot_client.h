/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_client.h: the PMIx client, as the files of this folder share it. Nothing outside sees it.
 */
#ifndef RK_BOOT_BOOT_CLIENT_H
#define RK_BOOT_BOOT_CLIENT_H

#include "lib/base/compiler.h"
#include "lib/boot/boot.h"
#include "lib/boot/nspaces.h"

#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>

struct rk_client {
    struct rk_boot pub; /* first: what others see */
    pmix_proc_t me;
    _Atomic int deaths;    /* reported so far: who waits in a fence looks */
    _Atomic bool *dead;    /* [pub.size] of our job, as reported */
    pthread_mutex_t watch; /* held while death_fn, which may be NULL, is called */
    rk_boot_death_fn death_fn;
    void *death_arg;
    struct rk_spaces *spaces; /* of other jobs */
    bool hearing_deaths, hearing_jobs;
    atomic_bool no_census; /* the server does not tell who is gone when asked */
    bool left;
    bool met; /* a fence is behind us: all have committed */
    struct rk_answer *given_up; /* those that PMIx may still write to */
};

RK_INLINE struct rk_client *rk_client_of(struct rk_boot *boot)
{
    return (struct rk_client *)boot;
}

/*
 * For ThreadSanitizer alone, which does not see PMIx's locks: what a thread has written before rk_tsan_release(p) is seen
 * by PMIx's thread once that has called rk_tsan_acquire(p). What PMIx's thread tells us goes by locks and atomics of ours.
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

/* boot_pmix.c: log what failed; RANK_ERR_BOOT. */
rank_status_t rk_client_failed(const char *what, pmix_status_t rc);

/* identity.c: what the server says of this process: the job's size, who is on this host, who spawned the job. */
rank_status_t rk_client_ask_size(struct rk_client *c);
rank_status_t rk_client_ask_local(struct rk_client *c);
rank_status_t rk_client_ask_parent(struct rk_client *c);

/* deaths.c: hear of those in our job. From before the first fence on: a rank that dies in it must not hold the
 * others. */
rank_status_t rk_client_hear_deaths(struct rk_client *c);
/* Of one that was not told of in an event; on PMIx's thread. */
void rk_client_learn_death(const pmix_proc_t *who);
/* proc_table.c: ask who of this host is gone. The answer comes as deaths do. */
void rk_client_census(struct rk_client *c);
/* PMIx is gone, and with it a question that was open. */
void rk_client_census_over(void);
/* It cannot be asked for; on PMIx's thread. */
void rk_client_no_census(void);
/* No event means this client any more. */
void rk_client_hear_nothing(void);

/*
 * pending.c: an answer of PMIx, which comes on its thread. It belongs to the one who waits. One that did not come
 * in time is kept until PMIx is gone, which drops open requests without a word.
 */
struct rk_answer {
    struct rk_answer *next;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    void (*wake)(void *); /* called when it is there; or NULL */
    void *wake_arg;
    pmix_status_t rc;
    void *bytes; /* of a card; NULL if it is none of ours */
    size_t size;
};

struct rk_answer *rk_answer_new(void);
void rk_answer_free(struct rk_answer *a);
/* For PMIx to call. */
void rk_answer_came(pmix_status_t rc, void *answer);
/* Wait for it: true if it came, and then it is the caller's to free. grace: as below, from the death of that rank,
 * or of any if it is negative. Before all have met it asks for news of deaths by itself. */
bool rk_answer_wait(struct rk_client *c, struct rk_answer *a, int rank, int grace);
bool rk_answer_is_there(struct rk_answer *a);
/* Keep one that did not come. */
void rk_answer_give_up(struct rk_client *c, struct rk_answer *a);
/* PMIx is gone. */
void rk_answers_free(struct rk_client *c);

/*
 * How long an answer may still come once a member is known to have died. A
 * server need not answer then: a fence stays open (4.2.2), a card of one who
 * never committed is waited for (4.1.2). Before all have met a death ends the
 * start of them all anyway; later it may be of no concern for what is asked.
 */
enum { RK_GRACE_MS = 300, RK_GRACE_MET_MS = 5000 };

#endif
