/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_faults.c: let a side die, stop, leave or fork.
 *
 * Every wait has a bound, which is generous: tests share the machine with others.
 */
#include "tests/conn/conn_pair.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BIG = 32 << 20 };
static const double death_s = 5.0; /* the aim is 0.5 s on an idle machine */

/* Which call is the survivor in when the other side is killed? */
enum moment { IN_RECV, IN_SEND, IN_PUT, IN_GET, IN_MPROBE, IN_SIGNAL, IN_BARRIER, IN_DISCONNECT, MOMENTS };
static const char *const moment_names[] = {"recv", "send", "put", "get", "mprobe", "signal wait", "barrier", "disconnect"};
static enum moment moment;
static int killed; /* the side that dies */

struct region {
    char *data;
    rank_mem_t mem, remote;
};

static void open_region(struct pair *p, struct region *r, rank_ctx_t ctx, rank_team_t conn)
{
    int other = 1 - rank_team_rank(conn);
    unsigned char key[RANK_RKEY_MAX], theirs[RANK_RKEY_MAX];
    size_t len = sizeof(key);

    r->data = aligned_alloc(4096, BIG);
    CHECK(r->data);
    memset(r->data, 1, BIG);
    OK(rank_ctx_reg(ctx, RANK_MEM_HOST, r->data, BIG, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &r->mem));
    OK(rank_rkey_pack(r->mem, key, &len));
    OK(rank_sendrecv(key, sizeof(key), RANK_BYTE, other, 9, theirs, sizeof(theirs), RANK_BYTE, other, 9, conn, NULL));
    OK(rank_rkey_open(conn, other, theirs, len, &r->remote)); /* the owner answers while it waits */
    OK(rank_barrier(conn));
    pair_meet(p);
}

/* Call until a call fails; returns its status. */
static rank_status_t call_on(enum moment at, rank_team_t conn, struct region *r, char *buf)
{
    int other = 1 - rank_team_rank(conn);
    rank_status_t st = RANK_OK;
    rank_message_t message;
    rank_request_t req;

    while (!st) {
        switch (at) {
        case IN_RECV:
            st = rank_recv(buf, BIG, RANK_BYTE, other, 5, conn, NULL);
            break;
        case IN_SEND:
            st = rank_isend(buf, BIG, RANK_BYTE, other, 6, conn, &req);
            if (!st)
                st = rank_wait(&req, NULL);
            break;
        case IN_PUT:
            st = rank_put(buf, BIG, other, r->remote, 0);
            if (!st)
                st = rank_flush(r->remote, other);
            break;
        case IN_GET:
            st = rank_get(buf, BIG, other, r->remote, 0);
            break;
        case IN_MPROBE:
            st = rank_mprobe(other, 5, conn, &message, NULL);
            break;
        case IN_SIGNAL:
            st = rank_signal_wait(r->mem, 0, RANK_CMP_EQ, 77, RANK_ANY_SOURCE, NULL);
            break;
        default:
            st = rank_barrier(conn);
        }
    }
    return st;
}

static void *kill_later(void *arg)
{
    (void)arg;
    pair_sleep(0.1);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* The side that dies makes progress, or sends a long message that is under way. */
static void die_side(struct pair *p, rank_team_t conn, char *buf)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, kill_later, NULL) == 0);
    for (;;) {
        rank_envelope_t e;
        if (moment == IN_SEND)
            rank_recv(buf, BIG, RANK_BYTE, 1 - rank_team_rank(conn), 6, conn, NULL);
        else
            rank_probe(1 - rank_team_rank(conn), 8, conn, &e);
    }
    (void)p;
}

/* Two connections: the one that is in use, and one to a third process, which goes on. */
static void kill_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, p->seed % 2 ? 1 : 0);
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = p->me == 0 ? pair_listen(p, ctx, &opts) : NULL;
    rank_team_t conn = pair_connect(p, ctx, listener);
    char *buf = calloc(1, BIG);
    struct region r;
    double begin;

    CHECK(buf);
    open_region(p, &r, ctx, conn);
    if (p->me == killed)
        die_side(p, conn, buf);
    if (moment == IN_DISCONNECT) {
        pair_sleep(0.2); /* the other side may be dead by now, or not */
        begin = pair_now();
        OK(rank_disconnect(&conn, 20 * SECOND));
    } else {
        STATUS(call_on(moment, conn, &r, buf), RANK_ERR_PEER_DEAD);
        begin = pair_now();
        for (int i = 0; i < MOMENTS - 1; i++)
            if (i != IN_SIGNAL)
                STATUS(call_on((enum moment)i, conn, &r, buf), RANK_ERR_PEER_DEAD);
    }
    CHECK(pair_now() - begin < death_s);
    if (conn)
        rank_rkey_close(&r.remote);
    else
        STATUS(rank_rkey_close(&r.remote), RANK_ERR_HANDLE);
    OK(rank_dereg(&r.mem));
    OK(rank_ctx_close(&ctx, SECOND));
    free(r.data);
    free(buf);
    CHECK(pair_now() - begin < 2 * death_s);
}

