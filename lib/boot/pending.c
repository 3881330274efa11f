/* SPDX-License-Identifier: BSD-3-Clause */
/* pending.c: keep pending answers of PMIx and wait for them. */
#include "lib/boot/boot_client.h"
#include "lib/base/clock.h"

#include <stdlib.h>

/* How often a waiter checks for deaths, and after how many checks it queries. */
enum { LOOK_MS = 20, CHECKS_A_CENSUS = 10 };

/* Abandoned answers, into which PMIx may still write, even after their context has closed. */
static struct rk_pending *given_up;
static pthread_mutex_t given_up_lock = PTHREAD_MUTEX_INITIALIZER;

struct rk_pending *rk_pending_new(void)
{
    struct rk_pending *a = calloc(1, sizeof(*a));

    if (a) {
        a->pending.over = rk_pending_is_ready;
        pthread_mutex_init(&a->lock, NULL);
        pthread_cond_init(&a->over, NULL);
    }
    return a;
}

void rk_pending_free(struct rk_pending *a)
{
    pthread_cond_destroy(&a->over);
    pthread_mutex_destroy(&a->lock);
    free(a->bytes);
    free(a);
}

void rk_pending_free_all(void)
{
    pthread_mutex_lock(&given_up_lock);
    while (given_up) {
        struct rk_pending *a = given_up;
        given_up = a->next;
        rk_pending_free(a);
    }
    pthread_mutex_unlock(&given_up_lock);
}

void rk_pending_arrived(pmix_status_t rc, void *arg)
{
    struct rk_pending *a = arg;

    rk_tsan_acquire(a);
    pthread_mutex_lock(&a->lock);
    a->rc = rc;
    a->done = true;
    pthread_cond_signal(&a->over);
    if (a->abandoned && a->late)
        a->late(a);
    if (a->wake) /* under the lock: a waiter that finds it done may return before this call is over */
        a->wake(a->wake_arg);
    pthread_mutex_unlock(&a->lock);
}

static bool has_died(struct rk_client *c, int rank)
{
    return rank < 0 || !c->dead ? atomic_load(&c->deaths) > 0 : atomic_load(&c->dead[rank]);
}

bool rk_pending_wait(struct rk_client *c, struct rk_pending *a, int rank, int grace)
{
    int since_death = 0, checks = 0;
    bool came;

    pthread_mutex_lock(&a->lock);
    while (!a->done && since_death < grace) {
        if (rk_cond_wait_until(&a->over, &a->lock, rk_clock_ns() + LOOK_MS * 1000000ull))
            continue;
        if (has_died(c, rank))
            since_death += LOOK_MS;
        else if (!c->met && c->dead && ++checks % CHECKS_A_CENSUS == 0) {
            /* the PMIx thread may need the lock, and this thread needs the PMIx thread */
            pthread_mutex_unlock(&a->lock);
            rk_client_census(c);
            pthread_mutex_lock(&a->lock);
        }
    }
    came = a->done;
    pthread_mutex_unlock(&a->lock);
    if (!came)
        rk_pending_abandon(a);
    return came;
}

bool rk_pending_is_ready(void *answer)
{
    struct rk_pending *a = answer;
    bool done;

    pthread_mutex_lock(&a->lock);
    done = a->done;
    pthread_mutex_unlock(&a->lock);
    return done;
}

void rk_pending_abandon(struct rk_pending *a)
{
    pthread_mutex_lock(&a->lock);
    a->wake = NULL;
    a->abandoned = true;
    if (a->done && a->late)
        a->late(a);
    pthread_mutex_unlock(&a->lock);
    pthread_mutex_lock(&given_up_lock);
    a->next = given_up;
    given_up = a;
    pthread_mutex_unlock(&given_up_lock);
}
