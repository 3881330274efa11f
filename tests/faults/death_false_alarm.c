/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_false_alarm.c: report no death of a rank that lives or has left orderly.
 * A process that is stopped for a while; the end of the thread that
 * called rank_init, also of the main thread; a rank that computes for long; one that left in order.
 *
 *   --how stopped|thread|main|busy
 */
#include "tests/mp/mp.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOPPED_MS = 2500 };

/* A helper that stops its parent and lets it go on; made before rank_init, so that it shares nothing
 * of the library. It begins when a byte comes. */
static pid_t make_stopper(int *wire)
{
    int p[2];
    pid_t pid, parent = getpid();

    MP_CHECK_EQ(pipe(p), 0);
    pid = fork();
    MP_CHECK(pid >= 0);
    if (pid == 0) {
        char c;
        close(p[1]);
        if (read(p[0], &c, 1) == 1) {
            kill(parent, SIGSTOP);
            usleep(STOPPED_MS * 1000);
            kill(parent, SIGCONT);
        }
        _exit(0);
    }
    close(p[0]);
    *wire = p[1];
    return pid;
}

static void stopped(struct mp *mp, int wire)
{
    int victim = mp->size - 1;
    int64_t v = 0;

    if (mp->rank == victim) {
        MP_CHECK_EQ(write(wire, "x", 1), 1);
        usleep(50000); /* stopped somewhere in here */
        v = 77;
        for (int r = 0; r < victim; r++)
            MP_OK(rank_send(&v, 1, RANK_INT64, r, 1, mp->world));
    } else {
        double t0 = mp_now();
        MP_OK(rank_recv(&v, 1, RANK_INT64, victim, 1, mp->world, NULL));
        MP_CHECK_EQ(v, 77);
        printf("rank %d waited %.3f s\n", mp->rank, mp_now() - t0);
        MP_CHECK(mp_now() - t0 > STOPPED_MS / 1000.0 - 0.5); /* or the test has tested nothing */
    }
    MP_OK(rank_barrier(mp->world));
}

/* No call of the library for longer than any check of liveness. */
static void busy(struct mp *mp)
{
    int victim = mp->size - 1;
    char c = 1;

    if (mp->rank == victim) {
        double t0 = mp_now();
        while (mp_now() - t0 < 2.0)
            ;
        for (int r = 0; r < victim; r++)
            MP_OK(rank_send(&c, 1, RANK_BYTE, r, 1, mp->world));
    } else {
        MP_OK(rank_recv(&c, 1, RANK_BYTE, victim, 1, mp->world, NULL));
    }
    MP_OK(rank_barrier(mp->world));
}

static void *start_in_thread(void *arg)
{
    struct mp *mp = arg;
    static char *argv[] = {"alive", NULL};
    int argc = 1;

    mp_start(mp, &argc, argv);
    return NULL;
}

/* The process is a zombie to /proc from now on; but it goes on here. */
static void *go_on(void *arg)
{
    struct mp *mp = arg;

    busy(mp);
    mp_end(mp);
    exit(0);
}

int main(int argc, char **argv)
{
    const char *how = "busy";
    static struct mp mp; /* longer than main does */
    int wire = -1;
    pid_t helper = 0;

    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--how") == 0)
            how = argv[i + 1];
    }
    if (strcmp(how, "stopped") == 0)
        helper = make_stopper(&wire);
    if (strcmp(how, "thread") == 0) {
        pthread_t t;
        MP_CHECK_EQ(pthread_create(&t, NULL, start_in_thread, &mp), 0);
        MP_CHECK_EQ(pthread_join(t, NULL), 0);
    } else {
        mp_start(&mp, &argc, argv);
    }
    mp_case(&mp, how);
    if (strcmp(how, "main") == 0) {
        pthread_t t;
        MP_CHECK_EQ(pthread_create(&t, NULL, go_on, &mp), 0);
        pthread_exit(NULL);
    }
    if (strcmp(how, "stopped") == 0)
        stopped(&mp, wire);
    else
        busy(&mp);
    mp_end(&mp);
    if (helper) {
        close(wire);
        waitpid(helper, NULL, 0);
    }
    return 0;
}
