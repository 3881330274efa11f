/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_close.c: close a context while other threads are in its calls.
 *
 * Side 0 closes its context. Each of its threads is in another wait, which ends. The peer of one connection makes no
 * progress: the close cannot end in peace, then. --seed N, --rounds N.
 */
#include "tests/conn/conn_pair.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum wait_in {
    WAIT_ACCEPT, WAIT_CONNECT, WAIT_RECV, WAIT_SSEND, WAIT_MPROBE, WAIT_ALL, WAIT_SOME, WAIT_SIGNAL, WAIT_TIMED, WAIT_BARRIER,
    WAIT_PROGRESS, WAIT_MEMORY, WAIT_DEREG, WAIT_DISCONNECT, WAITS
};
static const char *const wait_names[WAITS] = {"accept", "connect", "recv", "ssend", "mprobe", "waitall", "waitsome",
                                              "signal wait", "timed signal wait", "barrier", "progress", "reg and dereg", "dereg", "disconnect"};

struct closing {
    rank_ctx_t ctx;
    rank_listener_t listener;
    rank_team_t conn, idle; /* the peer of idle makes no progress */
    rank_mem_t mem, revoked;
    char silent[PAIR_ADDRESS]; /* of a socket that does not answer */
};

struct caller {
    struct closing *of;
    rank_ctx_t ctx; /* the close clears the handle in of */
    enum wait_in in;
    rank_status_t status;
    pthread_t thread;
    _Atomic int tid; /* 0: it has not begun */
};

static rank_status_t wait_for_many(struct caller *w, bool some)
{
    int64_t ndone, which[2];
    rank_request_t reqs[2];
    char bytes[2];

    for (int i = 0; i < 2; i++)
        OK(rank_irecv(&bytes[i], 1, RANK_BYTE, 1, 70 + i, w->of->conn, &reqs[i]));
    return some ? rank_waitsome(2, reqs, &ndone, which, NULL) : rank_waitall(2, reqs, NULL);
}

/* The close may come between the two. */
static rank_status_t reg_and_dereg(rank_ctx_t ctx)
{
    static char memory[64];
    rank_mem_t mem;
    rank_status_t st = rank_ctx_reg(ctx, memory, sizeof(memory), RANK_ACCESS_READ, &mem);

    return st ? st : rank_dereg(&mem);
}

static rank_status_t call_once(struct caller *w)
{
    rank_conn_opts_t opts = pair_opts();
    struct closing *c = w->of;
    rank_message_t message;
    rank_team_t none;
    uint64_t seen;
    char byte = 0;

    switch (w->in) {
    case WAIT_ACCEPT:
        return rank_accept(c->listener, -1, &none);
    case WAIT_CONNECT:
        return rank_connect(w->ctx, c->silent, &opts, &none);
    case WAIT_RECV:
        return rank_recv(&byte, 1, RANK_BYTE, 1, 50, c->conn, NULL);
    case WAIT_SSEND:
        return rank_ssend(&byte, 1, RANK_BYTE, 1, 51, c->conn);
    case WAIT_MPROBE:
        return rank_mprobe(RANK_ANY_SOURCE, 52, c->conn, &message, NULL);
    case WAIT_ALL:
    case WAIT_SOME:
        return wait_for_many(w, w->in == WAIT_SOME);
    case WAIT_SIGNAL:
        return rank_signal_wait(c->mem, 0, RANK_CMP_EQ, 77, RANK_ANY_SOURCE, &seen);
    case WAIT_TIMED:
        return rank_signal_wait_timed(c->mem, 0, RANK_CMP_EQ, 77, RANK_ANY_SOURCE, 100 * SECOND, &seen);
    case WAIT_BARRIER:
        return rank_barrier(c->conn);
    case WAIT_PROGRESS:
        return rank_ctx_progress(w->ctx);
    case WAIT_MEMORY:
        return reg_and_dereg(w->ctx);
    case WAIT_DEREG:
        return rank_dereg_timed(&c->revoked, 100 * SECOND);
    default:
        none = c->idle;
        return rank_disconnect(&none, 100 * SECOND);
    }
}

