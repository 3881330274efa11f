/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_faults.c: let a side die, stop, leave or fork.
 *
 * All calls with a dead side end in 0.5 s (death_clock.h). Other bounds are generous: tests share the machine with others.
 */
#include "tests/conn/conn_pair.h"
#include "tests/conn/death_clock.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BIG = 32 << 20, BLOCKS = 64, BLOCK = 65536 };
static const double death_s = 0.5, close_s = 5.0;

static bool pair_has_come(const struct pair *p)
{
    struct pollfd came = {.fd = p->in, .events = POLLIN};

    return poll(&came, 1, 0) != 0;
}

/* Which call is the survivor in when the other side is killed? */
enum moment {
    IN_RECV, IN_SEND, IN_PUT, IN_GET, IN_WRITE_LIST, IN_READ_LIST, IN_MPROBE, IN_BARRIER, /* after the death, too */
    IN_SIGNAL, IN_DEREG, IN_DISCONNECT, MOMENTS
};
static const char *const moment_names[] = {"recv", "send", "put", "get", "write list", "read list", "mprobe", "barrier",
                                           "signal wait", "dereg", "disconnect"};
static enum moment moment;
static int killed; /* the side that dies */

/* Memory of the program, and shared memory. */
struct region {
    char *data;
    rank_mem_t mem, shared, remote, remote_shared;
};

static void open_key(rank_mem_t mem, rank_team_t conn, rank_mem_t *remote)
{
    int other = 1 - rank_team_rank(conn);
    unsigned char key[RANK_RKEY_MAX], theirs[RANK_RKEY_MAX];
    size_t len = sizeof(key);

    OK(rank_rkey_pack(mem, key, &len));
    OK(rank_sendrecv(key, sizeof(key), RANK_BYTE, other, 9, theirs, sizeof(theirs), RANK_BYTE, other, 9, conn, NULL));
    OK(rank_rkey_open(conn, other, theirs, len, remote)); /* the owner answers while it waits */
}

static void open_region(struct pair *p, struct region *r, rank_ctx_t ctx, rank_team_t conn)
{
    void *ptr;

    r->data = aligned_alloc(4096, BIG);
    CHECK(r->data);
    memset(r->data, 1, BIG);
    OK(rank_ctx_reg(ctx, r->data, BIG, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &r->mem));
    OK(rank_ctx_alloc(ctx, BIG, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &ptr, &r->shared));
    open_key(r->mem, conn, &r->remote);
    open_key(r->shared, conn, &r->remote_shared);
    OK(rank_barrier(conn));
    pair_meet(p);
}

static void close_region(struct region *r, bool disconnected)
{
    rank_status_t st[2] = {rank_rkey_close(&r->remote), rank_rkey_close(&r->remote_shared)};

    CHECK(!disconnected || (st[0] == RANK_ERR_HANDLE && st[1] == RANK_ERR_HANDLE));
    if (r->mem)
        OK(rank_dereg(&r->mem));
    if (r->shared)
        OK(rank_dereg(&r->shared));
}

/* Blocks of both memories, in turn; a write has a notice. */
static rank_status_t move_list(rank_xfer_op_t op, rank_team_t conn, const struct region *r, char *buf)
{
    const rank_notice_t notice = {7, buf, 64};
    rank_block_t blocks[BLOCKS];
    rank_status_t st;
    rank_request_t req;

    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = (rank_block_t){buf + (size_t)i * BLOCK * 2, BLOCK, i % 2 ? r->remote : r->remote_shared, (int64_t)i * BLOCK * 2};
    st = rank_xfer(op, blocks, BLOCKS, 1 - rank_team_rank(conn), conn, op == RANK_XFER_WRITE ? &notice : NULL, &req);
    return st ? st : rank_wait(&req, NULL);
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
        case IN_WRITE_LIST:
        case IN_READ_LIST:
            st = move_list(at == IN_WRITE_LIST ? RANK_XFER_WRITE : RANK_XFER_READ, conn, r, buf);
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

/* The side that dies makes progress, or receives a long message that is under way. It does not answer to an end of memory. */
static void die_side(struct pair *p, rank_team_t conn, char *buf)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, kill_later, NULL) == 0);
    for (;;) {
        rank_envelope_t e;
        if (moment == IN_DEREG)
            pair_sleep(1);
        else if (moment == IN_SEND)
            rank_recv(buf, BIG, RANK_BYTE, 1 - rank_team_rank(conn), 6, conn, NULL);
        else
            rank_probe(1 - rank_team_rank(conn), 8, conn, &e);
    }
    (void)p;
}

/* A second context of the survivor is a peer that lives. */
struct neighbor {
    rank_ctx_t ctx;
    rank_listener_t listener;
    rank_team_t here, there;
    char address[PAIR_ADDRESS];
};

static void *neighbor_connect(void *arg)
{
    struct neighbor *n = arg;
    rank_conn_opts_t opts = pair_opts();

    OK(rank_connect(n->ctx, n->address, &opts, &n->there));
    return NULL;
}

