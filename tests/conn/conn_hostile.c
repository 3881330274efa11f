/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_hostile.c: attack a listener with raw sockets while it serves others.
 *
 * Side 0 listens, without a secret, and then with one. Side 1 sends garbage, is silent, gives wrong secrets, and sends
 * random frames after a valid handshake, guesses ids of memory, and writes to memory without receiving the answers. Between
 * these a client of the library connects, and is served in time.
 * --seed N, --rounds N.
 */
#include "lib/channel/tcp/tcp_wire.h"
#include "lib/rma/rkey.h"
#include "lib/rma/rma_wire.h"
#include "tests/conn/conn_pair.h"
#include "tests/conn/raw_shake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GUESSES = 64, HELD = 24, FDS_MAX = 250 /* 64 half-open clients, and what HELD have */, BUF = 1 << 20, SILENT = 1000, WRONG = 1000, FRAMES = 12, GOOD_TAG = 12345 };
static const double served_s = 20; /* a client is served; the machine may be busy */
static int nrounds = 150;
static bool with_secret;
static uint64_t chaos;

/* ---------------------------------------------------------------------- the listener */

struct held {
    rank_team_t conn;
    bool good;
    rank_request_t reqs[2]; /* a receive of anything, a send that waits for its match */
    char *buf;
};

static void drop(struct held *h)
{
    rank_status_t st = rank_disconnect(&h->conn, 0);

    CHECK(st == RANK_OK || st == RANK_ERR_TIMED_OUT);
    if (!h->good)
        rank_waitall(2, h->reqs, NULL);
    free(h->buf);
    memset(h, 0, sizeof(*h));
}

static void adopt(struct held *h, rank_team_t conn)
{
    rank_conn_info_t info = {.size = sizeof(info)};

    OK(rank_conn_info(conn, &info));
    *h = (struct held){.conn = conn, .good = info.hello_bytes == 4 && memcmp(info.hello, "good", 4) == 0};
    if (h->good)
        return;
    h->buf = calloc(2, BUF);
    CHECK(h->buf);
    h->reqs[0] = h->reqs[1] = RANK_REQUEST_NULL;
    rank_irecv(h->buf, BUF, RANK_BYTE, RANK_ANY_SOURCE, RANK_ANY_TAG, conn, &h->reqs[0]);
    rank_isend(h->buf + BUF, BUF, RANK_BYTE, 0, 1, conn, &h->reqs[1]);
}

static void serve(struct held *h)
{
    int found = 0, done;
    int64_t x;

    if (!h->good) {
        rank_test(&h->reqs[0], &done, NULL);
        return;
    }
    if (rank_iprobe(0, GOOD_TAG, h->conn, &found, NULL)) {
        drop(h);
    } else if (found) {
        OK(rank_recv(&x, 1, RANK_INT64, 0, GOOD_TAG, h->conn, NULL));
        x++;
        OK(rank_send(&x, 1, RANK_INT64, 0, GOOD_TAG, h->conn));
    }
}

static void listen_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    rank_conn_opts_t opts = pair_opts();
    struct pollfd end = {.fd = p->in, .events = POLLIN};
    static struct held held[HELD];
    rank_listener_t listener;
    char *memory = calloc(1, 65536);
    unsigned char bytes[RANK_RKEY_MAX];
    size_t len = sizeof(bytes);
    struct rk_key key;
    rank_mem_t mem;
    int next = 0;

    if (!with_secret)
        opts.secret = NULL, opts.secret_bytes = 0;
    opts.timeout_ns = 5 * SECOND;
    listener = pair_listen(p, ctx, &opts);
    OK(rank_ctx_reg(ctx, memory, 65536, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &mem));
    OK(rank_rkey_pack(mem, bytes, &len));
    memcpy(&key, bytes, sizeof(key));
    pair_put(p, &key.id, sizeof(key.id));
    while (poll(&end, 1, 0) == 0) {
        rank_team_t conn;
        rank_status_t st = rank_accept(listener, SECOND / 1000, &conn);

        CHECK(st == RANK_OK || st == RANK_ERR_TIMED_OUT);
        CHECK(mp_count_fds() < FDS_MAX);
        if (!st) {
            if (held[next].conn)
                drop(&held[next]);
            adopt(&held[next], conn);
            next = (next + 1) % HELD;
        }
        for (int i = 0; i < HELD; i++)
            if (held[i].conn)
                serve(&held[i]);
    }
    for (int i = 0; i < HELD; i++)
        if (held[i].conn)
            drop(&held[i]);
    for (int i = 0; i < 65536; i++)
        CHECK(memory[i] == 0); /* guesses do not reach it */
    OK(rank_dereg(&mem));
    OK(rank_ctx_close(&ctx, SECOND));
    free(memory);
}

