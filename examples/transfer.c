/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transfer.c: send memory between two processes that no launcher started.
 *
 *     xcc transfer.c -o transfer
 *     ./transfer listen 127.0.0.1:7471
 *     ./transfer connect 127.0.0.1:7471 [blocks]
 *
 * The listener registers memory and gives its key to the client. The client writes blocks into it, reads them back and
 * compares, and sends a message when it is done. The listener serves one client and ends. Both sides prove the secret in the
 * file RANK_SECRET_FILE, if it is set; other hosts can connect only then.
 */
#include <rank.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll
enum { BLOCK = 65536, BLOCKS_MAX = 1024, TAG_KEY = 1, TAG_DONE };

static void must(rank_status_t st, const char *what)
{
    if (!st)
        return;
    fprintf(stderr, "transfer: %s: %s\n", what, rank_status_string(st));
    exit(1);
}

static void serve(rank_ctx_t ctx, const char *where)
{
    char text[80], key[RANK_RKEY_MAX], *memory = calloc(BLOCKS_MAX, BLOCK);
    rank_conn_info_t info = {.size = sizeof(info)};
    size_t len = sizeof(text);
    rank_listener_t listener;
    rank_team_t conn;
    rank_mem_t mem;
    int64_t blocks;

    if (!memory)
        must(RANK_ERR_NO_MEMORY, "calloc");
    must(rank_listen(ctx, where, NULL, &listener), where);
    must(rank_listener_address(listener, text, &len), "address");
    printf("listening on %s\n", text);
    fflush(stdout);
    must(rank_accept(listener, -1, &conn), "accept");
    must(rank_conn_info(conn, &info), "info");
    must(rank_ctx_reg(ctx, memory, (int64_t)BLOCKS_MAX * BLOCK, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &mem), "register");
    len = sizeof(key);
    must(rank_rkey_pack(mem, key, &len), "pack");
    must(rank_send(key, (int64_t)len, RANK_BYTE, 0, TAG_KEY, conn), "send");
    must(rank_recv(&blocks, 1, RANK_INT64, 0, TAG_DONE, conn, NULL), "the client");
    if (blocks < 1 || blocks > BLOCKS_MAX)
        must(RANK_ERR_ARG, "the client's number of blocks");
    printf("%s wrote %lld blocks, the last one begins with %d; the secret is %s\n", info.name, (long long)blocks,
           memory[(blocks - 1) * BLOCK], info.proved ? "proved" : "not used");
    must(rank_disconnect(&conn, 5 * SECOND), "disconnect");
    must(rank_dereg(&mem), "deregister");
    free(memory);
}

static void use(rank_ctx_t ctx, const char *where, int64_t blocks)
{
    char key[RANK_RKEY_MAX], *out = malloc(BLOCK), *back = malloc(BLOCK);
    rank_envelope_t envelope;
    rank_team_t conn;
    rank_mem_t remote;

    if (!out || !back)
        must(RANK_ERR_NO_MEMORY, "malloc");
    must(rank_connect(ctx, where, NULL, &conn), where);
    must(rank_recv(key, sizeof(key), RANK_BYTE, 1, TAG_KEY, conn, &envelope), "receive");
    must(rank_rkey_open(conn, 1, key, (size_t)envelope.bytes, &remote), "open");
    for (int64_t i = 0; i < blocks; i++) {
        memset(out, (int)(i % 100), BLOCK);
        must(rank_put(out, BLOCK, 1, remote, i * BLOCK), "put");
    }
    must(rank_flush(remote, 1), "flush");
    for (int64_t i = 0; i < blocks; i++) {
        memset(out, (int)(i % 100), BLOCK);
        must(rank_get(back, BLOCK, 1, remote, i * BLOCK), "get");
        if (memcmp(out, back, BLOCK) != 0) {
            fprintf(stderr, "transfer: block %lld is damaged\n", (long long)i);
            exit(1);
        }
    }
    must(rank_rkey_close(&remote), "close");
    must(rank_send(&blocks, 1, RANK_INT64, 1, TAG_DONE, conn), "send");
    must(rank_disconnect(&conn, 5 * SECOND), "disconnect");
    printf("%lld blocks are the same\n", (long long)blocks);
    free(out);
    free(back);
}

int main(int argc, char **argv)
{
    long blocks = argc > 3 ? atol(argv[3]) : 256;
    rank_ctx_t ctx;

    if (argc < 3 || blocks < 1 || blocks > BLOCKS_MAX || (strcmp(argv[1], "listen") && strcmp(argv[1], "connect"))) {
        fprintf(stderr, "usage: transfer listen ADDRESS | transfer connect ADDRESS [BLOCKS, at most %d]\n", BLOCKS_MAX);
        return 2;
    }
    must(rank_ctx_open(NULL, &ctx), "open");
    if (strcmp(argv[1], "listen") == 0)
        serve(ctx, argv[2]);
    else
        use(ctx, argv[2], blocks);
    must(rank_ctx_close(&ctx, SECOND), "close");
    return 0;
}
