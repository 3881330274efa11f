/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_arguments.c: check the status of each call with bad input. */
#include "tests/conn/conn_pair.h"

#include <string.h>

static void contexts(void)
{
    char name[65];
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    rank_ctx_t ctx = RANK_CTX_NULL, copy;
    const unsigned both = RANK_ACCESS_READ | RANK_ACCESS_WRITE;
    rank_mem_t mem;
    void *ptr;
    char x;
    int fd;

    STATUS(rank_ctx_open(NULL, NULL), RANK_ERR_ARG);
    opts.size--;
    STATUS(rank_ctx_open(&opts, &ctx), RANK_ERR_ARG);
    opts = (rank_ctx_opts_t)RANK_CTX_OPTS_INIT;
    for (int level = -1; level <= 4; level += 5) {
        opts.thread_level = level;
        STATUS(rank_ctx_open(&opts, &ctx), RANK_ERR_ARG);
    }
    opts.thread_level = RANK_THREAD_MULTIPLE;
    opts.net_devices = "";
    STATUS(rank_ctx_open(&opts, &ctx), RANK_ERR_ARG);
    opts.net_devices = NULL;
    memset(name, 'x', 64);
    name[64] = '\0';
    opts.name = name;
    STATUS(rank_ctx_open(&opts, &ctx), RANK_ERR_ARG);
    CHECK(ctx == RANK_CTX_NULL);
    STATUS(rank_ctx_close(NULL, 0), RANK_ERR_ARG);
    STATUS(rank_ctx_close(&ctx, 0), RANK_ERR_ARG);
    STATUS(rank_ctx_progress(RANK_CTX_NULL), RANK_ERR_STATE); /* no rank_init */

    name[63] = '\0';
    OK(rank_ctx_open(&opts, &ctx));
    STATUS(rank_ctx_progress_fd(ctx, NULL), RANK_ERR_ARG);
    STATUS(rank_ctx_reg(ctx, NULL, 1, both, &mem), RANK_ERR_ARG);
    STATUS(rank_ctx_reg(ctx, &x, 1, both, NULL), RANK_ERR_ARG);
    STATUS(rank_ctx_reg(ctx, &x, -1, both, &mem), RANK_ERR_COUNT);
    for (int alloc = 0; alloc < 2; alloc++) {
        for (unsigned access = 0; access <= 4; access += 4)
            STATUS(alloc ? rank_ctx_alloc(ctx, 1, access, &ptr, &mem) : rank_ctx_reg(ctx, &x, 1, access, &mem),
                   RANK_ERR_ARG);
    }
    STATUS(rank_ctx_alloc(ctx, 1, both, NULL, &mem), RANK_ERR_ARG);
    STATUS(rank_ctx_alloc(ctx, 1, both, &ptr, NULL), RANK_ERR_ARG);
    STATUS(rank_ctx_alloc(ctx, -1, both, &ptr, &mem), RANK_ERR_COUNT);
    STATUS(rank_ctx_alloc(ctx, 1ll << 62, both, &ptr, &mem), RANK_ERR_NO_MEMORY);
    copy = ctx;
    OK(rank_ctx_close(&ctx, 0));
    CHECK(ctx == RANK_CTX_NULL);

    ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    STATUS(rank_ctx_close(&copy, 0), RANK_ERR_HANDLE);
    STATUS(rank_ctx_progress(copy), RANK_ERR_HANDLE);
    STATUS(rank_ctx_progress_fd(copy, &fd), RANK_ERR_HANDLE);
    STATUS(rank_ctx_progress_arm(copy), RANK_ERR_HANDLE);
    STATUS(rank_ctx_reg(copy, &x, 1, both, &mem), RANK_ERR_HANDLE);
    STATUS(rank_ctx_alloc(copy, 1, both, &ptr, &mem), RANK_ERR_HANDLE);
    OK(rank_ctx_close(&ctx, -1));
}

