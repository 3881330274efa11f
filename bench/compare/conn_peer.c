/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_peer.c: run the cases of peer_link.py by librank, over a connection.
 *
 *     conn_peer listen HOST:PORT
 *     conn_peer connect HOST:PORT [tcp] [alloc] [prepared] CASE...
 *
 * With alloc the target is memory of rank_ctx_alloc, else of the program's own. With tcp the connection
 * uses no shared memory. With prepared a list is prepared once and started each time. Words and pings are messages.
 */
#include "lib/rank.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000LL

/* As in peer_link.py. */
enum { STEP = 7919, GAP = 0x5a, BATCH = 50, FEWEST = 7, SAMPLES_MAX = 100000, KEY_BYTE = 77 };
enum { TAG_WORD = 1, TAG_DATA, TEXT_MAX = 1024 };

struct peer_case {
    char op;               /* the first letter of its name */
    int64_t bytes, blocks;
    double seconds;
};

static rank_ctx_t ctx;
static rank_team_t conn;
static rank_mem_t target_mem, remote;
static const char *own_address;
static int me;
static bool prepared;
static rank_request_t prepared_list;
static char *local, *target, *row;
static int64_t local_bytes, target_bytes;
static double times[SAMPLES_MAX];

static void peer_must(rank_status_t st, const char *call)
{
    if (!st)
        return;
    fprintf(stderr, "conn_peer: %s: %s\n", call, rank_status_string(st));
    exit(1);
}

static double peer_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void peer_put(const void *data, int64_t bytes)
{
    peer_must(rank_send(data, bytes, RANK_BYTE, 1 - me, TAG_WORD, conn), "rank_send");
}

static int64_t peer_get(void *data, int64_t room)
{
    rank_envelope_t envelope;

    peer_must(rank_recv(data, room, RANK_BYTE, 1 - me, TAG_WORD, conn, &envelope), "rank_recv");
    return envelope.bytes;
}

static void peer_put_word(int64_t word)
{
    peer_put(&word, sizeof(word));
}

static int64_t peer_get_word(void)
{
    int64_t word = 0;

    peer_get(&word, sizeof(word));
    return word;
}

static void *peer_memory(int64_t bytes)
{
    void *p = NULL;

    if (posix_memalign(&p, 4096, bytes ? (size_t)bytes : 1))
        peer_must(RANK_ERR_NO_MEMORY, "posix_memalign");
    return memset(p, 0, bytes ? (size_t)bytes : 1);
}

static void parse_case(const char *text, struct peer_case *c)
{
    char op[16];

    c->seconds = 0.3;
    if (sscanf(text, "%15[a-z]:%lld:%lld:%lf", op, (long long *)&c->bytes, (long long *)&c->blocks, &c->seconds) < 3 ||
        c->bytes < 1 || c->blocks < 1 || c->blocks >= STEP || !strchr("wrpkc", op[0])) {
        fprintf(stderr, "conn_peer: %s is not a case; see peer_link.py\n", text);
        exit(2);
    }
    c->op = op[0];
}

/* ------------------------------------------------------------------------------ lists */

static int64_t peer_block_offset(const struct peer_case *c, int64_t i)
{
    return 2 * c->bytes * (i * STEP % c->blocks);
}

static int block_value(int64_t turn, int64_t i)
{
    return (int)((turn + i) % 251);
}

static bool block_differs(const char *block, int value, int64_t bytes)
{
    memset(row, value, (size_t)bytes);
    return memcmp(block, row, (size_t)bytes) != 0;
}

static rank_xfer_op_t list_direction(const struct peer_case *c)
{
    return c->op == 'w' ? RANK_XFER_WRITE : RANK_XFER_READ;
}

static void init_prepared_list(const struct peer_case *c, const rank_block_t *blocks)
{
    peer_must(rank_xfer_init(list_direction(c), blocks, c->blocks, 1 - me, conn, NULL, &prepared_list), "rank_xfer_init");
}

/* Move the list, until it is complete. Returns the seconds. */
static double move_list(const struct peer_case *c, const rank_block_t *blocks)
{
    double t = peer_now();
    rank_request_t req = prepared_list;

    if (prepared)
        peer_must(rank_start(&req), "rank_start");
    else
        peer_must(rank_xfer(list_direction(c), blocks, c->blocks, 1 - me, conn, NULL, &req), "rank_xfer");
    peer_must(rank_wait(&req, NULL), "rank_wait");
    return peer_now() - t;
}

