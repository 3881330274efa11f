/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_remote.c: be one side of a connection between hosts, for conn_hosts.sh.
 *
 *   conn_remote listen ADDRESS WHAT     prints "listens HOST:PORT"
 *   conn_remote connect ADDRESS WHAT
 *
 * WHAT: a seed: random operations, by three connections. "idle": make progress for ever. The others wait in that call until
 * the connection ends, and print "at TIME GRACE" and "ended: STATUS": recv, send, put, get, write, read. TIME is that of
 * date +%s%N, GRACE are the nanoseconds that death_clock.h adds to a bound. "ready" is printed before.
 */
#include "tests/conn/conn_steps.h"
#include "tests/conn/death_clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONNS = 3, STEPS = 150, LONG = 8 << 20, SILENCE_S = 3, BLOCKS = 256 };

/* A cable that has just been plugged in carries nothing yet. */
static rank_team_t connect_in_time(rank_ctx_t ctx, const char *address, const rank_conn_opts_t *opts)
{
    double begin = mp_now();
    rank_team_t conn;
    rank_status_t st;

    while ((st = rank_connect(ctx, address, opts, &conn)) == RANK_ERR_UNREACHABLE && mp_now() - begin < 15)
        pair_sleep(0.1);
    OK(st);
    return conn;
}

static void open_all(rank_ctx_t ctx, bool listens, const char *address, rank_team_t conns[CONNS])
{
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener;
    char text[PAIR_ADDRESS];
    size_t len = sizeof(text);

    opts.silence_ns = SILENCE_S * SECOND;
    if (listens) {
        OK(rank_listen(ctx, address, &opts, &listener));
        OK(rank_listener_address(listener, text, &len));
        printf("listens %s\n", text);
        fflush(stdout);
    }
    for (int i = 0; i < CONNS; i++) {
        rank_conn_info_t info = {.size = sizeof(info)};

        if (listens)
            OK(rank_accept(listener, 60 * SECOND, &conns[i]));
        else
            conns[i] = connect_in_time(ctx, address, &opts);
        OK(rank_conn_info(conns[i], &info));
        CHECK(strcmp(info.channel, "tcp") == 0 && info.pid == 0 && info.proved);
    }
}

static void random_operations(rank_ctx_t ctx, rank_team_t conns[CONNS], uint64_t seed)
{
    uint64_t random = seed;
    struct steps steps[CONNS];

    for (int i = 0; i < CONNS; i++)
        steps_open(&steps[i], ctx, conns[i], seed + (uint64_t)i);
    for (int i = 0; i < STEPS; i++)
        steps_next(&steps[mp_random(&random) % CONNS]);
    for (int i = 0; i < CONNS; i++) {
        steps_close(&steps[i]);
        OK(rank_disconnect(&conns[i], 20 * SECOND));
    }
    printf("done\n");
}

static rank_status_t move_list(rank_xfer_op_t op, rank_team_t conn, rank_mem_t remote, char *buf)
{
    const int64_t bytes = LONG / BLOCKS / 2;
    const rank_notice_t notice = {7, buf, 64};
    rank_block_t blocks[BLOCKS];
    rank_request_t req;
    rank_status_t st;

    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = (rank_block_t){buf + i * bytes * 2, bytes, remote, i * bytes * 2};
    st = rank_xfer(op, blocks, BLOCKS, 1 - rank_team_rank(conn), conn, op == RANK_XFER_WRITE ? &notice : NULL, &req);
    return st ? st : rank_wait(&req, NULL);
}

static rank_status_t call_until_end(const char *what, rank_team_t conn, rank_mem_t remote, char *buf)
{
    int other = 1 - rank_team_rank(conn);
    rank_status_t st = RANK_OK;
    rank_request_t req;

    while (!st) {
        if (strcmp(what, "recv") == 0) {
            st = rank_recv(buf, LONG, RANK_BYTE, other, 5, conn, NULL);
        } else if (strcmp(what, "send") == 0) {
            st = rank_isend(buf, LONG, RANK_BYTE, other, 6, conn, &req);
            st = st ? st : rank_wait(&req, NULL);
        } else if (strcmp(what, "put") == 0) {
            st = rank_put(buf, LONG, other, remote, 0);
            st = st ? st : rank_flush(remote, other);
        } else if (strcmp(what, "write") == 0 || strcmp(what, "read") == 0) {
            st = move_list(*what == 'w' ? RANK_XFER_WRITE : RANK_XFER_READ, conn, remote, buf);
        } else {
            st = rank_get(buf, LONG, other, remote, 0);
        }
    }
    return st;
}

static void wait_for_end(rank_ctx_t ctx, rank_team_t conn, const char *what)
{
    unsigned char key[RANK_RKEY_MAX], theirs[RANK_RKEY_MAX];
    int other = 1 - rank_team_rank(conn);
    size_t len = sizeof(key);
    rank_mem_t mem, remote;
    char *memory = calloc(2, LONG);
    rank_envelope_t e;

    CHECK(memory);
    OK(rank_ctx_reg(ctx, memory, LONG, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &mem));
    OK(rank_rkey_pack(mem, key, &len));
    OK(rank_sendrecv(key, sizeof(key), RANK_BYTE, other, 9, theirs, sizeof(theirs), RANK_BYTE, other, 9, conn, NULL));
    OK(rank_rkey_open(conn, other, theirs, len, &remote));
    OK(rank_barrier(conn));
    printf("ready\n");
    fflush(stdout);
    death_clock_start(NULL);
    if (strcmp(what, "idle") == 0) {
        rank_probe(other, 8, conn, &e);
    } else {
        rank_status_t st = call_until_end(what, conn, remote, memory + LONG);
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        printf("at %lld %lld\nended: %s\n", now.tv_sec * SECOND + now.tv_nsec, (long long)(death_clock_grace() * 1e9),
               rank_status_string(st));
    }
    death_clock_stop();
    fflush(stdout);
    free(memory);
}

int main(int argc, char **argv)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_SERIALIZED, 0);
    rank_team_t conns[CONNS];

    if (argc != 4)
        return 2;
    open_all(ctx, strcmp(argv[1], "listen") == 0, argv[2], conns);
    if (atol(argv[3]))
        random_operations(ctx, conns, (uint64_t)atol(argv[3]));
    else
        wait_for_end(ctx, conns[1], argv[3]);
    OK(rank_ctx_close(&ctx, SECOND));
    return 0;
}
