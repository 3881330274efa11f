/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_limits.c: run out of descriptors and connections, and connect often. */
#include "tests/conn/conn_pair.h"

#include <string.h>
#include <sys/resource.h>

enum { ROUNDS = 2000, ROUNDS_UCX = 200, CONNS_MAX = 3, SHM_MAX = 64, MANY = SHM_MAX + 3 };
/* UCX's shared memory, the stand-in, keeps each endpoint until its worker ends; endpoints of devices are closed. */
enum { ENDPOINT_KB = 64 };
/* A sanitizer keeps freed memory for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GROWTH_KB = 512 << 10 };
#else
enum { GROWTH_KB = 1024 };
#endif

/* No descriptors are left: accept and connect report it, and work afterwards. */
static void descriptors_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    struct rlimit limit, none;
    rank_team_t conn;

    if (p->me == 0) {
        rank_listener_t listener = pair_listen(p, ctx, &opts);
        rank_status_t st;

        STATUS(rank_accept(listener, 0, &conn), RANK_ERR_TIMED_OUT);
        CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        none = limit;
        none.rlim_cur = 0;
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        pair_meet(p); /* side 1 connects */
        STATUS(rank_accept(listener, 20 * SECOND, &conn), RANK_ERR_SYSTEM);
        STATUS(rank_connect(ctx, "127.0.0.1:1", &opts, &conn), RANK_ERR_SYSTEM);
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        while ((st = rank_accept(listener, 20 * SECOND, &conn)) == RANK_ERR_SYSTEM)
            ; /* of before */
        OK(st);
    } else {
        char address[PAIR_ADDRESS];
        pair_get(p, address, sizeof(address));
        pair_meet(p);
        OK(rank_connect(ctx, address, &opts, &conn));
    }
    OK(rank_barrier(conn));
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* max_conns: one more is refused, until one has left. */
static void limit_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conns[CONNS_MAX], more;
    char address[PAIR_ADDRESS];

    opts.max_conns = CONNS_MAX;
    if (p->me == 0) {
        rank_listener_t listener = pair_listen(p, ctx, &opts);

        for (int i = 0; i < CONNS_MAX; i++)
            OK(rank_accept(listener, 20 * SECOND, &conns[i]));
        STATUS(rank_accept(listener, SECOND / 2, &more), RANK_ERR_TIMED_OUT); /* progress for the one that is refused */
        OK(rank_disconnect(&conns[1], 20 * SECOND));
        pair_meet(p);
        OK(rank_accept(listener, 20 * SECOND, &conns[1]));
    } else {
        pair_get(p, address, sizeof(address));
        for (int i = 0; i < CONNS_MAX; i++)
            OK(rank_connect(ctx, address, &opts, &conns[i]));
        STATUS(rank_connect(ctx, address, &opts, &more), RANK_ERR_REFUSED);
        OK(rank_disconnect(&conns[1], 20 * SECOND));
        pair_meet(p);
        OK(rank_connect(ctx, address, &opts, &conns[1]));
    }
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

static void connect_one(struct pair *p, rank_ctx_t ctx, rank_listener_t listener, const char *address, rank_team_t *conn, const char *channel)
{
    rank_conn_opts_t opts = pair_opts();
    rank_conn_info_t info = {.size = sizeof(info)};
    int x = 1;

    OK(p->me == 0 ? rank_accept(listener, 20 * SECOND, conn) : rank_connect(ctx, address, &opts, conn));
    OK(rank_allreduce(RANK_IN_PLACE, &x, 1, RANK_INT32, RANK_SUM, *conn));
    OK(rank_conn_info(*conn, &info));
    CHECK(x == 2 && strcmp(info.channel, channel) == 0);
}

/* 64 connections of a context use shared memory, further ones their sockets. rank_team_free disconnects. */
static void many_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = NULL;
    char address[PAIR_ADDRESS], c = 0;
    rank_team_t conns[MANY], kept;

    if (p->me == 0)
        listener = pair_listen(p, ctx, &opts);
    else
        pair_get(p, address, sizeof(address));
    for (int i = 0; i < MANY; i++)
        connect_one(p, ctx, listener, address, &conns[i], i < SHM_MAX ? "shm" : "tcp");
    for (int i = 0; i < MANY; i += 9) {
        kept = conns[i];
        if (p->me) {
            OK(rank_send(&c, 1, RANK_BYTE, 1, 1, conns[i]));
            OK(rank_team_free(&conns[i]));
            CHECK(conns[i] == RANK_TEAM_NULL);
            STATUS(rank_send(&c, 1, RANK_BYTE, 1, 1, kept), RANK_ERR_HANDLE);
        } else {
            OK(rank_recv(&c, 1, RANK_BYTE, 0, 1, conns[i], NULL));
            STATUS(rank_recv(&c, 1, RANK_BYTE, 0, 1, conns[i], NULL), RANK_ERR_CLOSED);
            OK(rank_team_free(&conns[i]));
        }
        pair_meet(p);
        connect_one(p, ctx, listener, address, &conns[i], i < SHM_MAX ? "shm" : "tcp");
    }
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* Connect and disconnect often: the process does not grow. */
static void often_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = NULL;
    int rounds = pair_by_ucx ? ROUNDS_UCX : ROUNDS, fds = 0, uses = 0;
    int64_t rss = 0, growth = GROWTH_KB + (pair_by_ucx ? ROUNDS_UCX * ENDPOINT_KB : 0);
    rank_conn_info_t info = {.size = sizeof(info)};
    char address[PAIR_ADDRESS], c = 0;

    if (p->me == 0)
        listener = pair_listen(p, ctx, &opts);
    else
        pair_get(p, address, sizeof(address));
    for (int i = 0; i < rounds; i++) {
        rank_team_t conn;

        if (p->me == 0)
            OK(rank_accept(listener, 20 * SECOND, &conn));
        else
            OK(rank_connect(ctx, address, &opts, &conn));
        if (p->me)
            OK(rank_send(&c, 1, RANK_BYTE, 1, 1, conn));
        else
            OK(rank_recv(&c, 1, RANK_BYTE, 0, 1, conn, NULL));
        OK(rank_conn_info(conn, &info));
        uses += strcmp(info.channel, pair_channel(true)) == 0;
        OK(rank_disconnect(&conn, 20 * SECOND));
        if (i == rounds / 4) {
            rss = mp_status_kb("VmRSS");
            fds = mp_count_fds();
        }
    }
    CHECK(mp_count_fds() <= fds + 8); /* what the first sleep opens */
    CHECK(uses > rounds / 2); /* else the other side has not ended the one before: it goes by socket */
    if (mp_status_kb("VmRSS") - rss > growth)
        mp_fail(__FILE__, __LINE__, "the process has grown by %lld KiB", (long long)(mp_status_kb("VmRSS") - rss));
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

int main(void)
{
    bool ok = pair_run("no descriptors", descriptors_side, 0, 60, false);

    ok &= pair_run("max_conns", limit_side, 0, 60, false);
    ok &= pair_run("more connections than segments", many_side, 0, 100, false);
    ok &= pair_run("connect often", often_side, 0, 100, false);
    for (int way = PAIR_SOCKET; way < PAIR_WAYS; way++)
        ok &= !pair_use(way) || pair_run("connect often", often_side, 0, 100, false);
    return ok ? 0 : 1;
}