static double move_once(const struct peer_case *c, const rank_block_t *blocks, int64_t turn, int64_t *wrong)
{
    double t;

    if (c->op == 'w') {
        for (int64_t i = 0; i < c->blocks; i++)
            memset(local + i * c->bytes, block_value(turn, i), (size_t)c->bytes);
        t = move_list(c, blocks);
        peer_put_word(turn);
        *wrong += peer_get_word();
        return t;
    }
    memset(local, GAP, (size_t)(c->bytes * c->blocks));
    peer_put_word(turn);
    peer_get_word();
    t = move_list(c, blocks);
    for (int64_t i = 0; i < c->blocks; i++)
        *wrong += block_differs(local + i * c->bytes, block_value(turn, i), c->bytes);
    return t;
}

static int64_t check_target(const struct peer_case *c, int64_t turn)
{
    int64_t wrong = 0;

    for (int64_t i = 0; i < c->blocks; i++) {
        const char *block = target + peer_block_offset(c, i);
        wrong += block_differs(block, block_value(turn, i), c->bytes) + block_differs(block + c->bytes, GAP, c->bytes);
    }
    return wrong;
}

static void serve_list(const struct peer_case *c)
{
    int64_t turn;

    memset(target, GAP, (size_t)(2 * c->bytes * c->blocks));
    peer_put_word(0);
    while ((turn = peer_get_word())) {
        int64_t wrong = c->op == 'w' ? check_target(c, turn) : 0;
        for (int64_t i = 0; c->op == 'r' && i < c->blocks; i++)
            memset(target + peer_block_offset(c, i), block_value(turn, i), (size_t)c->bytes);
        peer_put_word(wrong);
    }
}

/* ------------------------------------------------------------------------------ pings */

static double ping_once(const struct peer_case *c, int64_t turn, int64_t *wrong)
{
    double t;

    peer_put_word(turn);
    t = peer_now();
    for (int k = 0; k < BATCH; k++) {
        memset(local, k, (size_t)c->bytes);
        peer_must(rank_send(local, c->bytes, RANK_BYTE, 1 - me, TAG_DATA, conn), "rank_send");
        peer_must(rank_recv(row, c->bytes, RANK_BYTE, 1 - me, TAG_DATA, conn, NULL), "rank_recv");
        *wrong += memcmp(local, row, (size_t)c->bytes) != 0;
    }
    return (peer_now() - t) / BATCH;
}

static void serve_pings(const struct peer_case *c)
{
    while (peer_get_word()) {
        for (int k = 0; k < BATCH; k++) {
            peer_must(rank_recv(row, c->bytes, RANK_BYTE, 1 - me, TAG_DATA, conn, NULL), "rank_recv");
            peer_must(rank_send(row, c->bytes, RANK_BYTE, 1 - me, TAG_DATA, conn), "rank_send");
        }
    }
}

/* ------------------------------------------------------------------- keys of memories */

static double keys_once(const struct peer_case *c, int64_t *wrong)
{
    rank_mem_t *mems = peer_memory(c->blocks * (int64_t)sizeof(*mems));
    int64_t len, n = c->blocks;
    char *keys;
    double t;

    peer_get_word(); /* the memory is there */
    t = peer_now();
    peer_put_word(1);
    len = peer_get_word();
    keys = peer_memory(len);
    peer_get(keys, len);
    peer_must(rank_rkeys_open(conn, 1 - me, keys, (size_t)len, &n, mems), "rank_rkeys_open");
    t = peer_now() - t;
    *wrong += n != c->blocks;
    peer_must(rank_get(local, c->bytes, 1 - me, mems[n - 1], 0), "rank_get");
    *wrong += block_differs(local, KEY_BYTE, c->bytes);
    for (int64_t i = 0; i < n; i++)
        peer_must(rank_rkey_close(&mems[i]), "rank_rkey_close");
    peer_put_word(0);
    free(keys);
    free(mems);
    return t;
}

