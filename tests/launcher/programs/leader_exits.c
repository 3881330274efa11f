/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leader_exits.c: end the main thread while another thread lives.
 * /proc shows the process as a zombie, and yet it is alive.
 *
 *   leader_exits S: the other thread sleeps for S seconds
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *stay(void *arg)
{
    unsigned left = (unsigned)(uintptr_t)arg;

    signal(SIGTERM, SIG_IGN);
    printf("ready\n");
    fflush(stdout);
    while (left)
        left = sleep(left);
    return NULL;
}

int main(int argc, char **argv)
{
    uintptr_t seconds = argc > 1 ? (uintptr_t)atoi(argv[1]) : 1000;
    pthread_t thread;

    if (pthread_create(&thread, NULL, stay, (void *)seconds))
        return 1;
    pthread_exit(NULL);
}