/* Each error has its own reason, which is returned once. */
static void reasons(rank_ctx_t ctx)
{
    static const struct {
        const char *address, *reason;
    } bad[] = {{"host", "rank_connect: the address has no port"}, {"127.0.0.1:x", "rank_connect: the port of the address is not a number"},
               {"[nonsense]:7", "rank_connect: \"nonsense\" is not an IPv6 address"}, {"127.0.0.1:1", "rank_connect: cannot connect to 127.0.0.1:1: nothing listens there"}};
    rank_team_t conn;

    for (int i = 0; i < 12; i++) {
        size_t which = (size_t)i % (sizeof(bad) / sizeof(bad[0]));
        rank_status_t st = rank_connect(ctx, bad[which].address, NULL, &conn);
        const char *reason = rank_status_reason(st);

        if (strncmp(reason, bad[which].reason, strlen(bad[which].reason)) != 0)
            mp_fail(__FILE__, __LINE__, "the reason for \"%s\" is \"%s\"", bad[which].address, reason);
        CHECK(strcmp(rank_status_reason(st), rank_status_string(st)) == 0);
        CHECK(strcmp(reason, bad[which].reason) >= 0); /* it stays */
    }
    STATUS(rank_connect(ctx, NULL, NULL, &conn), RANK_ERR_ARG);
    CHECK(strcmp(rank_status_reason(RANK_ERR_HANDLE), rank_status_string(RANK_ERR_HANDLE)) == 0);
    CHECK(strcmp(rank_status_reason(RANK_ERR_ARG), "rank_connect: address is NULL") == 0);
}

static void addresses(rank_ctx_t ctx)
{
    static const char *const bad[] = {"", ":", "host", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
                                      "[::1:7", "::1:7471", "[::1]", "[nonsense]:7", "127.0.0.1:7471:7", " :7", "a b:7"};
    rank_listener_t listener = NULL, second = NULL;
    rank_conn_opts_t opts = pair_opts();
    char text[PAIR_ADDRESS];
    size_t len = sizeof(text);
    rank_team_t conn = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        rank_status_t st = rank_listen(ctx, bad[i], &opts, &listener);
        if (st != RANK_ERR_ARG && st != RANK_ERR_UNREACHABLE)
            mp_fail(__FILE__, __LINE__, "rank_listen on \"%s\": %s", bad[i], rank_status_string(st));
        st = rank_connect(ctx, bad[i], &opts, &conn);
        if (st != RANK_ERR_ARG && st != RANK_ERR_UNREACHABLE)
            mp_fail(__FILE__, __LINE__, "rank_connect to \"%s\": %s", bad[i], rank_status_string(st));
    }
    STATUS(rank_connect(ctx, "127.0.0.1:0", &opts, &conn), RANK_ERR_ARG);
    STATUS(rank_listen(ctx, NULL, &opts, &listener), RANK_ERR_ARG);
    STATUS(rank_listen(ctx, "127.0.0.1:0", &opts, NULL), RANK_ERR_ARG);
    STATUS(rank_connect(ctx, NULL, &opts, &conn), RANK_ERR_ARG);
    STATUS(rank_connect(ctx, "127.0.0.1:1", &opts, NULL), RANK_ERR_ARG);
    STATUS(rank_connect(ctx, "127.0.0.1:1", &opts, &conn), RANK_ERR_UNREACHABLE);
    CHECK(!listener && !conn);
    OK(rank_listen(ctx, "127.0.0.1:0", &opts, &listener));
    OK(rank_listener_address(listener, text, &len));
    STATUS(rank_listen(ctx, text, &opts, &second), RANK_ERR_SYSTEM); /* in use */
    STATUS(rank_listen(ctx, "192.0.2.1:0", &opts, &second), RANK_ERR_SYSTEM); /* not of this host */
    len = 3;
    STATUS(rank_listener_address(listener, text, &len), RANK_ERR_TRUNCATED);
    CHECK(len == strlen(text) + 1);
    STATUS(rank_listener_address(listener, NULL, &len), RANK_ERR_ARG);
    STATUS(rank_listener_address(listener, text, NULL), RANK_ERR_ARG);
    STATUS(rank_listener_address(NULL, text, &len), RANK_ERR_ARG);
    STATUS(rank_accept(listener, 0, NULL), RANK_ERR_ARG);
    STATUS(rank_accept(NULL, 0, &conn), RANK_ERR_ARG);
    STATUS(rank_accept(listener, 0, &conn), RANK_ERR_TIMED_OUT);
    STATUS(rank_accept(listener, 1000, &conn), RANK_ERR_TIMED_OUT);
    second = listener;
    OK(rank_listener_close(&listener));
    CHECK(!listener);
    STATUS(rank_listener_close(&listener), RANK_ERR_ARG);
    STATUS(rank_listener_close(NULL), RANK_ERR_ARG);
    STATUS(rank_listener_close(&second), RANK_ERR_HANDLE);
    STATUS(rank_accept(second, 0, &conn), RANK_ERR_HANDLE);
    STATUS(rank_listener_address(second, text, &len), RANK_ERR_HANDLE);
}