static void serve_keys(const struct peer_case *c)
{
    rank_mem_t *mems = peer_memory(c->blocks * (int64_t)sizeof(*mems));
    char *base = peer_memory(2 * c->bytes * c->blocks), *keys;
    size_t len = 0;

    memset(base, KEY_BYTE, (size_t)(2 * c->bytes * c->blocks));
    peer_put_word(1);
    peer_get_word();
    for (int64_t i = 0; i < c->blocks; i++)
        peer_must(rank_ctx_reg(ctx, base + 2 * c->bytes * i, c->bytes, RANK_ACCESS_READ, &mems[i]),
                  "rank_ctx_reg");
    peer_must(rank_rkeys_pack(c->blocks, mems, NULL, &len), "rank_rkeys_pack");
    keys = peer_memory((int64_t)len);
    peer_must(rank_rkeys_pack(c->blocks, mems, keys, &len), "rank_rkeys_pack");
    peer_put_word((int64_t)len);
    peer_put(keys, (int64_t)len);
    peer_get_word();
    for (int64_t i = 0; i < c->blocks; i++)
        peer_must(rank_dereg(&mems[i]), "rank_dereg");
    free(keys);
    free(mems);
    free(base);
}

/* ---------------------------------------------------------------- one more connection */

static void second_context(rank_ctx_t *second)
{
    peer_must(rank_ctx_open(NULL, second), "rank_ctx_open");
}

static double connect_once(int64_t *wrong)
{
    double t = peer_now();
    char text[128], byte = 1;
    rank_team_t team;
    rank_ctx_t second;

    peer_put_word(1);
    second_context(&second);
    peer_get(text, sizeof(text));
    peer_must(rank_connect(second, text, NULL, &team), "rank_connect");
    peer_must(rank_send(&byte, 1, RANK_BYTE, 1, 0, team), "rank_send");
    peer_must(rank_recv(&byte, 1, RANK_BYTE, 1, 0, team, NULL), "rank_recv");
    t = peer_now() - t;
    *wrong += byte != 2;
    peer_must(rank_disconnect(&team, 5 * SECOND), "rank_disconnect");
    peer_must(rank_ctx_close(&second, SECOND), "rank_ctx_close");
    return t;
}

static void serve_connect(void)
{
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    char text[128], byte = 0;
    rank_listener_t listener;
    size_t len = sizeof(text);
    rank_team_t team;
    rank_ctx_t second;

    peer_get_word();
    opts.flags = RANK_CONN_OPEN;
    second_context(&second);
    snprintf(text, sizeof(text), "%.*s:0", (int)(strrchr(own_address, ':') - own_address), own_address);
    peer_must(rank_listen(second, text, &opts, &listener), "rank_listen");
    peer_must(rank_listener_address(listener, text, &len), "rank_listener_address");
    peer_put(text, (int64_t)len);
    peer_must(rank_accept(listener, 60 * SECOND, &team), "rank_accept");
    peer_must(rank_recv(&byte, 1, RANK_BYTE, 0, 0, team, NULL), "rank_recv");
    byte++;
    peer_must(rank_send(&byte, 1, RANK_BYTE, 0, 0, team), "rank_send");
    peer_must(rank_disconnect(&team, 5 * SECOND), "rank_disconnect");
    peer_must(rank_ctx_close(&second, SECOND), "rank_ctx_close");
}

/* ------------------------------------------------------------------------------ cases */

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void run_first(const struct peer_case *c, const char *text)
{
    rank_block_t *blocks = peer_memory(c->blocks * (int64_t)sizeof(*blocks));
    bool fixed = c->op == 'k' || c->op == 'c', moves = c->op == 'w' || c->op == 'r';
    double end = peer_now() + c->seconds;
    int64_t n = 0, wrong = 0;

    for (int64_t i = 0; moves && i < c->blocks; i++)
        blocks[i] = (rank_block_t){local + i * c->bytes, c->bytes, remote, peer_block_offset(c, i)};
    if (moves && prepared)
        init_prepared_list(c, blocks);
    if (moves)
        peer_get_word();
    while (n < FEWEST || (!fixed && peer_now() < end && n < SAMPLES_MAX)) {
        times[n] = moves ? move_once(c, blocks, n + 1, &wrong) : c->op == 'p' ? ping_once(c, n + 1, &wrong) :
                   c->op == 'k' ? keys_once(c, &wrong) : connect_once(&wrong);
        n++;
    }
    if (!fixed)
        peer_put_word(0);
    qsort(times + 2, (size_t)n - 2, sizeof(*times), compare_times);
    printf("%s %.3f %lld\n", text, times[2 + (n - 2) / 2] * 1e6, (long long)wrong);
    fflush(stdout);
    if (moves && prepared)
        peer_must(rank_request_free(&prepared_list), "rank_request_free");
    free(blocks);
}

static void run_second(const struct peer_case *c)
{
    if (c->op == 'w' || c->op == 'r')
        serve_list(c);
    else if (c->op == 'p')
        serve_pings(c);
    for (int i = 0; i < FEWEST; i++) {
        if (c->op == 'k')
            serve_keys(c);
        else if (c->op == 'c')
            serve_connect();
    }
}

