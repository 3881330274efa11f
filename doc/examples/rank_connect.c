/*
 * rank_connect.c: connect a child to its parent, and send a number.
 *
 * The processes are not started by a launcher: the child is forked before any context is open.
 *
 * Run: xrun -n 1 ./rank_connect
 * Prints: the client sent 42
 */
#include <rank.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND 1000000000ll

static void must(rank_status_t status)
{
    if (status != RANK_OK) {
        fprintf(stderr, "%s\n", rank_status_string(status));
        exit(1);
    }
}

static void client(int in)
{
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    char address[80];
    int number = 42;
    rank_ctx_t ctx;
    rank_team_t conn;

    if (read(in, address, sizeof(address)) <= 0)
        exit(1);
    opts.secret = "sixteen or more bytes";
    opts.secret_bytes = 21;
    must(rank_ctx_open(NULL, &ctx));
    must(rank_connect(ctx, address, &opts, &conn));
    must(rank_send(&number, 1, RANK_INT32, 1, 0, conn));
    must(rank_disconnect(&conn, 5 * SECOND));
    must(rank_ctx_close(&ctx, 0));
    exit(0);
}

int main(void)
{
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    rank_listener_t listener;
    char address[80] = "";
    size_t len = sizeof(address);
    int number, ends[2];
    rank_ctx_t ctx;
    rank_team_t conn;

    if (pipe(ends) != 0)
        return 1;
    if (fork() == 0)
        client(ends[0]);
    opts.secret = "sixteen or more bytes";
    opts.secret_bytes = 21;
    must(rank_ctx_open(NULL, &ctx));
    must(rank_listen(ctx, "127.0.0.1:0", &opts, &listener));
    must(rank_listener_address(listener, address, &len));
    if (write(ends[1], address, sizeof(address)) < 0)
        return 1;
    must(rank_accept(listener, 10 * SECOND, &conn));
    must(rank_recv(&number, 1, RANK_INT32, 0, 0, conn, NULL));
    printf("the client sent %d\n", number);
    must(rank_disconnect(&conn, 5 * SECOND));
    must(rank_ctx_close(&ctx, 0));
    return 0;
}
