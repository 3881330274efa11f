/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_iconnect.c: connect without waiting, and be told of the end of connections.
 *
 * Many attempts at once; attempts that are refused, too slow, canceled or closed; a listener that is killed under them.
 * rank_on_death tells a side that was killed from one that has disconnected.
 */
#include "tests/conn/conn_pair.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MANY = 60, TAG = 1 };

static int calls, called_rank;
static rank_status_t called_with;

static void done(const rank_envelope_t *envelope, void *arg)
{
    CHECK(arg == &calls);
    CHECK(envelope->status == RANK_OK);
    calls++;
}

static void death(rank_team_t team, int rank, rank_status_t cause, void *arg)
{
    char c;

    CHECK(arg == &calls);
    STATUS(rank_recv(&c, 1, RANK_BYTE, rank, TAG, team, NULL), cause); /* its operations end so already */
    calls++;
    called_rank = rank;
    called_with = cause;
}

/* All at once, completed by waits and by callbacks; each connection carries its number. */
static void many_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, p->me);
    rank_conn_opts_t opts = pair_opts();
    rank_request_t reqs[MANY];
    rank_team_t conns[MANY];
    char address[PAIR_ADDRESS];
    bool seen[MANY] = {false};
    int number;

    if (p->me == 0) {
        rank_listener_t listener = pair_listen(p, ctx, &opts);
        for (int i = 0; i < MANY; i++)
            OK(rank_accept(listener, 60 * SECOND, &conns[i]));
        for (int i = 0; i < MANY; i++) {
            OK(rank_recv(&number, 1, RANK_INT32, 0, TAG, conns[i], NULL));
            CHECK(number >= 0 && number < MANY && !seen[number]);
            seen[number] = true;
            OK(rank_send(&number, 1, RANK_INT32, 0, TAG, conns[i]));
        }
    } else {
        pair_get(p, address, sizeof(address));
        calls = 0;
        for (int i = 0; i < MANY; i++) {
            conns[i] = RANK_TEAM_NULL;
            OK(rank_iconnect(ctx, address, &opts, &conns[i], &reqs[i]));
            if (i % 2)
                OK(rank_on_done(&reqs[i], done, &calls));
        }
        OK(rank_waitall(MANY, reqs, NULL));
        for (double until = mp_now() + 60; calls < MANY / 2 && mp_now() < until;)
            OK(rank_ctx_progress(ctx));
        CHECK(calls == MANY / 2);
        for (int i = 0; i < MANY; i++) {
            CHECK(conns[i] != RANK_TEAM_NULL && rank_team_rank(conns[i]) == 0);
            OK(rank_send(&i, 1, RANK_INT32, 1, TAG, conns[i]));
        }
        for (int i = 0; i < MANY; i++) {
            OK(rank_recv(&number, 1, RANK_INT32, 1, TAG, conns[i], NULL));
            CHECK(number == i);
        }
    }
    pair_meet(p);
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* A socket that listens, and nothing more. */
static int mute_listener(char *address, size_t len)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 16) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &size) == 0);
    snprintf(address, len, "127.0.0.1:%u", (unsigned)ntohs(a.sin_port));
    return fd;
}

static void *wait_closed(void *arg)
{
    STATUS(rank_wait(arg, NULL), RANK_ERR_CLOSED);
    return NULL;
}

/* Each way to fail, all pending at once. */
static void fail_side(struct pair *p)
{
    enum { NOTHING, SECRET, FULL, SLOW, CANCELED, N };
    static const rank_status_t want[N] = {RANK_ERR_UNREACHABLE, RANK_ERR_SECRET, RANK_ERR_REFUSED, RANK_ERR_TIMED_OUT,
                                          RANK_ERR_CANCELED};
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts(), other = pair_opts(), fast = pair_opts();
    char address[PAIR_ADDRESS], mute[PAIR_ADDRESS], gone[PAIR_ADDRESS];
    rank_team_t conn, never = RANK_TEAM_NULL;
    rank_listener_t listener;
    rank_request_t reqs[N];
    rank_envelope_t env[N];
    pthread_t thread;
    double begun;
    int fd;

    opts.max_conns = 1;
    if (p->me == 0) {
        listener = pair_listen(p, ctx, &opts);
        OK(rank_accept(listener, 60 * SECOND, &conn));
        STATUS(rank_accept(listener, 3 * SECOND, &never), RANK_ERR_TIMED_OUT); /* carries out the handshakes */
        pair_meet(p);
        OK(rank_ctx_close(&ctx, 20 * SECOND));
        return;
    }
    pair_get(p, address, sizeof(address));
    OK(rank_connect(ctx, address, &opts, &conn));
    close(mute_listener(gone, sizeof(gone)));
    fd = mute_listener(mute, sizeof(mute));
    other.secret = "this is not the secret!!";
    fast.timeout_ns = SECOND / 2;
    STATUS(rank_iconnect(ctx, "no port", &opts, &never, &reqs[0]), RANK_ERR_ARG);
    STATUS(rank_iconnect(ctx, mute, &opts, NULL, &reqs[0]), RANK_ERR_ARG);
    STATUS(rank_iconnect(ctx, mute, &opts, &never, NULL), RANK_ERR_ARG);
    begun = mp_now();
    OK(rank_iconnect(ctx, gone, &opts, &never, &reqs[NOTHING]));
    OK(rank_iconnect(ctx, address, &other, &never, &reqs[SECRET]));
    OK(rank_iconnect(ctx, address, &opts, &never, &reqs[FULL]));
    OK(rank_iconnect(ctx, mute, &fast, &never, &reqs[SLOW]));
    OK(rank_iconnect(ctx, mute, &opts, &never, &reqs[CANCELED]));
    STATUS(rank_wait_timed(&reqs[CANCELED], SECOND / 20, NULL), RANK_ERR_TIMED_OUT);
    OK(rank_cancel(&reqs[CANCELED]));
    CHECK(rank_waitall(N, reqs, env) != RANK_OK);
    for (int i = 0; i < N; i++)
        mp_check_status(__FILE__, __LINE__, "a failed attempt", env[i].status, want[i]);
    CHECK(mp_now() - begun >= 0.5 && mp_now() - begun < 4.5); /* none took the 5 s of the others */
    CHECK(never == RANK_TEAM_NULL);
    STATUS(rank_connect(ctx, mute, &fast, &never), RANK_ERR_TIMED_OUT);
    OK(rank_iconnect(ctx, mute, &opts, &never, &reqs[0]));
    OK(rank_request_free(&reqs[0]));
    OK(rank_iconnect(ctx, mute, &opts, &never, &reqs[0]));
    CHECK(pthread_create(&thread, NULL, wait_closed, &reqs[0]) == 0);
    pair_sleep(0.1);
    pair_meet(p);
    OK(rank_ctx_close(&ctx, 20 * SECOND));
    CHECK(pthread_join(thread, NULL) == 0 && never == RANK_TEAM_NULL);
    close(fd);
}

