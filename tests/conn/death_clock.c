/* SPDX-License-Identifier: BSD-3-Clause */
/* death_clock.c: see death_clock.h. */
#include "tests/conn/death_clock.h"

#include <poll.h>
#include <pthread.h>

/* A call that ends has to get a core several times: in the wait, for the lock, for the progress thread. */
enum { PERIOD_MS = 1, DELAYS = 10 };
static const double grace_max_s = 1; /* a library that needs 2 s fails on any machine */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static int pipe_end;
static bool stops;
static double died, longest_delay; /* died 0: it lives */

static void *clock_thread(void *arg)
{
    bool over = false;

    (void)arg;
    while (!over) {
        struct pollfd end = {.fd = died > 0 ? -1 : pipe_end, .events = 0};
        double begin = mp_now(), now;
        int n = poll(&end, 1, PERIOD_MS);

        now = mp_now();
        pthread_mutex_lock(&lock);
        if (n > 0)
            died = now;
        else if (now - begin - PERIOD_MS * 1e-3 > longest_delay)
            longest_delay = now - begin - PERIOD_MS * 1e-3;
        over = stops;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

void death_clock_start(const struct pair *p)
{
    pipe_end = p ? p->in : -1;
    stops = false;
    died = longest_delay = 0;
    CHECK(pthread_create(&thread, NULL, clock_thread, NULL) == 0);
}

static double time_of_death(void)
{
    double at;

    pthread_mutex_lock(&lock);
    at = died;
    pthread_mutex_unlock(&lock);
    return at;
}

double death_clock_grace(void)
{
    double delay;

    pthread_mutex_lock(&lock);
    delay = longest_delay;
    pthread_mutex_unlock(&lock);
    return DELAYS * delay < grace_max_s ? DELAYS * delay : grace_max_s;
}

void death_clock_check(const char *call, double bound_s)
{
    double now = mp_now(), at;

    while ((at = time_of_death()) == 0)
        pair_sleep(0.001);
    if (now - at > bound_s + death_clock_grace())
        mp_fail(__FILE__, __LINE__, "%s ends %.3f s after the death: more than %.3f s, and %.3f s as the machine is busy", call,
                  now - at, bound_s, death_clock_grace());
}

void death_clock_stop(void)
{
    pthread_mutex_lock(&lock);
    stops = true;
    pthread_mutex_unlock(&lock);
    CHECK(pthread_join(thread, NULL) == 0);
}
