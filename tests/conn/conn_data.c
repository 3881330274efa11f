/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_data.c: exchange random data over several connections.
 *
 * Each connection has a thread on either side at RANK_THREAD_MULTIPLE; else one thread works on them in turn. Side 1
 * connects to side 0 several times, and side 0 connects back once. --seed N, --steps N, --cases N.
 */
#include "tests/conn/conn_steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNS = 4, BIG = 64 << 20 };
static int nsteps = 40;

static void *conn_thread(void *arg)
{
    struct steps *s = arg;

    for (int i = 0; i < nsteps; i++)
        steps_next(s);
    return NULL;
}

/* Connect n times, the last time from side 0 to side 1. */
static void connect_all(struct pair *p, rank_ctx_t ctx, int n, rank_team_t *conns)
{
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = NULL;
    char address[PAIR_ADDRESS];
    rank_conn_info_t info = {.size = sizeof(info)};

    for (int i = 0; i < n; i++) {
        int listens = i == n - 1 && n > 1 ? 1 : 0;
        if (p->me == listens && (i == 0 || i == n - 1)) {
            if (listener)
                OK(rank_listener_close(&listener));
            listener = pair_listen(p, ctx, &opts);
        }
        if (p->me == listens) {
            OK(rank_accept(listener, 20 * SECOND, &conns[i]));
        } else {
            if (i == 0 || i == n - 1)
                pair_get(p, address, sizeof(address));
            opts.hello = &i;
            opts.hello_bytes = sizeof(i);
            OK(rank_connect(ctx, address, &opts, &conns[i]));
        }
        OK(rank_conn_info(conns[i], &info));
        CHECK(info.proved == 1 && info.pid > 0 && strcmp(info.channel, pair_channel(i == 0)) == 0);
        if (p->me == listens)
            CHECK(info.hello_bytes == sizeof(i) && memcmp(info.hello, &i, sizeof(i)) == 0);
        CHECK(rank_team_rank(conns[i]) == (p->me == listens));
    }
    if (listener)
        OK(rank_listener_close(&listener));
}

/* After a barrier each side has received the messages that the other side has sent. */
static void compare_counts(struct pair *p, rank_team_t conn)
{
    rank_conn_info_t info = {.size = sizeof(info)};
    int64_t theirs[2];

    OK(rank_barrier(conn));
    OK(rank_conn_info(conn, &info));
    pair_put(p, &info.messages_sent, sizeof(theirs));
    pair_get(p, theirs, sizeof(theirs));
    if (strcmp(info.channel, "ucx") == 0)
        CHECK(theirs[0] == -1 && info.messages_sent == -1);
    else
        CHECK(theirs[0] == info.messages_received && theirs[1] == info.messages_sent && theirs[0] > nsteps / 4);
}