static void accept_neighbor(struct neighbor *n, rank_listener_t listener)
{
    size_t len = sizeof(n->address);
    pthread_t thread;

    n->ctx = pair_context(RANK_THREAD_MULTIPLE, 1); /* it answers to the end of a registration */
    OK(rank_listener_address(listener, n->address, &len));
    CHECK(pthread_create(&thread, NULL, neighbor_connect, n) == 0);
    OK(rank_accept(listener, 20 * SECOND, &n->here));
    CHECK(pthread_join(thread, NULL) == 0);
}

/* ctx: of the survivor. Over UCX a message leaves with the next progress after the peer has accepted. */
static void exchange_and_close(struct neighbor *n, rank_ctx_t ctx)
{
    int x = 5, y = 0, done = 0;
    rank_request_t req;

    OK(rank_send(&x, 1, RANK_INT32, 0, 1, n->here));
    OK(rank_irecv(&y, 1, RANK_INT32, 1, 1, n->there, &req));
    while (!done) {
        OK(rank_ctx_progress(ctx));
        OK(rank_test(&req, &done, NULL));
    }
    CHECK(y == x);
    rank_ctx_close(&n->ctx, 0); /* the other context may make no progress */
}

/* The call that the survivor is in ends in time, and so do all calls after it. Another connection goes on. */
static void kill_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, moment != IN_DEREG && p->seed % 2 ? 1 : 0);
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = p->me == 0 ? pair_listen(p, ctx, &opts) : NULL, own;
    rank_team_t conn = pair_connect(p, ctx, listener);
    struct neighbor neighbor = {.ctx = NULL};
    char *buf = calloc(1, BIG);
    struct region r;
    double begin;

    CHECK(buf);
    open_region(p, &r, ctx, conn);
    if (p->me == killed) {
        pair_meet(p);
        die_side(p, conn, buf);
    }
    OK(rank_listen(ctx, "127.0.0.1:0", &opts, &own));
    accept_neighbor(&neighbor, own);
    death_clock_start(p);
    pair_meet(p);
    if (moment == IN_DISCONNECT) {
        pair_sleep(0.1); /* the other side may be dead by now, or not */
        OK(rank_disconnect(&conn, 20 * SECOND));
    } else if (moment == IN_DEREG) {
        OK(rank_dereg_timed(&r.shared, -1));
        OK(rank_dereg_timed(&r.mem, -1));
    } else {
        STATUS(call_on(moment, conn, &r, buf), RANK_ERR_PEER_DEAD);
    }
    death_clock_check(moment_names[moment], death_s);
    for (int i = 0; i <= IN_BARRIER && conn; i++) {
        begin = mp_now();
        STATUS(call_on((enum moment)i, conn, &r, buf), RANK_ERR_PEER_DEAD);
        if (mp_now() - begin > death_s + death_clock_grace())
            mp_fail(__FILE__, __LINE__, "%s takes long after the death", moment_names[i]);
    }
    death_clock_stop();
    exchange_and_close(&neighbor, ctx);
    begin = mp_now();
    close_region(&r, !conn);
    OK(rank_ctx_close(&ctx, SECOND));
    free(r.data);
    free(buf);
    CHECK(mp_now() - begin < close_s);
}

/* ------------------------------------------------------------------- in the handshake */

/* Side 1 dies between its connect and the end of the handshake, or the listener's process does. The listener goes on. */
static void shake_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    char address[PAIR_ADDRESS] = "";
    struct neighbor neighbor;
    rank_listener_t listener = NULL;
    rank_team_t conn;
    char c;

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
    death_clock_start(p);
    if (p->me == 1) { /* nothing makes progress at the listener */
        STATUS(rank_connect(ctx, address, &opts, &conn), RANK_ERR_UNREACHABLE);
        death_clock_check("connect", death_s);
    } else {
        rank_status_t st = rank_accept(listener, SECOND / 2, &conn);
        CHECK(st == RANK_ERR_TIMED_OUT || st == RANK_OK);
        if (!st) { /* the client was through before it died */
            STATUS(rank_recv(&c, 1, RANK_BYTE, 0, 1, conn, NULL), RANK_ERR_PEER_DEAD);
            death_clock_check("receive from a client that has died", death_s + 0.5);
        }
        accept_neighbor(&neighbor, listener);
        exchange_and_close(&neighbor, ctx);
    }
    death_clock_stop();
    OK(rank_ctx_close(&ctx, SECOND));
}