/* ---------------------------------------------------------------------- the attackers */

static int port;
static struct rk_id known; /* memory of the listener */

static uint64_t draw(uint64_t below)
{
    return mp_random(&chaos) % below;
}

static int raw_connect(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval limit = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    return fd;
}

static void raw_send(int fd, const void *data, size_t len)
{
    raw_sends(fd, data, len);
}

/* Carry out the handshake without a secret. Returns the last message's type; *team is that of the connection. */
static enum rk_shake_type raw_shake(int fd, uint64_t *team)
{
    struct rk_shake hello = {.type = RK_SHAKE_HELLO}, proof = {.type = RK_SHAKE_PROOF, .context = draw(1u << 30), .window = 1u << 18, .name = "evil"};
    struct rk_shake m;

    raw_say(fd, &hello);
    if (!raw_message(fd, &m) || m.type != RK_SHAKE_CHALLENGE)
        return RK_SHAKE_REFUSED;
    for (int i = 0; with_secret && i < RK_SHAKE_MAC; i++)
        proof.mac[i] = (unsigned char)draw(256);
    raw_say(fd, &proof);
    if (!raw_message(fd, &m))
        return RK_SHAKE_REFUSED;
    *team = m.team;
    return m.type;
}

static void garbage(void)
{
    unsigned char bytes[RK_SHAKE_MAX];
    struct rk_shake m = {.type = (enum rk_shake_type)(1 + draw(5))};
    int fd = raw_connect();
    size_t len;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)draw(256);
    if (draw(2)) {
        len = rk_shake_encode(&m, bytes);
        bytes[draw(len)] ^= (unsigned char)(1 + draw(255)); /* also another version */
        raw_send(fd, bytes, draw(2) ? len : 1 + draw(len));
    } else {
        raw_send(fd, bytes, 1 + draw(sizeof(bytes)));
    }
    close(fd);
}

/* The reason has both versions. */
static void other_version(void)
{
    struct rk_shake m = {.type = RK_SHAKE_HELLO};
    unsigned char bytes[RK_SHAKE_MAX];
    size_t len = rk_shake_encode(&m, bytes);
    int fd = raw_connect();

    bytes[4] = 77; /* of the head: u32 magic, u16 version */
    raw_send(fd, bytes, len);
    CHECK(raw_message(fd, &m) && m.type == RK_SHAKE_REFUSED && m.status == RANK_ERR_REFUSED);
    CHECK(strstr(m.text, "version 77") && strstr(m.text, "version 2"));
    CHECK(!raw_message(fd, &m));
    close(fd);
}

static uint16_t epoch_of(uint64_t team)
{
    return (uint16_t)(team ^ team >> 16 ^ team >> 32 ^ team >> 48);
}