/* The listener's process is killed while it has the handshakes in its socket. */
static void killed_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conns[8];
    rank_request_t reqs[8];
    char address[PAIR_ADDRESS];

    if (p->me == 0) {
        pair_listen(p, ctx, &opts);
        pair_meet(p);
        kill(getpid(), SIGKILL);
    }
    pair_get(p, address, sizeof(address));
    opts.timeout_ns = 60 * SECOND;
    for (int i = 0; i < 8; i++)
        OK(rank_iconnect(ctx, address, &opts, &conns[i], &reqs[i]));
    for (int i = 0; i < 20; i++)
        OK(rank_ctx_progress(ctx));
    pair_meet(p);
    for (int i = 0; i < 8; i++)
        STATUS(rank_wait(&reqs[i], NULL), RANK_ERR_UNREACHABLE);
    OK(rank_ctx_close(&ctx, SECOND));
}

/* Side 0 is told of the end of side 1. */
static void end_side(struct pair *p, bool killed)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_SERIALIZED, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = p->me == 0 ? pair_listen(p, ctx, &opts) : RANK_LISTENER_NULL;
    rank_team_t conn = pair_connect(p, ctx, listener), copy;
    char c = 0;

    OK(rank_team_dup(conn, &copy));
    calls = 0;
    if (p->me == 0) {
        OK(rank_on_death(conn, death, NULL));
        OK(rank_on_death(conn, death, &calls)); /* in its place */
        OK(rank_on_death(copy, death, &c));
        OK(rank_on_death(copy, NULL, NULL)); /* taken back */
    }
    OK(rank_barrier(conn));
    pair_meet(p);
    if (p->me == 1) {
        if (killed)
            kill(getpid(), SIGKILL);
        OK(rank_on_death(conn, death, &calls));
        OK(rank_disconnect(&conn, 20 * SECOND)); /* its own: no call */
        OK(rank_ctx_close(&ctx, 20 * SECOND));
        CHECK(calls == 0);
        return;
    }
    for (double until = mp_now() + 30; !calls && mp_now() < until;)
        OK(rank_ctx_progress(ctx));
    CHECK(calls == 1 && called_rank == 0);
    STATUS(called_with, killed ? RANK_ERR_PEER_DEAD : RANK_ERR_CLOSED);
    OK(rank_on_death(copy, death, &calls)); /* that it has ended already is told, too */
    for (int i = 0; i < 100; i++)
        OK(rank_ctx_progress(ctx));
    CHECK(calls == 2);
    OK(rank_team_free(&copy));
    OK(rank_disconnect(&conn, SECOND));
    STATUS(rank_on_death(conn, death, NULL), RANK_ERR_HANDLE);
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

static void closed_end_side(struct pair *p)
{
    end_side(p, false);
}

static void killed_end_side(struct pair *p)
{
    end_side(p, true);
}

int main(void)
{
    bool ok = pair_run("each way to fail", fail_side, 0, 60, false);

    ok &= pair_run("the listener is killed", killed_side, 0, 60, true);
    for (int way = 0; way < PAIR_WAYS; way++) {
        if (!pair_use(way))
            continue;
        ok &= pair_run("many at once", many_side, 0, 100, false);
        ok &= pair_run("told of a close", closed_end_side, 0, 60, false);
        ok &= pair_run("told of a death", killed_end_side, 0, 60, true);
    }
    return ok ? 0 : 1;
}