/* Make memory for the largest case. */
static void size_memory(char **word, int n)
{
    struct peer_case c;

    for (int i = 0; i < n; i++) {
        parse_case(word[i], &c);
        if (c.op != 'w' && c.op != 'r')
            c.blocks = 1;
        local_bytes = c.bytes * c.blocks > local_bytes ? c.bytes * c.blocks : local_bytes;
    }
    target_bytes = 2 * local_bytes;
    local = peer_memory(local_bytes);
    row = peer_memory(local_bytes);
}

/* Make the target's memory, and open its key at the initiator. */
static void share_target(bool alloc)
{
    unsigned both = RANK_ACCESS_READ | RANK_ACCESS_WRITE;
    char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    void *base = NULL;

    if (me == 0) {
        len = (size_t)peer_get(key, sizeof(key));
        peer_must(rank_rkey_open(conn, 1, key, len, &remote), "rank_rkey_open");
        return;
    }
    if (alloc) {
        peer_must(rank_ctx_alloc(ctx, target_bytes, both, &base, &target_mem), "rank_ctx_alloc");
        target = base;
    } else {
        target = peer_memory(target_bytes);
        peer_must(rank_ctx_reg(ctx, target, target_bytes, both, &target_mem), "rank_ctx_reg");
    }
    peer_must(rank_rkey_pack(target_mem, key, &len), "rank_rkey_pack");
    peer_put(key, (int64_t)len);
}

static void join_peer(const char *address, bool tcp)
{
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    rank_status_t st = RANK_ERR_UNREACHABLE;
    rank_listener_t listener;

    peer_must(rank_ctx_open(NULL, &ctx), "rank_ctx_open");
    opts.flags = RANK_CONN_OPEN | (tcp ? RANK_CONN_NO_SHM : 0);
    if (me == 1) {
        peer_must(rank_listen(ctx, address, &opts, &listener), "rank_listen");
        peer_must(rank_accept(listener, 60 * SECOND, &conn), "rank_accept");
        peer_must(rank_listener_close(&listener), "rank_listener_close");
        return;
    }
    for (int i = 0; i < 600 && st == RANK_ERR_UNREACHABLE; i++) {
        if (i)
            nanosleep(&(struct timespec){0, 50000000}, NULL);
        st = rank_connect(ctx, address, &opts, &conn);
    }
    peer_must(st, address);
}

int main(int argc, char **argv)
{
    static char text[TEXT_MAX];
    char *word[TEXT_MAX];
    struct peer_case c;
    bool alloc, tcp;
    int n = 0, words;

    if (argc < 3 || (strcmp(argv[1], "listen") != 0 && strcmp(argv[1], "connect") != 0) || !strchr(argv[2], ':')) {
        fprintf(stderr, "usage: conn_peer listen HOST:PORT | conn_peer connect HOST:PORT [tcp] [alloc] [prepared] CASE...\n");
        return 2;
    }
    own_address = argv[2];
    me = strcmp(argv[1], "listen") == 0;
    tcp = argc > 3 && strcmp(argv[3], "tcp") == 0;
    join_peer(argv[2], tcp);
    for (int i = 3 + tcp; me == 0 && i < argc; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s%s", at ? " " : "", argv[i]);
    }
    if (me == 0)
        peer_put(text, sizeof(text));
    else
        peer_get(text, sizeof(text));
    text[TEXT_MAX - 1] = 0;
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
        word[n++] = at;
    alloc = n > 0 && strcmp(word[0], "alloc") == 0;
    prepared = n > alloc && strcmp(word[alloc], "prepared") == 0;
    words = alloc + prepared;
    size_memory(word + words, n - words);
    share_target(alloc);
    for (int i = words; i < n; i++) {
        parse_case(word[i], &c);
        if (me == 0)
            run_first(&c, word[i]);
        else
            run_second(&c);
    }
    if (me == 0) {
        peer_must(rank_rkey_close(&remote), "rank_rkey_close");
        peer_put_word(0);
    } else {
        peer_get_word();
    }
    peer_must(rank_disconnect(&conn, 5 * SECOND), "rank_disconnect");
    if (me == 1)
        peer_must(rank_dereg(&target_mem), "rank_dereg");
    peer_must(rank_ctx_close(&ctx, SECOND), "rank_ctx_close");
    free(me == 1 && !alloc ? target : NULL);
    free(local);
    free(row);
    return 0;
}