/* ------------------------------------------------------------------- in the handshake */

/* Side 1 dies between its connect and the end of the handshake, or the listener's process does. */
static void shake_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    char address[PAIR_ADDRESS] = "";
    rank_listener_t listener = NULL;
    rank_team_t conn;
    double begin;

    if (p->me == 0)
        listener = pair_listen(p, ctx, &opts);
    else
        pair_get(p, address, sizeof(address));
    if (p->me == killed) {
        if (p->me == 1) {
            opts.timeout_ns = SECOND / 1000000; /* it gives up in the middle, and its process ends */
            rank_connect(ctx, address, &opts, &conn);
        } else {
            pair_sleep(0.1);
        }
        kill(getpid(), SIGKILL);
    }
    begin = pair_now();
    if (p->me == 1) { /* nothing makes progress at the listener */
        STATUS(rank_connect(ctx, address, &opts, &conn), RANK_ERR_UNREACHABLE);
        CHECK(pair_now() - begin < death_s);
    } else {
        rank_status_t st = rank_accept(listener, SECOND / 2, &conn);
        CHECK(st == RANK_ERR_TIMED_OUT || st == RANK_OK);
    }
    OK(rank_ctx_close(&ctx, SECOND));
}

/* -------------------------------------------------------------- leaving in other ways */

/* Side 1 exits without a close: what it has sent is received before the error. */
static void exit_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conn = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    int x = 41;

    if (p->me == 1) {
        for (int i = 0; i < 100; i++)
            OK(rank_send(&i, 1, RANK_INT32, 1, 3, conn));
        OK(rank_barrier(conn));
        if (pair_by_ucx)
            _exit(0); /* to LeakSanitizer the memory of UCX's open context is a leak */
        exit(0);
    }
    OK(rank_barrier(conn));
    pair_sleep(0.3);
    for (int i = 0; i < 100; i++) {
        OK(rank_recv(&x, 1, RANK_INT32, 0, 3, conn, NULL));
        CHECK(x == i);
    }
    STATUS(rank_recv(&x, 1, RANK_INT32, 0, 3, conn, NULL), RANK_ERR_PEER_DEAD);
    STATUS(rank_send(&x, 1, RANK_INT32, 0, 3, conn), RANK_ERR_PEER_DEAD);
    OK(rank_disconnect(&conn, SECOND));
    OK(rank_ctx_close(&ctx, SECOND));
}

/* Side 1 disconnects in peace: RANK_ERR_CLOSED in every call, after what it has sent. */
static void close_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conn = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    char *buf = calloc(1, BIG);
    struct region r;
    int x;

    CHECK(buf);
    open_region(p, &r, ctx, conn);
    if (p->me == 1) {
        for (int i = 0; i < 100; i++)
            OK(rank_send(&i, 1, RANK_INT32, 1, 3, conn));
        OK(rank_disconnect(&conn, 20 * SECOND));
    } else {
        for (int i = 0; i < 100; i++) {
            OK(rank_recv(&x, 1, RANK_INT32, 0, 3, conn, NULL));
            CHECK(x == i);
        }
        for (int i = 0; i < MOMENTS - 1; i++)
            if (i != IN_SIGNAL && call_on((enum moment)i, conn, &r, buf) != RANK_ERR_CLOSED)
                pair_fail(__FILE__, __LINE__, "%s does not return RANK_ERR_CLOSED", moment_names[i]);
    }
    if (conn)
        rank_rkey_close(&r.remote);
    OK(rank_ctx_close(&ctx, SECOND));
    free(r.data);
    free(buf);
}

struct waiter {
    rank_team_t conn;
    rank_listener_t listener;
    int64_t tag;
    rank_status_t status;
};