/* A frame that is valid in most fields. */
static size_t random_frame(unsigned char *out, uint64_t team)
{
    static const uint8_t kinds[] = {1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 16, 16, 17, 18, 19, RK_TCP_WRITE, RK_TCP_WRITTEN, RK_TCP_READ,
                                    RK_TCP_KIND_END, 64, 200};
    static const uint32_t lens[] = {0, 4, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 1000, 65536};
    struct rk_hdr hdr = {.kind = kinds[draw(sizeof(kinds))], .epoch = epoch_of(team), .src = (uint32_t)draw(3), .team = team,
                         .tag = draw(4) ? draw(64) : mp_random(&chaos), .len = lens[draw(15)], .flags = (uint8_t)draw(4)};

    if (hdr.kind == RK_TCP_ANNOUNCE)
        hdr.len = sizeof(struct rk_tcp_announce);
    else if (hdr.kind == RK_TCP_PULL)
        hdr.len = sizeof(struct rk_tcp_pull);
    else if (hdr.kind == RK_TCP_WRITTEN)
        hdr.len = sizeof(struct rk_tcp_written);
    else if (hdr.kind == RK_TCP_READ)
        hdr.len = sizeof(struct rk_tcp_read);
    if (draw(8) == 0)
        hdr.team = draw(2) ? team | 1ull << 63 : draw(8);
    if (draw(40) == 0)
        hdr.epoch++;
    if (draw(40) == 0)
        hdr.len = (uint32_t)mp_random(&chaos);
    memcpy(out, &hdr, sizeof(hdr));
    if (hdr.len > 65536)
        return sizeof(hdr);
    for (size_t i = 0; i < hdr.len; i++)
        out[sizeof(hdr) + i] = draw(3) ? 0 : (unsigned char)draw(draw(2) ? 16 : 256);
    return rk_tcp_length(hdr.len);
}

static void frames(void)
{
    unsigned char *out = calloc(1, sizeof(struct rk_hdr) + 65536 + 8);
    int fd = raw_connect();
    uint64_t team = 0;

    CHECK(out);
    if (raw_shake(fd, &team) == RK_SHAKE_WELCOME)
        for (uint64_t i = 1 + draw(FRAMES); i > 0; i--)
            raw_send(fd, out, random_frame(out, team));
    if (draw(2))
        pair_sleep(0.002);
    close(fd);
    free(out);
}

/* A request on memory with an id that was guessed; or a flush, which is answered. */
static void raw_request(int fd, uint64_t team, bool flush)
{
    unsigned char out[256] = {0};
    struct rk_rma_request_head ask = {.op = flush ? RK_RMA_FLUSH : RK_RMA_PUT, .flags = flush ? RK_RMA_WANTS_REPLY : 0,
                                      .mem = rk_id_unpack(mp_random(&chaos))};
    struct rk_hdr hdr = {.kind = RK_KIND_RMA_REQ, .epoch = epoch_of(team), .team = team, .len = sizeof(ask) + (flush ? 0 : 8)};

    if (draw(2))
        ask.mem.index = known.index;
    memcpy(out, &hdr, sizeof(hdr));
    memcpy(out + sizeof(hdr), &ask, sizeof(ask));
    raw_send(fd, out, rk_tcp_length(hdr.len));
}

/* The same by a chunk that is written there, or a read. */
static void raw_stream(int fd, uint64_t team)
{
    struct rk_tcp_read read = {.mem = {known.index + (uint32_t)draw(16), (uint32_t)mp_random(&chaos)}, .bytes = 8};
    struct rk_hdr hdr = {.kind = draw(2) ? RK_TCP_WRITE : RK_TCP_READ, .epoch = epoch_of(team), .tag = rk_id_pack(read.mem),
                         .flags = RK_TCP_END, .len = sizeof(read)};
    unsigned char out[256] = {0};

    memcpy(out, &hdr, sizeof(hdr));
    memcpy(out + sizeof(hdr), &read, sizeof(read));
    raw_send(fd, out, rk_tcp_length(hdr.len));
}

/* Returns false at the end of the stream. */
static bool raw_reply(int fd)
{
    unsigned char in[4096];
    ssize_t n = recv(fd, in, sizeof(in), 0);

    CHECK(n >= 0 || errno == ECONNRESET); /* else it is late */
    return n > 0;
}

/* A write to memory that the peer has the key of. A disconnected one does not reach it, which the listener checks. */
static void write_known(int fd, uint64_t team)
{
    struct rk_hdr hdr = {.kind = RK_TCP_WRITE, .epoch = epoch_of(team), .tag = rk_id_pack(known), .flags = RK_TCP_END, .len = 8};
    unsigned char out[sizeof(hdr) + 8];

    memset(out, 0x5c, sizeof(out));
    memcpy(out, &hdr, sizeof(hdr));
    raw_send(fd, out, sizeof(out));
}