static void random_side(struct pair *p)
{
    uint64_t random = p->seed;
    int level = mp_random(&random) % 2 ? RANK_THREAD_MULTIPLE : RANK_THREAD_SERIALIZED;
    int thread = level == RANK_THREAD_MULTIPLE && mp_random(&random) % 2, n = 1 + (int)(mp_random(&random) % CONNS);
    rank_ctx_t ctx = pair_context(level, thread);
    struct steps steps[CONNS];
    rank_team_t conns[CONNS];
    pthread_t threads[CONNS];

    connect_all(p, ctx, n, conns);
    for (int i = 0; i < n; i++)
        steps_open(&steps[i], ctx, conns[i], p->seed + (uint64_t)i * 77);
    if (level == RANK_THREAD_MULTIPLE) {
        for (int i = 0; i < n; i++)
            CHECK(pthread_create(&threads[i], NULL, conn_thread, &steps[i]) == 0);
        for (int i = 0; i < n; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    } else {
        for (int i = 0; i < nsteps * n; i++)
            steps_next(&steps[mp_random(&random) % (uint64_t)n]);
    }
    for (int i = 0; i < n; i++)
        compare_counts(p, conns[i]);
    for (int i = 0; i < n; i++) {
        steps_close(&steps[i]);
        if ((p->seed + (uint64_t)i) % 3)
            OK(rank_disconnect(&conns[i], 20 * SECOND));
    }
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* --------------------------------------------------------- two contexts of one process */

static struct pair inner[2];

static void *inner_thread(void *arg)
{
    random_side(arg);
    return NULL;
}

/* The program above with both sides in one process; the other process does the same. */
static void threads_side(struct pair *p)
{
    pthread_t threads[2];
    int a[2], b[2];

    CHECK(pipe(a) == 0 && pipe(b) == 0);
    inner[0] = *p;
    inner[0].seed += (uint64_t)p->me * 1000;
    inner[1] = inner[0];
    inner[0].me = 0;
    inner[1].me = 1;
    inner[0].in = a[0];
    inner[1].out = a[1];
    inner[1].in = b[0];
    inner[0].out = b[1];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, inner_thread, &inner[i]) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ----------------------------------------------------------------- sends without progress */

/*
 * Side 1 only sends, and makes no progress until side 0 has received all: bursts, if a progress thread sends what waits for
 * company; else one message at a time.
 */
static void sender_side(struct pair *p)
{
    enum { MESSAGES = 20 };
    int thread = p->seed % 2, burst = thread ? 5 : 1, x;
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, thread);
    rank_team_t conn;

    connect_all(p, ctx, 1, &conn);
    for (int i = 0; i < MESSAGES; i += burst) {
        for (int k = 0; k < burst && p->me == 1; k++)
            OK(rank_send(&i, 1, RANK_INT32, 1, 1, conn));
        for (int k = 0; k < burst && p->me == 0; k++) {
            OK(rank_recv(&x, 1, RANK_INT32, 0, 1, conn, NULL));
            CHECK(x == i);
        }
        if (thread || i + burst == MESSAGES)
            pair_meet(p);
        else
            pair_sleep(0.02);
    }
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* ------------------------------------------------------------------------- fairness */

/* Short messages pass while a long one moves on another connection. */
static void fair_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_SERIALIZED, 0);
    int me, done = 0, trips = 0, go = 1;
    unsigned char *big = malloc(BIG);
    rank_team_t conns[2];
    rank_request_t req;

    CHECK(big);
    connect_all(p, ctx, 2, conns);
    me = p->me;
    memset(big, me ? 0 : 5, BIG);
    if (me == 0) {
        OK(rank_isend(big, BIG, RANK_BYTE, 1 - rank_team_rank(conns[0]), 1, conns[0], &req));
        while (go) {
            OK(rank_recv(&go, 1, RANK_INT32, 1 - rank_team_rank(conns[1]), 1, conns[1], NULL));
            OK(rank_send(&go, 1, RANK_INT32, 1 - rank_team_rank(conns[1]), 1, conns[1]));
        }
        OK(rank_wait(&req, NULL));
    } else {
        OK(rank_irecv(big, BIG, RANK_BYTE, 1 - rank_team_rank(conns[0]), 1, conns[0], &req));
        while (go) {
            OK(rank_test(&req, &done, NULL));
            trips += !done;
            go = !done;
            OK(rank_send(&go, 1, RANK_INT32, 1 - rank_team_rank(conns[1]), 1, conns[1]));
            OK(rank_recv(&go, 1, RANK_INT32, 1 - rank_team_rank(conns[1]), 1, conns[1], NULL));
        }
        for (size_t i = 0; i < BIG; i += 4097)
            CHECK(big[i] == 5);
        CHECK(trips >= 5);
    }
    free(big);
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* A context refuses a connection of its own. */
static void self_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    char address[PAIR_ADDRESS];
    size_t len = sizeof(address);
    rank_listener_t listener;
    rank_team_t conn;

    OK(rank_listen(ctx, "127.0.0.1:0", &opts, &listener));
    OK(rank_listener_address(listener, address, &len));
    STATUS(rank_connect(ctx, address, &opts, &conn), RANK_ERR_REFUSED);
    STATUS(rank_accept(listener, 0, &conn), RANK_ERR_TIMED_OUT);
    OK(rank_ctx_close(&ctx, 0));
    (void)p;
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)mp_option(argc, argv, "--seed", 1);
    int64_t cases = mp_option(argc, argv, "--cases", 8);
    bool ok = true;

    nsteps = (int)mp_option(argc, argv, "--steps", nsteps);
    for (int64_t i = 0; i < PAIR_WAYS * cases; i++) {
        if (pair_use(i % PAIR_WAYS))
            ok &= pair_run("two processes", random_side, seed + (uint64_t)i, 120, false);
    }
    for (int i = 0; i < PAIR_WAYS; i++) {
        if (!pair_use(i))
            continue;
        ok &= pair_run("two contexts of one process", threads_side, seed, 120, false);
        if (i != PAIR_UCX) /* whose messages leave with the next progress after the peer has accepted */
            ok &= pair_run("sends without progress", sender_side, 0, 60, false);
        ok &= pair_run("sends and a progress thread", sender_side, 1, 60, false);
        ok &= pair_run("fairness", fair_side, seed, 120, false);
    }
    pair_use(PAIR_SOCKET);
    ok &= pair_run("to itself", self_side, seed, 60, false);
    return ok ? 0 : 1;
}