static bool calls_again(enum wait_in in)
{
    return in == WAIT_PROGRESS || in == WAIT_MEMORY;
}

static void *caller_thread(void *arg)
{
    struct caller *w = arg;

    w->tid = gettid();
    do
        w->status = call_once(w);
    while (calls_again(w->in) && w->status == RANK_OK);
    return NULL;
}

/* Is the thread asleep in its call, or at its end, or does it call again and again? */
static bool has_called(const struct caller *w)
{
    char path[48], state = 0;
    bool called;
    FILE *stat;

    if (!w->tid || calls_again(w->in))
        return w->tid;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
    stat = fopen(path, "r");
    if (!stat)
        return true;
    called = fscanf(stat, "%*d (%*[^)]) %c", &state) != 1 || state == 'S';
    fclose(stat);
    return called;
}

/* in_peace: the idle peer makes progress. */
static bool is_expected(enum wait_in in, rank_status_t st, bool in_peace)
{
    if (calls_again(in)) /* a new call, which may find the handle closed */
        return st == RANK_ERR_HANDLE || st == RANK_ERR_CLOSED;
    if (in == WAIT_DISCONNECT)
        return st == RANK_ERR_TIMED_OUT || (in_peace && st == RANK_OK);
    if (in == WAIT_DEREG && (in_peace || pair_by_socket || pair_by_ucx) && st == RANK_OK)
        return true; /* only a near peer maps the memory, and has to let it go */
    if ((in == WAIT_SIGNAL || in == WAIT_TIMED) && in_peace && st == RANK_ERR_PEER_DEAD)
        return true; /* the end of idle by the other thread, before the close */
    return st == RANK_ERR_CLOSED;
}