static _Atomic int nwaiters;

static void *wait_in_recv(void *arg)
{
    struct waiter *w = arg;
    char c;

    nwaiters++;
    w->status = rank_recv(&c, 1, RANK_BYTE, 1 - rank_team_rank(w->conn), w->tag, w->conn, NULL);
    return NULL;
}

static void *wait_in_mprobe(void *arg)
{
    struct waiter *w = arg;
    rank_message_t message;

    nwaiters++;
    w->status = rank_mprobe(1 - rank_team_rank(w->conn), w->tag, w->conn, &message, NULL);
    return NULL;
}

static void *wait_in_accept(void *arg)
{
    struct waiter *w = arg;

    nwaiters++;
    w->status = rank_accept(w->listener, -1, &w->conn);
    return NULL;
}

/* Disconnect and close a listener while threads wait. */
static void waiters_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, p->seed % 2 ? 1 : 0);
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = p->me == 0 ? pair_listen(p, ctx, &opts) : NULL;
    rank_team_t conn = pair_connect(p, ctx, listener);
    void *(*const waits[])(void *) = {wait_in_recv, wait_in_mprobe, wait_in_mprobe, listener ? wait_in_accept : wait_in_recv};
    struct waiter w[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        w[i] = (struct waiter){conn, listener, i, RANK_OK};
        CHECK(pthread_create(&threads[i], NULL, waits[i], &w[i]) == 0);
    }
    while (nwaiters < 4)
        pair_sleep(0.001);
    pair_sleep(0.2);
    if (p->me == 0) {
        OK(rank_listener_close(&listener));
        OK(rank_disconnect(&conn, 20 * SECOND));
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        STATUS(w[i].status, RANK_ERR_CLOSED);
    }
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* A stopped process is alive: timed waits end, and nothing else does. */
static void stop_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    char *buf = calloc(1, BIG);
    rank_request_t reqs[22];
    rank_team_t conn;
    double begin;
    int x = 0;

    CHECK(buf);
    opts.silence_ns = SECOND;
    conn = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    pair_meet(p);
    if (p->me == 0) {
        kill(p->other, SIGSTOP);
        begin = pair_now();
        for (int i = 0; i < 20; i++) /* the socket gets full */
            OK(rank_isend(buf, 60000, RANK_BYTE, 0, 2, conn, &reqs[i + 2]));
        OK(rank_isend(buf, BIG, RANK_BYTE, 0, 1, conn, &reqs[0]));
        OK(rank_irecv(&x, 1, RANK_INT32, 0, 1, conn, &reqs[1]));
        STATUS(rank_waitall_timed(22, reqs, 4 * SECOND, NULL), RANK_ERR_TIMED_OUT);
        CHECK(pair_now() - begin < 4 + death_s);
        kill(p->other, SIGCONT);
        OK(rank_waitall_timed(22, reqs, 20 * SECOND, NULL));
        CHECK(x == 5);
        OK(rank_barrier(conn));
        kill(p->other, SIGSTOP);
        STATUS(rank_disconnect(&conn, SECOND / 5), RANK_ERR_TIMED_OUT);
        kill(p->other, SIGCONT);
    } else {
        for (int i = 0; i < 20; i++)
            OK(rank_recv(buf, 60000, RANK_BYTE, 1, 2, conn, NULL));
        OK(rank_recv(buf, BIG, RANK_BYTE, 1, 1, conn, NULL));
        x = 5;
        OK(rank_send(&x, 1, RANK_INT32, 1, 1, conn));
        OK(rank_barrier(conn));
        STATUS(rank_recv(&x, 1, RANK_INT32, 1, 1, conn, NULL), RANK_ERR_CLOSED);
    }
    OK(rank_ctx_close(&ctx, SECOND));
    free(buf);
}

/* ---------------------------------------------------------------------------- fork */