/* One that guesses ids of memory is disconnected at the 64th, and nothing behind that is executed. */
static void guesses(void)
{
    int fd = raw_connect();
    uint64_t team = 0;

    CHECK(raw_shake(fd, &team) == RK_SHAKE_WELCOME);
    for (int i = 0; i < GUESSES - 1; i++) {
        if (draw(2))
            raw_request(fd, team, false);
        else
            raw_stream(fd, team);
    }
    raw_request(fd, team, true);
    CHECK(raw_reply(fd));
    raw_stream(fd, team);
    write_known(fd, team);
    while (raw_reply(fd))
        ;
    close(fd);
}

/* One that writes zeros to memory that it may write, and receives no answer, is disconnected. */
static void greedy(void)
{
    enum { BATCH = 1024, MOST = 64 << 20 };
    const size_t each = rk_tcp_length(8);
    unsigned char *out = calloc(BATCH, each);
    int fd = raw_connect();
    uint64_t team = 0;
    size_t sent = 0;

    CHECK(out && raw_shake(fd, &team) == RK_SHAKE_WELCOME);
    for (size_t i = 0; i < BATCH; i++) {
        struct rk_hdr hdr = {.kind = RK_TCP_WRITE, .epoch = epoch_of(team), .tag = rk_id_pack(known), .flags = RK_TCP_END, .len = 8};
        memcpy(out + i * each, &hdr, sizeof(hdr));
    }
    while (raw_sends(fd, out, BATCH * each))
        CHECK((sent += BATCH * each) < MOST);
    close(fd);
    free(out);
}

/* A client of the library is served. */
static void good_client(rank_ctx_t ctx, const char *address)
{
    rank_conn_opts_t opts = pair_opts();
    double begin = mp_now();
    rank_request_t req;
    rank_team_t conn;
    int64_t x = 7;

    if (!with_secret)
        opts.secret = NULL, opts.secret_bytes = 0;
    opts.hello = "good";
    opts.hello_bytes = 4;
    OK(rank_connect(ctx, address, &opts, &conn));
    OK(rank_send(&x, 1, RANK_INT64, 1, GOOD_TAG, conn));
    OK(rank_irecv(&x, 1, RANK_INT64, 1, GOOD_TAG, conn, &req));
    OK(rank_wait_timed(&req, 20 * SECOND, NULL));
    CHECK(x == 8);
    OK(rank_disconnect(&conn, 20 * SECOND));
    CHECK(mp_now() - begin < served_s);
}

static void allow_descriptors(void)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void attack_side(struct pair *p)
{
    rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    char address[PAIR_ADDRESS];
    int silent[SILENT];
    uint64_t team;

    allow_descriptors();
    pair_get(p, address, sizeof(address));
    port = atoi(strrchr(address, ':') + 1);
    pair_get(p, &known, sizeof(known));
    good_client(ctx, address);
    for (int i = 0; i < SILENT; i++) {
        silent[i] = raw_connect();
        if (i % 2)
            raw_say(silent[i], &(struct rk_shake){.type = RK_SHAKE_HELLO});
    }
    good_client(ctx, address);
    other_version();
    for (int i = 0; with_secret && i < WRONG; i++) {
        int fd = raw_connect();
        CHECK(raw_shake(fd, &team) == RK_SHAKE_REFUSED);
        close(fd);
    }
    for (int i = 0; i < nrounds; i++) {
        if (draw(3) || with_secret)
            garbage();
        else
            frames();
        if (i % 25 == 24)
            good_client(ctx, address);
    }
    for (int i = 0; !with_secret && i < 3; i++)
        guesses();
    if (!with_secret)
        greedy();
    for (int i = 0; !with_secret && i < nrounds; i++) {
        frames();
        if (i % 25 == 24)
            good_client(ctx, address);
    }
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
    good_client(ctx, address);
    pair_put(p, "", 1);
    OK(rank_ctx_close(&ctx, SECOND));
}

static void hostile_side(struct pair *p)
{
    chaos = p->seed;
    if (p->me == 0)
        listen_side(p);
    else
        attack_side(p);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    bool ok = true;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else
            nrounds = atoi(argv[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        with_secret = i == 1;
        ok &= pair_run(with_secret ? "with a secret" : "without a secret", hostile_side, seed, 150, false);
    }
    return ok ? 0 : 1;
}