/* A socket that lets clients connect, and says nothing. */
static int open_silent(char address[PAIR_ADDRESS])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 5) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    snprintf(address, PAIR_ADDRESS, "127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

/* Give the key of memory to the idle peer, which maps it. */
static void share_memory(struct closing *c)
{
    unsigned char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    void *ptr;

    OK(rank_ctx_alloc(c->ctx, 4096, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &ptr, &c->mem));
    OK(rank_ctx_alloc(c->ctx, 4096, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &ptr, &c->revoked));
    OK(rank_rkey_pack(c->revoked, key, &len));
    OK(rank_send(&len, sizeof(len), RANK_BYTE, 1, 1, c->idle));
    OK(rank_send(key, (int64_t)len, RANK_BYTE, 1, 1, c->idle));
    OK(rank_recv(key, 1, RANK_BYTE, 1, 2, c->idle, NULL));
}

static void close_while_called(struct pair *p)
{
    struct closing c = {.ctx = pair_context(RANK_THREAD_MULTIPLE, p->seed % 2 ? 1 : 0)};
    rank_ctx_t other = pair_context(RANK_THREAD_MULTIPLE, 0); /* without any context calls are RANK_ERR_STATE */
    struct caller callers[WAITS];
    uint64_t random = p->seed;
    char address[PAIR_ADDRESS];
    int n = 0, silent = open_silent(c.silent);
    rank_conn_opts_t opts = pair_opts();
    bool in_peace = true;
    rank_status_t st;
    double begin;

    pair_get(p, address, sizeof(address));
    OK(rank_connect(c.ctx, address, &opts, &c.conn));
    pair_get(p, address, sizeof(address));
    OK(rank_connect(c.ctx, address, &opts, &c.idle));
    share_memory(&c);
    OK(rank_listen(c.ctx, "127.0.0.1:0", &opts, &c.listener));
    for (int in = 0; in < WAITS; in++) {
        if (mp_random(&random) % 4 == 0)
            continue;
        callers[n] = (struct caller){.of = &c, .ctx = c.ctx, .in = (enum wait_in)in};
        CHECK(pthread_create(&callers[n].thread, NULL, caller_thread, &callers[n]) == 0);
        n++;
    }
    for (int i = 0; i < n; i++) {
        while (!has_called(&callers[i]))
            pair_sleep(0.001);
    }
    if (mp_random(&random) % 2) /* else the idle peer does not confirm */
        pair_meet(p);
    else
        in_peace = false;
    begin = mp_now();
    st = rank_ctx_close(&c.ctx, in_peace ? 20 * SECOND : SECOND / 10);
    for (int i = 0; i < n; i++) {
        CHECK(pthread_join(callers[i].thread, NULL) == 0);
        if (!is_expected(callers[i].in, callers[i].status, in_peace))
            mp_fail(__FILE__, __LINE__, "%s returns %s", wait_names[callers[i].in], rank_status_string(callers[i].status));
    }
    if (st != (in_peace ? RANK_OK : RANK_ERR_TIMED_OUT) || c.ctx)
        mp_fail(__FILE__, __LINE__, "close returns %s", rank_status_string(st));
    CHECK(mp_now() - begin < 10);
    close(silent);
    OK(rank_ctx_close(&other, 0));
    if (!in_peace)
        pair_meet(p);
}

static void peer_side(struct pair *p)
{
    rank_ctx_t busy = pair_context(RANK_THREAD_MULTIPLE, 1), idle = pair_context(RANK_THREAD_MULTIPLE, 0);
    unsigned char key[RANK_RKEY_MAX];
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listeners[2];
    rank_team_t conns[2];
    rank_mem_t mem;
    size_t len;

    listeners[0] = pair_listen(p, busy, &opts);
    OK(rank_accept(listeners[0], 20 * SECOND, &conns[0]));
    listeners[1] = pair_listen(p, idle, &opts);
    OK(rank_accept(listeners[1], 20 * SECOND, &conns[1]));
    OK(rank_recv(&len, sizeof(len), RANK_BYTE, 0, 1, conns[1], NULL));
    OK(rank_recv(key, sizeof(key), RANK_BYTE, 0, 1, conns[1], NULL));
    OK(rank_rkey_open(conns[1], 0, key, len, &mem));
    OK(rank_send(key, 1, RANK_BYTE, 0, 2, conns[1]));
    pair_meet(p);
    STATUS(rank_recv(key, 1, RANK_BYTE, 0, 60, conns[1], NULL), RANK_ERR_CLOSED);
    STATUS(rank_recv(key, 1, RANK_BYTE, 0, 60, conns[0], NULL), RANK_ERR_CLOSED);
    OK(rank_ctx_close(&idle, SECOND));
    OK(rank_ctx_close(&busy, SECOND));
}

static void close_side(struct pair *p)
{
    if (p->me == 0)
        close_while_called(p);
    else
        peer_side(p);
}

/* ----------------------------------------------------------------- a thread that does not return */

static _Atomic int is_in_callback, may_leave;

static void stay(const rank_envelope_t *envelope, void *arg)
{
    (void)envelope;
    (void)arg;
    is_in_callback = 1;
    while (!may_leave)
        pair_sleep(0.001);
}

static void *receive_and_call_back(void *arg)
{
    rank_team_t conn = *(rank_team_t *)arg;
    char byte;

    STATUS(rank_recv(&byte, 1, RANK_BYTE, 0, 3, conn, NULL), RANK_ERR_CLOSED);
    return NULL;
}

static void *wait_in_callback(void *arg)
{
    rank_ctx_t ctx = *(rank_ctx_t *)arg;

    while (!is_in_callback)
        OK(rank_ctx_progress(ctx));
    return NULL;
}

/* The context stays, and the thread goes on. Another context is not concerned. */
static void late_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0), other = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conn = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    rank_request_t req;
    pthread_t thread;
    char byte = 0;
    double begin;

    if (p->me == 0) {
        OK(rank_irecv(&byte, 1, RANK_BYTE, 0, 1, conn, &req));
        OK(rank_on_done(&req, stay, NULL));
        if (p->seed % 2) /* its wait ends while the callback runs */
            CHECK(pthread_create(&thread, NULL, receive_and_call_back, &conn) == 0);
        else
            CHECK(pthread_create(&thread, NULL, wait_in_callback, &ctx) == 0);
        while (!is_in_callback)
            pair_sleep(0.001);
        begin = mp_now();
        STATUS(rank_ctx_close(&ctx, 0), RANK_ERR_TIMED_OUT);
        CHECK(!ctx && mp_now() - begin < 10);
        may_leave = 1;
        CHECK(pthread_join(thread, NULL) == 0);
    } else {
        OK(rank_send(&byte, 1, RANK_BYTE, 1, 1, conn));
        STATUS(rank_recv(&byte, 1, RANK_BYTE, 1, 2, conn, NULL), RANK_ERR_CLOSED);
        OK(rank_ctx_close(&ctx, SECOND));
    }
    OK(rank_ctx_progress(other));
    OK(rank_ctx_close(&other, SECOND));
    if (p->me == 0 && pair_by_ucx) /* LeakSanitizer does not see what UCX's mapped pages hold, and its thread still runs */
        _exit(0);
}

