/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_init_finalize.c: kill a rank around rank_init or rank_finalize.
 * The others get a status, in time.
 *
 *   --when before|during|leaving|forked   --delay US (during: after this long)
 *
 * forked: as leaving, and a process that it has forked has all that it had, its connection to PMIx too, and stays.
 */
#include "tests/mp/mp.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *kill_later(void *arg)
{
    usleep(*(useconds_t *)arg);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* The launcher gives every process its rank. */
static int early_rank(void)
{
    const char *r = getenv("PMIX_RANK");

    return r ? atoi(r) : 0;
}

static bool is(int argc, char **argv, const char *when)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--when") == 0)
            return strcmp(argv[i + 1], when) == 0;
    }
    return false;
}

int main(int argc, char **argv)
{
    int victim = (int)mp_option(argc, argv, "--victim", 1);
    useconds_t delay = (useconds_t)mp_option(argc, argv, "--delay", 1000);
    bool me = early_rank() == victim, leaving;
    double t0 = mp_now();
    rank_status_t st;
    pthread_t thread;

    if (is(argc, argv, "before") && me)
        kill(getpid(), SIGKILL);
    if (is(argc, argv, "during") && me)
        pthread_create(&thread, NULL, kill_later, &delay);
    st = rank_init(NULL);
    leaving = is(argc, argv, "leaving") || is(argc, argv, "forked");
    if (leaving) {
        MP_OK(st);
        mp_barrier(rank_world());
        /* What the victim has sent may still lie in its channel when it is killed: all have to have come out of the barrier. */
        if (me) {
            for (int i = 1; i < rank_team_size(rank_world()); i++)
                MP_OK(rank_recv(NULL, 0, RANK_BYTE, RANK_ANY_SOURCE, 2, rank_world(), NULL));
        } else {
            MP_OK(rank_send(NULL, 0, RANK_BYTE, victim, 2, rank_world()));
        }
        if (me) {
            if (is(argc, argv, "forked") && fork() == 0) {
                for (;;)
                    pause();
            }
            usleep(100000);
            kill(getpid(), SIGKILL);
        }
    } else if (me) {
        for (;;)
            pause();
    }
    printf("rank %d: rank_init gave %d after %.3f s\n", early_rank(), (int)st, mp_now() - t0);
    if (mp_now() - t0 > 5)
        mp_fail(__FILE__, __LINE__, "rank_init took %.3f s", mp_now() - t0);
    if (st) {
        /* before all had met there is no world to be in */
        MP_CHECK(st == RANK_ERR_PEER_DEAD || st == RANK_ERR_BOOT);
        MP_CHECK(!rank_initialized());
    } else {
        char c;
        if (!leaving)
            MP_STATUS(rank_recv(&c, 1, RANK_BYTE, victim, 1, rank_world(), NULL),
                      RANK_ERR_PEER_DEAD);
        t0 = mp_now();
        MP_OK(rank_finalize());
        if (mp_now() - t0 > 3)
            mp_fail(__FILE__, __LINE__, "rank_finalize took %.3f s", mp_now() - t0);
    }
    printf("mp: done\n");
    return 0;
}