/* Options that rank_listen and rank_connect refuse alike. */
static void refused(rank_ctx_t ctx, const rank_conn_opts_t *opts, rank_status_t want)
{
    rank_listener_t listener = NULL;
    rank_team_t conn = NULL;

    STATUS(rank_listen(ctx, "127.0.0.1:0", opts, &listener), want);
    STATUS(rank_connect(ctx, "127.0.0.1:1", opts, &conn), want);
    CHECK(!listener && !conn);
}

static void options(rank_ctx_t ctx)
{
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    static char big[5000];
    rank_listener_t listener;

    STATUS(rank_listen(ctx, ":0", NULL, &listener), RANK_ERR_ARG); /* neither secret nor RANK_CONN_OPEN */
    STATUS(rank_listen(ctx, "0.0.0.0:0", &opts, &listener), RANK_ERR_ARG);
    opts.flags = RANK_CONN_OPEN | RANK_CONN_NO_SHM | RANK_CONN_NO_RDMA;
    opts.backlog = 1;
    OK(rank_listen(ctx, ":0", &opts, &listener));
    OK(rank_listener_close(&listener));
    opts.size++;
    refused(ctx, &opts, RANK_ERR_ARG);
    for (int i = 0; i < 10; i++) {
        opts = (rank_conn_opts_t)RANK_CONN_OPTS_INIT;
        switch (i) {
        case 0:
            opts.flags = 8;
            break;
        case 1:
            opts.max_conns = -1;
            break;
        case 2:
            opts.timeout_ns = -1;
            break;
        case 3:
            opts.silence_ns = -1;
            break;
        case 4:
            opts.hello = big;
            opts.hello_bytes = 1025;
            break;
        case 5:
            opts.hello_bytes = 1;
            break;
        case 6:
            opts.secret_bytes = 16;
            break;
        case 7:
            opts.backlog = -1;
            break;
        case 8:
            opts.reserved = 1;
            break;
        default:
            opts.secret = big;
            opts.secret_bytes = 15;
        }
        refused(ctx, &opts, RANK_ERR_ARG);
    }
    opts.secret_bytes = 4097;
    refused(ctx, &opts, RANK_ERR_ARG);
}

/* A connection, and what is none. */
static void bad_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    rank_team_t conn, copy, none = NULL;
    rank_conn_info_t info = {.size = sizeof(info)};
    char key[RANK_RKEY_MAX] = {0}, x = 0;
    rank_mem_t remote;

    if (p->me == 0) {
        contexts();
        reasons(ctx);
        addresses(ctx);
        options(ctx);
    }
    conn = copy = pair_connect(p, ctx, p->me == 0 ? pair_listen(p, ctx, &opts) : NULL);
    STATUS(rank_conn_info(conn, NULL), RANK_ERR_ARG);
    info.size--;
    STATUS(rank_conn_info(conn, &info), RANK_ERR_ARG);
    STATUS(rank_conn_info(NULL, &info), RANK_ERR_HANDLE);
    STATUS(rank_disconnect(&none, 0), RANK_ERR_HANDLE);
    STATUS(rank_disconnect(NULL, 0), RANK_ERR_ARG);
    STATUS(rank_rkey_open(conn, 1 - rank_team_rank(conn), key, sizeof(key), &remote), RANK_ERR_HANDLE);
    STATUS(rank_send(&x, 1, RANK_BYTE, 2, 0, conn), RANK_ERR_RANK);
    OK(rank_barrier(conn));
    OK(rank_disconnect(&conn, 20 * SECOND));
    CHECK(!conn);
    STATUS(rank_disconnect(&copy, 0), RANK_ERR_HANDLE);
    STATUS(rank_conn_info(copy, &info), RANK_ERR_HANDLE);
    STATUS(rank_send(&x, 1, RANK_BYTE, 0, 0, copy), RANK_ERR_HANDLE);
    OK(rank_ctx_close(&ctx, SECOND));
}

int main(void)
{
    bool ok = pair_run("bad input", bad_side, 0, 60, false);

    return ok ? 0 : 1;
}