struct freeing {
    rank_ctx_t ctx;
    rank_team_t waited, freed;
    volatile char byte;
};

/* This thread is in a wait, which is over before the connection is freed, and which it leaves only later. */
static void free_connection(const rank_envelope_t *e, void *arg)
{
    struct freeing *f = arg;

    (void)e;
    while (!f->byte)
        OK(rank_ctx_progress(f->ctx));
    OK(rank_team_free(&f->freed));
}

static void freeing_side(struct pair *p)
{
    struct freeing f = {.ctx = pair_context(RANK_THREAD_MULTIPLE, p->seed % 2 ? 1 : 0)};
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = p->me == 0 ? pair_listen(p, f.ctx, &opts) : NULL;
    int other = p->me; /* the listener is rank 1 */
    rank_request_t req;
    char byte = 1;

    f.waited = pair_connect(p, f.ctx, listener);
    if (listener)
        OK(rank_listener_close(&listener));
    f.freed = pair_connect(p, f.ctx, p->me == 0 ? pair_listen(p, f.ctx, &opts) : NULL);
    if (p->me == 0) {
        OK(rank_irecv(&byte, 1, RANK_BYTE, other, 1, f.freed, &req));
        OK(rank_on_done(&req, free_connection, &f));
        OK(rank_recv((char *)(uintptr_t)&f.byte, 1, RANK_BYTE, other, 2, f.waited, NULL));
        while (f.freed) /* another thread may run the callback */
            OK(rank_ctx_progress(f.ctx));
    } else {
        OK(rank_send(&byte, 1, RANK_BYTE, other, 1, f.freed));
        OK(rank_send(&byte, 1, RANK_BYTE, other, 2, f.waited));
        STATUS(rank_recv(&byte, 1, RANK_BYTE, other, 1, f.freed, NULL), RANK_ERR_CLOSED);
    }
    pair_meet(p);
    OK(rank_ctx_close(&f.ctx, SECOND));
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)mp_option(argc, argv, "--seed", 1);
    int64_t rounds = mp_option(argc, argv, "--rounds", 6);
    bool ok = true;

    for (int way = 0; way < PAIR_WAYS; way++) {
        if (!pair_use(way))
            continue;
        for (uint64_t k = 0; k < (uint64_t)rounds; k++)
            ok &= pair_run("close while threads wait", close_side, seed + k, 60, false);
        for (uint64_t k = 0; k < 2; k++)
            ok &= pair_run("close while a callback runs", late_side, seed + k, 60, false);
        for (uint64_t k = 0; k < 2; k++)
            ok &= pair_run("free in a callback of a wait that is over", freeing_side, seed + k, 60, false);
    }
    return ok ? 0 : 1;
}