/* The other side has connected and dies before it is accepted. */
static void accept_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conn;
    char c;

    if (p->me == 1) {
        conn = pair_connect(p, ctx, NULL);
        if (!pair_by_ucx) /* which sends once the other side has accepted */
            OK(rank_send(&c, 1, RANK_BYTE, 1, 1, conn));
        pair_meet(p);
        pair_sleep(0.1);
        kill(getpid(), SIGKILL);
    } else {
        rank_listener_t listener = pair_listen(p, ctx, &opts);

        do /* the handshake */
            OK(rank_ctx_progress(ctx));
        while (!pair_has_come(p));
        death_clock_start(p);
        pair_meet(p);
        if (p->seed % 2) /* dead before, or after */
            pair_sleep(0.3);
        OK(rank_accept(listener, 20 * SECOND, &conn));
        if (!pair_by_ucx)
            OK(rank_recv(&c, 1, RANK_BYTE, 0, 1, conn, NULL)); /* it was sent whole */
        STATUS(rank_recv(&c, 1, RANK_BYTE, 0, 1, conn, NULL), RANK_ERR_PEER_DEAD);
        death_clock_check("accept", p->seed % 2 ? death_s + 0.3 : death_s);
        death_clock_stop();
        OK(rank_ctx_close(&ctx, SECOND));
    }
}

/* -------------------------------------------------------------- leaving in other ways */

/* Side 1 exits without a close: what it has sent is received before the error, also if this side sends meanwhile. */
static void exit_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conn = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    static char long_one[4096];
    int x = 41;

    if (p->me == 1) {
        for (int i = 0; i < 100; i++) {
            OK(rank_send(&i, 1, RANK_INT32, 1, 3, conn));
            if (i == 50)
                OK(rank_barrier(conn));
        }
        OK(rank_ctx_progress(ctx)); /* sends what waits for company */
        pair_meet(p);
        if (pair_by_ucx)
            _exit(0); /* to LeakSanitizer the memory of UCX's open context is a leak */
        exit(0);
    }
    OK(rank_barrier(conn));
    pair_meet(p);
    pair_sleep(0.3);
    for (int i = 0; i < 3 && p->seed % 2; i++) {
        rank_send(long_one, sizeof(long_one), RANK_BYTE, 0, 3, conn);
        pair_sleep(0.05); /* the host of the dead process refuses it */
    }
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
        for (int i = 0; i <= IN_BARRIER; i++)
            if (call_on((enum moment)i, conn, &r, buf) != RANK_ERR_CLOSED)
                mp_fail(__FILE__, __LINE__, "%s does not return RANK_ERR_CLOSED", moment_names[i]);
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
        begin = mp_now();
        for (int i = 0; i < 20; i++) /* the socket gets full */
            OK(rank_isend(buf, 60000, RANK_BYTE, 0, 2, conn, &reqs[i + 2]));
        OK(rank_isend(buf, BIG, RANK_BYTE, 0, 1, conn, &reqs[0]));
        OK(rank_irecv(&x, 1, RANK_INT32, 0, 1, conn, &reqs[1]));
        STATUS(rank_waitall_timed(22, reqs, 4 * SECOND, NULL), RANK_ERR_TIMED_OUT);
        CHECK(mp_now() - begin < 4 + close_s);
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
        begin = mp_now();
        pair_get(p, &pid, sizeof(pid));
        CHECK(kill(pid, 0) == 0); /* the child lives */
        CHECK(mp_now() - begin < death_s);
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
    struct region r;
    rank_mem_t more;
    double begin;
    void *ptr;

    open_region(p, &r, ctx, conn);
    begin = mp_now();
    if (p->me == 1) {
        pair_meet(p); /* without progress until then */
        while (!st && mp_now() - begin < 20) {
            OK(rank_ctx_progress(ctx));
            st = rank_get(r.data, 64, 1, r.remote, 0);
        }
        CHECK(st == RANK_ERR_HANDLE);
        for (st = RANK_OK; !st && mp_now() - begin < 20;) {
            OK(rank_ctx_progress(ctx));
            st = rank_get(r.data, 64, 1, r.remote_shared, 0);
        }
        CHECK(st == RANK_ERR_HANDLE);
        pair_meet(p);
        pair_sleep(0.3);
        kill(getpid(), SIGKILL);
    }
    OK(rank_dereg(&r.shared));
    STATUS(rank_dereg_timed(&r.mem, SECOND / 5), pair_by_socket || pair_by_ucx ? RANK_OK : RANK_ERR_TIMED_OUT);
    CHECK(r.mem == RANK_MEM_NULL && mp_now() - begin < close_s);
    pair_meet(p);
    death_clock_start(p);
    while (!pair_has_come(p))
        OK(rank_ctx_progress(ctx)); /* for the other side's gets */
    pair_meet(p);
    OK(rank_ctx_alloc(ctx, 64, RANK_ACCESS_READ, &ptr, &more));
    OK(rank_dereg_timed(&more, 20 * SECOND)); /* until the other side is gone */
    death_clock_check("dereg", death_s);
    death_clock_stop();
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
                 {"accept", accept_side, true}, {"fork", fork_side, true}, {"end of a registration", revoke_side, true}};
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
        for (uint64_t seed = 0; seed < (cases[i].side == waiters_side || cases[i].side == accept_side || cases[i].side == exit_side ? 2 : 1) && strstr(cases[i].name, only); seed++)
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