/* A child of side 1 outlives it: side 0 sees the death, and the child's calls return RANK_ERR_STATE. */
static void fork_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t own = NULL, listener = p->me == 0 ? pair_listen(p, ctx, &opts) : NULL;
    rank_team_t conn = pair_connect(p, ctx, listener), none;
    double begin;
    pid_t pid;
    char c;

    if (p->me == 0) {
        STATUS(rank_recv(&c, 1, RANK_BYTE, 0, 1, conn, NULL), RANK_ERR_PEER_DEAD);
        begin = pair_now();
        pair_get(p, &pid, sizeof(pid));
        CHECK(kill(pid, 0) == 0); /* the child lives */
        CHECK(pair_now() - begin < death_s);
        kill(pid, SIGTERM);
        OK(rank_ctx_close(&ctx, SECOND));
        return;
    }
    OK(rank_listen(ctx, "127.0.0.1:0", &opts, &own));
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        rank_ctx_t fresh;

        STATUS(rank_send(&c, 1, RANK_BYTE, 1, 1, conn), RANK_ERR_STATE);
        STATUS(rank_accept(own, 0, &none), RANK_ERR_STATE);
        STATUS(rank_ctx_progress(ctx), RANK_ERR_STATE);
        STATUS(rank_disconnect(&conn, 0), RANK_ERR_STATE);
        STATUS(rank_listener_close(&own), RANK_ERR_STATE);
        STATUS(rank_ctx_close(&ctx, 0), RANK_ERR_STATE);
        fresh = pair_context(RANK_THREAD_MULTIPLE, 0);
        OK(rank_ctx_close(&fresh, 0));
        pid = getpid();
        pair_put(p, &pid, sizeof(pid));
        pair_sleep(60);
        _exit(0);
    }
    pair_sleep(0.3);
    kill(getpid(), SIGKILL);
}

/* Side 0 ends registrations: of a peer that answers late, and of one that dies. */
static void revoke_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conn = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    rank_status_t st = RANK_OK;
    struct pollfd came = {.fd = p->in, .events = POLLIN};
    struct region r;
    rank_mem_t more;
    double begin;
    void *ptr;

    open_region(p, &r, ctx, conn);
    begin = pair_now();
    if (p->me == 1) {
        pair_meet(p); /* without progress until then */
        while (!st && pair_now() - begin < 20) {
            OK(rank_ctx_progress(ctx));
            st = rank_get(r.data, 64, 1, r.remote, 0);
        }
        CHECK(st == RANK_ERR_HANDLE);
        pair_meet(p);
        pair_sleep(0.3);
        kill(getpid(), SIGKILL);
    }
    STATUS(rank_dereg_timed(&r.mem, SECOND / 5), pair_by_socket || pair_by_ucx ? RANK_OK : RANK_ERR_TIMED_OUT);
    CHECK(r.mem == RANK_MEM_NULL && pair_now() - begin < death_s);
    pair_meet(p);
    while (poll(&came, 1, 0) == 0)
        OK(rank_ctx_progress(ctx)); /* for the other side's gets */
    pair_meet(p);
    OK(rank_ctx_alloc(ctx, RANK_MEM_HOST, 64, RANK_ACCESS_READ, &ptr, &more));
    begin = pair_now();
    OK(rank_dereg_timed(&more, 20 * SECOND)); /* the other side is gone */
    CHECK(pair_now() - begin < death_s);
    rank_rkey_close(&r.remote);
    OK(rank_ctx_close(&ctx, SECOND));
    free(r.data);
}

static bool run_all(const char *only)
{
    static const struct {
        const char *name;
        void (*side)(struct pair *p);
        bool kills;
    } cases[] = {{"exit without close", exit_side, false}, {"disconnect", close_side, false},
                 {"disconnect and waiting threads", waiters_side, false}, {"a stopped process", stop_side, false},
                 {"fork", fork_side, true}, {"end of a registration", revoke_side, true}};
    char name[64];
    bool ok = true;

    for (int i = 0; i < 2 * MOMENTS; i++) {
        moment = (enum moment)(i / 2);
        killed = i % 2;
        snprintf(name, sizeof(name), "kill side %d, in %s", killed, moment_names[moment]);
        if (strstr(name, only))
            ok &= pair_run(name, kill_side, (uint64_t)moment, 60, true);
    }
    for (killed = 0; killed < 2; killed++)
        if (strstr("handshake", only))
            ok &= pair_run("handshake", shake_side, (uint64_t)killed, 60, true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint64_t seed = 0; seed < (cases[i].side == waiters_side ? 2 : 1) && strstr(cases[i].name, only); seed++)
            ok &= pair_run(cases[i].name, cases[i].side, seed, 100, cases[i].kills);
    return ok;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    bool ok = true;

    for (int way = 0; way < PAIR_WAYS; way++)
        ok &= !pair_use(way) || run_all(only);
    return ok ? 0 : 1;
}
