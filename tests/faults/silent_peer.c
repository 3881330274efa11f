/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * silent_peer.c: let rank 0 wait for rank 1, which sends nothing.
 * tests/elsewhere/silent_peer_hosts.sh runs it.
 *
 *   silent_peer [--met]     they have exchanged messages before
 *   silent_peer --flooded   the same, and other messages keep coming to rank 0 meanwhile: its own. Rank 1 has a forked child, which has
 *                           all its descriptors and stays.
 *   silent_peer --threads   a thread of rank 0 waits for the last rank, which is the silent one, and later another for rank 1
 *
 * Rank 1 prints "ready" and its pid, and waits outside the library for SIGUSR1; then it sends. Rank 0 prints the
 * status of its receive.
 */
#include "lib/rank.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static rank_status_t receive_status(int from)
{
    int word;

    return rank_recv(&word, sizeof(word), RANK_BYTE, from, 1, rank_world(), NULL);
}

static void *receive_first(void *arg)
{
    (void)arg;
    receive_status(1);
    return NULL;
}

/* The first waiter begins to poll; one that comes while it sleeps takes that over, and keeps it. */
static void *come_later(void *arg)
{
    const struct timespec while_it_sleeps = {0, 300 * 1000 * 1000};

    nanosleep(&while_it_sleeps, NULL);
    return receive_first(arg);
}

/* Returns of rank 0 only. */
static rank_status_t among_threads(void)
{
    int last = rank_team_size(rank_world()) - 1, rank = rank_team_rank(rank_world());
    pthread_t id;

    if (rank == last) {
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
    }
    while (rank > 0)
        pause();
    if (pthread_create(&id, NULL, come_later, NULL))
        return RANK_ERR_SYSTEM;
    return receive_status(last);
}

/* A message to ourselves, and the next as soon as it is there. */
static void go_on(const rank_envelope_t *e, void *arg)
{
    static int in, out;
    rank_request_t req;
    int me = rank_team_rank(rank_world());

    (void)e;
    (void)arg;
    if (rank_irecv(&in, 1, RANK_INT32, me, 2, rank_world(), &req) || rank_on_done(&req, go_on, NULL) ||
        rank_isend(&out, 1, RANK_INT32, me, 2, rank_world(), &req) || rank_wait(&req, NULL))
        _exit(4);
}

int main(int argc, char **argv)
{
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    bool threads = argc > 1 && strcmp(argv[1], "--threads") == 0, flooded = argc > 1 && strcmp(argv[1], "--flooded") == 0;
    rank_team_t world;
    rank_status_t st;
    sigset_t usr1;
    int word = 7, sig;

    opts.thread_level = RANK_THREAD_MULTIPLE;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    if (rank_init(threads ? &opts : NULL))
        return 2;
    world = rank_world();
    if ((flooded || (argc > 1 && strcmp(argv[1], "--met") == 0)) && rank_barrier(world))
        return 3;
    if (flooded && rank_team_rank(world) == 0)
        go_on(NULL, NULL);
    if (threads) {
        st = among_threads();
        printf("ended: %s\n", rank_status_string(st));
        fflush(stdout);
    } else if (rank_team_rank(world) == 1) {
        if (flooded && fork() == 0) {
            for (int fd = 0; fd < 3; fd++) /* srun's */
                close(fd);
            for (;;)
                pause();
        }
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        sigwait(&usr1, &sig);
        st = rank_send(&word, sizeof(word), RANK_BYTE, 0, 1, world);
    } else {
        st = rank_recv(&word, sizeof(word), RANK_BYTE, 1, 1, world, NULL);
        printf("ended: %s\n", rank_status_string(st));
        fflush(stdout);
    }
    /* The launcher may wait for lost ranks. */
    if (st)
        _exit(st == RANK_ERR_PEER_DEAD ? 5 : 6);
    rank_finalize();
    return 0;
}
