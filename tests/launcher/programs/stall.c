/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.c: make ranks wait for one that does not come.
 *
 *   stall HOW [VICTIM]
 *
 * The victim (by default the last rank) prints "ready" and waits for SIGUSR1, which
 * no rank dies of; the others wait for it in HOW. After the signal all end well, and
 * each prints "ok". With abort the victim prints the time of its abort, in
 * microseconds since 1970, and aborts. With ahead no rank is held:
 * RANK_RNDV_UNEXPECTED_MAX decides whether they end.
 */
#include "lib/rank.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGE (8 << 20)

static int me, size, victim;
static sigset_t usr1;
static char buf[LARGE];

static void hold(void)
{
    int sig;

    if (me != victim)
        return;
    printf("ready\n");
    fflush(stdout);
    sigwait(&usr1, &sig);
}

static void hold_busy(void)
{
    sigset_t pending;

    if (me != victim)
        return;
    printf("ready\n");
    fflush(stdout);
    do
        sigpending(&pending);
    while (!sigismember(&pending, SIGUSR1));
}

static void must(rank_status_t st, const char *what)
{
    if (st == RANK_OK)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", me, what, rank_status_string(st));
    exit(1);
}

/* Messages between the victim and the others, in the order in which it serves them. */
static void message(const char *how)
{
    rank_team_t world = rank_world();
    bool any = strcmp(how, "any") == 0, probe = strcmp(how, "probe") == 0;
    bool waitany = strcmp(how, "waitany") == 0, ssend = strcmp(how, "ssend") == 0;
    bool large = strcmp(how, "large") == 0;
    rank_request_t req;
    int64_t index;

    hold();
    if (me == victim) {
        for (int r = 0; r < size; r++) {
            if (r == me)
                continue;
            if (ssend || large)
                must(rank_recv(buf, LARGE, RANK_BYTE, r, 7, world, NULL), "receive");
            else
                must(rank_send(buf, 100, RANK_BYTE, r, 7, world), "send");
        }
    } else if (ssend) {
        must(rank_ssend(buf, 100, RANK_BYTE, victim, 7, world), "ssend");
    } else if (large) {
        must(rank_send(buf, LARGE, RANK_BYTE, victim, 7, world), "send");
    } else {
        if (probe)
            must(rank_probe(victim, 7, world, NULL), "probe");
        if (waitany) {
            must(rank_irecv(buf, 100, RANK_BYTE, victim, 7, world, &req), "irecv");
            must(rank_waitany(1, &req, &index, NULL), "waitany");
            return;
        }
        must(rank_recv(buf, 100, RANK_BYTE, any ? RANK_ANY_SOURCE : victim,
                       any ? RANK_ANY_TAG : 7, world, NULL),
             "receive");
    }
}

static void collective(const char *how)
{
    rank_team_t team = rank_world();
    int64_t in[4] = {1}, out[4];
    rank_request_t req;

    for (int i = 0; i < 10; i++)
        must(rank_allreduce(in, out, 1, RANK_INT64, RANK_SUM, team), "allreduce");
    if (strcmp(how, "team") == 0)
        must(rank_team_dup(rank_world(), &team), "dup");
    hold();
    if (strcmp(how, "barrier") == 0)
        must(rank_barrier(team), how);
    else if (strcmp(how, "bcast") == 0)
        must(rank_bcast(in, 1, RANK_INT64, victim, team), how);
    else if (strcmp(how, "allreduce-large") == 0)
        must(rank_allreduce(RANK_IN_PLACE, buf, LARGE / 8, RANK_INT64, RANK_SUM, team), how);
    else if (strcmp(how, "iallreduce") == 0) {
        must(rank_iallreduce(in, out, 1, RANK_INT64, RANK_SUM, team, &req), how);
        must(rank_wait(&req, NULL), how);
    } else
        must(rank_allreduce(in, out, 1, RANK_INT64, RANK_SUM, team), how);
}

/* Rank 0 sends four large ones, one after the other, and rank 1 wants the last one first: in the end with no room for
 * those before. */
static void ahead(void)
{
    if (me == victim) {
        printf("ready\n");
        fflush(stdout);
    }
    for (int i = 0; i < 4; i++) {
        if (me == 0)
            must(rank_send(buf, LARGE, RANK_BYTE, 1, i, rank_world()), "send");
        else if (me == 1)
            must(rank_recv(buf, LARGE, RANK_BYTE, 0, 3 - i, rank_world(), NULL), "receive");
    }
}

/* Until the victim gets the signal. */
static void loop(void)
{
    int64_t over = 0, any = 0;
    sigset_t pending;

    if (me == victim) {
        printf("ready\n");
        fflush(stdout);
    }
    while (!any) {
        sigpending(&pending);
        over = me == victim && sigismember(&pending, SIGUSR1);
        must(rank_allreduce(&over, &any, 1, RANK_INT64, RANK_MAX, rank_world()), "allreduce");
    }
}

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "recv";
    const char *rank = getenv("XRUN_RANK"), *n = getenv("XRUN_SIZE");

    if (!rank || !n)
        return 2;
    me = atoi(rank);
    size = atoi(n);
    victim = argc > 2 ? atoi(argv[2]) : size - 1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    if (strcmp(how, "init") == 0)
        hold();
    must(rank_init(NULL), "rank_init");
    if (strcmp(how, "compute") == 0) {
        hold_busy();
        must(rank_barrier(rank_world()), how);
    } else if (strcmp(how, "finalize") == 0) {
        hold();
    } else if (strcmp(how, "loop") == 0) {
        loop();
    } else if (strcmp(how, "ahead") == 0) {
        ahead();
    } else if (strcmp(how, "abort") == 0 && me == victim) {
        printf("aborts %lld\n", (long long)now_us());
        fflush(stdout);
        rank_abort(42, "the sky is falling");
    } else if (strstr(" recv any probe waitany ssend large ", how)) {
        message(how);
    } else if (strcmp(how, "init") != 0) {
        collective(how);
    }
    must(rank_finalize(), "rank_finalize");
    printf("ok\n");
    return 0;
}
