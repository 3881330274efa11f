/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_ucx_test.c: check which connections use UCX, and end hostile ones.
 *
 * UCX's shared memory is a stand-in for RDMA. Two contexts of this process connect. Each opens its UCX with its listener or
 * its first connection.
 */
#include "lib/base/conf.h"
#include "lib/channel/ucx/ucx.h"
#include "lib/conn/conns.h"
#include "lib/core/card.h"
#include "lib/core/threads.h"
#include "lib/p2p/p2p_internal.h"
#include "lib/rma/rma_internal.h"
#include "tests/unit/unit.h"

#define SHM_ONLY "posix,self"
static const char secret[] = "sixteen bytes or more";

struct way {
    const char *name;
    const char *tls[2];  /* UCX_TLS of the listener's context, and of the other one */
    unsigned flags[2];   /* besides RANK_CONN_NO_SHM, unless the channel is shm */
    bool without_secret, other_version;
    const char *channel, *line; /* what carries the connection; and what the log has */
    const char *devices;        /* net_devices of the client */
};

static const struct way ways[] = {
    {"both sides have UCX", {SHM_ONLY, SHM_ONLY}, {0, 0}, false, false, "ucx", NULL, NULL},
    {"the listener has none", {NULL, SHM_ONLY}, {0, 0}, false, false, "tcp", NULL, NULL},
    {"the client has none", {SHM_ONLY, NULL}, {0, 0}, false, false, "tcp", NULL, NULL},
    {"the listener forbids it", {SHM_ONLY, SHM_ONLY}, {RANK_CONN_NO_RDMA, 0}, false, false, "tcp", NULL, NULL},
    {"the client forbids it", {SHM_ONLY, SHM_ONLY}, {0, RANK_CONN_NO_RDMA}, false, false, "tcp", NULL, NULL},
    {"no secret", {SHM_ONLY, SHM_ONLY}, {0, 0}, true, false, "tcp", NULL, NULL},
    {"another version", {SHM_ONLY, SHM_ONLY}, {0, 0}, false, true, "tcp", "UCX 9.8, and this one ", NULL},
    {"UCX's tcp alone", {"tcp", SHM_ONLY}, {0, 0}, false, false, "tcp", "names its tcp only", NULL},
    {"tcp is left out", {"tcp," SHM_ONLY, SHM_ONLY}, {0, 0}, false, false, "ucx", NULL, NULL},
    {"no transport in common", {SHM_ONLY, "self"}, {0, 0}, false, false, "tcp", NULL, NULL},
    {"none of net_devices", {SHM_ONLY, SHM_ONLY}, {0, 0}, false, false, "tcp", "devices none_such of opts->net_devices", "none_such"},
};

static void set_tls(const char *tls)
{
    if (tls)
        setenv("UCX_TLS", tls, 1);
    else
        unsetenv("UCX_TLS");
}

struct sides {
    rank_ctx_t of[2];
    rank_conn_opts_t opts[2];
    rank_listener_t listener;
    char address[80];
};

/* Open both contexts, with progress threads: the connecting side sends when its context has found that the other accepted. */
static void sides_open(struct sides *s, const struct way *way)
{
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    size_t len = sizeof(s->address);

    for (int i = 0; i < 2; i++) {
        s->opts[i] = (rank_conn_opts_t)RANK_CONN_OPTS_INIT;
        s->opts[i].flags = way->flags[i] | (strcmp(way->channel, "shm") == 0 ? 0 : RANK_CONN_NO_SHM);
        s->opts[i].secret = way->without_secret ? NULL : secret;
        s->opts[i].secret_bytes = way->without_secret ? 0 : sizeof(secret);
    }
    opts.progress_thread = 1;
    assert_int_equal(rank_ctx_open(&opts, &s->of[0]), RANK_OK);
    opts.net_devices = way->devices;
    assert_int_equal(rank_ctx_open(&opts, &s->of[1]), RANK_OK);
    set_tls(way->tls[0]);
    assert_int_equal(rank_listen(s->of[0], "127.0.0.1:0", &s->opts[0], &s->listener), RANK_OK);
    assert_int_equal(rank_listener_address(s->listener, s->address, &len), RANK_OK);
    set_tls(way->tls[1]);
}

static void sides_close(struct sides *s)
{
    assert_int_equal(rank_ctx_close(&s->of[1], -1), RANK_OK);
    assert_int_equal(rank_ctx_close(&s->of[0], -1), RANK_OK);
}

static void sides_connect(struct sides *s, rank_team_t conn[2], const char *channel)
{
    rank_conn_info_t info = {.size = sizeof(info)};

    assert_int_equal(rank_connect(s->of[1], s->address, &s->opts[1], &conn[1]), RANK_OK);
    assert_int_equal(rank_accept(s->listener, -1, &conn[0]), RANK_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rank_conn_info(conn[i], &info), RANK_OK);
        assert_string_equal(info.channel, channel);
    }
}

static void sides_disconnect(rank_team_t conn[2])
{
    assert_int_equal(rank_disconnect(&conn[1], -1), RANK_OK); /* both contexts make progress by themselves */
    assert_int_equal(rank_disconnect(&conn[0], -1), RANK_OK);
}

/* A message there and back; and one that takes a rendezvous. */
static void exchange(rank_team_t conn[2])
{
    enum { LONG = 1 << 20 };
    static char from[LONG], to[LONG];
    rank_request_t req;
    int64_t x = 5, y = 0;

    memset(from, 7, LONG);
    assert_int_equal(rank_send(&x, 1, RANK_INT64, 1, 3, conn[1]), RANK_OK);
    assert_int_equal(rank_recv(&y, 1, RANK_INT64, 0, 3, conn[0], NULL), RANK_OK);
    assert_int_equal(y, 5);
    for (int i = 0; i < 2; i++) {
        memset(to, 0, LONG);
        assert_int_equal(rank_irecv(to, LONG, RANK_BYTE, i, 4, conn[i], &req), RANK_OK);
        if (i == 1) { /* both ends in this thread */
            rank_request_t other;
            assert_int_equal(rank_isend(from, LONG, RANK_BYTE, 0, 4, conn[0], &other), RANK_OK);
            assert_int_equal(rank_wait(&req, NULL), RANK_OK);
            assert_int_equal(rank_wait(&other, NULL), RANK_OK);
        } else {
            assert_int_equal(rank_send(from, LONG, RANK_BYTE, 1, 4, conn[1]), RANK_OK);
            assert_int_equal(rank_wait(&req, NULL), RANK_OK);
        }
        assert_memory_equal(from, to, LONG);
    }
}

/* Change the version of UCX in the card of a context. */
static void change_version(struct rk_engine *e)
{
    size_t bytes;
    const unsigned char *part = rk_card_part(e->card, e->card_len, "ucx", &bytes);
    struct rk_ucx_card *card;

    assert_non_null(part);
    card = (struct rk_ucx_card *)(void *)(e->card + (part - e->card));
    card->ucx = 9 << 16 | 8;
}

static void each_way(void **state)
{
    const struct way *way = *state;
    struct unit_stderr log;
    struct sides s;
    rank_team_t conn[2];
    const char *text;

    unit_stderr_begin(&log);
    sides_open(&s, way);
    if (way->other_version) { /* the client's card, which crosses first */
        s.opts[1].flags |= RANK_CONN_NO_RDMA;
        sides_connect(&s, conn, "tcp");
        change_version(conn[1]->ctx->engine);
        sides_disconnect(conn);
        s.opts[1].flags = RANK_CONN_NO_SHM;
    }
    sides_connect(&s, conn, way->channel);
    exchange(conn);
    sides_close(&s);
    text = unit_stderr_end(&log);
    if (way->line)
        assert_contains(text, way->line);
    else
        assert_string_equal(text, "");
}

/* Of several connections between two contexts one uses UCX; when it is gone another one may. */
static void one_at_a_time(void **state)
{
    struct sides s;
    rank_team_t a[2], b[2];

    (void)state;
    sides_open(&s, &ways[0]);
    for (int i = 0; i < 5; i++) {
        sides_connect(&s, a, "ucx");
        sides_connect(&s, b, "tcp");
        exchange(a);
        exchange(b);
        sides_disconnect(i % 2 ? a : b);
        sides_disconnect(i % 2 ? b : a);
    }
    sides_close(&s);
}

/* Frames on the team of another connection are refused. */
static void on_foreign_team(void **state)
{
    struct sides s;
    rank_team_t a[2], b[2];
    struct rk_peer *peer;
    int found, value = 7;

    (void)state;
    sides_open(&s, &ways[0]);
    sides_connect(&s, a, "ucx");
    sides_connect(&s, b, "tcp");
    peer = rk_team_peer(a[1], 1);
    assert_string_equal(peer->channel->name, "ucx");
    exchange(a);
    for (int i = 0; i < 2; i++) { /* first on its own */
        struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = peer->epoch, .len = sizeof(value), .tag = 3};

        hdr.team = i ? b[1]->id : a[1]->id;
        assert_int_equal(peer->channel->send(peer, &hdr, &value), RANK_OK);
    }
    assert_int_equal(rank_send(&value, 1, RANK_INT32, 1, 5, a[1]), RANK_OK);
    assert_int_equal(rank_ctx_progress(s.of[1]), RANK_OK); /* frames that wait to share a packet */
    assert_int_equal(rank_recv(&value, 1, RANK_INT32, 0, 3, a[0], NULL), RANK_OK);
    assert_int_equal(rank_recv(&value, 1, RANK_INT32, 0, 5, a[0], NULL), RANK_OK);
    assert_int_equal(rank_iprobe(RANK_ANY_SOURCE, RANK_ANY_TAG, b[0], &found, NULL), RANK_OK);
    assert_int_equal(found, 0);
    assert_int_equal(a[0]->ctx->p2p->bad_frames, 1);
    sides_close(&s);
}

/* Another peer can name the link, but not the job of its two sides. */
static void without_job(void **state)
{
    struct rk_ucx_link *l, *theirs;
    rank_team_t conn[2];
    struct rk_peer *peer;
    uint64_t remote;
    struct sides s;
    int value = 7, found;

    (void)state;
    sides_open(&s, &ways[0]);
    sides_connect(&s, conn, "ucx");
    exchange(conn);
    peer = rk_team_peer(conn[1], 1);
    l = peer->ep;
    theirs = rk_team_peer(conn[0], 0)->ep;
    for (int i = 0; i < 2; i++) { /* as a link of a job has it, and then changed */
        RK_ENTER(conn[1]->ctx);
        struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = peer->epoch, .len = sizeof(value), .tag = 3, .team = conn[1]->id};

        remote = l->remote;
        if (i == 0)
            l->remote = 0;
        else
            l->self.job++;
        assert_true(l->confirmed);
        assert_int_equal(peer->channel->send(peer, &hdr, &value), RANK_OK);
        rk_progress_once(conn[1]->ctx); /* it does not wait to share a packet */
        l->turn--;
        l->remote = remote;
        l->self.job -= (uint64_t)i;
    }
    for (uint64_t bad = 0; bad < 2;) {
        RK_ENTER(conn[0]->ctx);
        rk_progress_once(conn[0]->ctx);
        bad = theirs->ucx->bad_frames;
    }
    assert_int_equal(rank_iprobe(RANK_ANY_SOURCE, RANK_ANY_TAG, conn[0], &found, NULL), RANK_OK);
    assert_int_equal(found, 0);
    exchange(conn);
    sides_close(&s);
}

static const struct way channels[] = {
    {"ucx", {SHM_ONLY, SHM_ONLY}, {0, 0}, false, false, "ucx", NULL, NULL},
    {"tcp", {NULL, NULL}, {0, 0}, false, false, "tcp", NULL, NULL},
    {"shm", {NULL, NULL}, {0, 0}, false, false, "shm", NULL, NULL},
};

/* Wait until side 0 has disconnected side 1. */
static void await_end(rank_team_t conn[2])
{
    struct rk_peer *peer = rk_team_peer(conn[0], 0);

    for (bool dead = false; !dead;) {
        RK_ENTER(conn[0]->ctx);
        rk_progress_once(conn[0]->ctx);
        dead = peer->state == RK_PEER_DEAD;
    }
}

/* A call of side 1 while side 0 computes: it finds all frames at once. */
static void attack(rank_team_t conn[2], void (*send)(struct rk_peer *peer, const void *arg), const void *arg)
{
    RK_ENTER(conn[0]->ctx);
    {
        RK_ENTER(conn[1]->ctx);
        send(rk_team_peer(conn[1], 1), arg);
        for (int i = 0; i < 10; i++) /* frames that wait to share a packet */
            rk_progress_once(conn[1]->ctx);
    }
}

enum { GUESSES = 64 };

static void send_guesses(struct rk_peer *peer, const void *id)
{
    const uint64_t value = 7;

    for (uint32_t i = 0; i <= GUESSES; i++) {
        struct rk_rma_request_head ask = {.op = RK_RMA_PUT, .mem = {i, 1}};
        struct rk_hdr hdr = {.kind = RK_KIND_RMA_REQ, .epoch = peer->epoch, .len = sizeof(ask) + sizeof(value)};

        if (i == GUESSES)
            memcpy(&ask.mem, id, sizeof(ask.mem));
        assert_int_equal(peer->channel->send2(peer, &hdr, &ask, sizeof(ask), &value), RANK_OK);
    }
}

/* A valid request behind the guess that is one too many is not executed, and the log has one line. */
static void behind_guesses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        struct rk_rma_counts counts;
        struct unit_stderr log;
        const char *text, *line;
        rank_team_t conn[2];
        rank_mem_t mem;
        struct sides s;
        uint64_t word = 0;

        unit_stderr_begin(&log);
        sides_open(&s, &channels[i]);
        sides_connect(&s, conn, channels[i].channel);
        assert_int_equal(rank_ctx_reg(s.of[0], &word, sizeof(word), RANK_ACCESS_WRITE, &mem), RANK_OK);
        exchange(conn);
        attack(conn, send_guesses, &mem->id);
        await_end(conn);
        assert_int_equal(word, 0);
        rk_rma_count(conn[0]->ctx, rk_team_peer(conn[0], 0), &counts);
        assert_int_equal(counts.refused, GUESSES);
        assert_int_equal(rank_dereg(&mem), RANK_OK);
        sides_close(&s);
        text = unit_stderr_end(&log);
        line = strstr(text, "has named 64 memories that do not exist");
        assert_non_null(line);
        assert_null(strstr(line + 1, "has named"));
    }
}

/* Send messages that no receive waits for, without regard to credit, until side 0 ends that. */
static void flood(rank_team_t team)
{
    RK_ENTER(team->ctx);
    struct rk_peer *peer = rk_team_peer(team, 1);

    for (uint64_t tag = 0; peer->state != RK_PEER_DEAD; tag++) {
        struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = peer->epoch, .len = 1, .tag = tag, .team = team->id};

        while (peer->state != RK_PEER_DEAD && peer->channel->send(peer, &hdr, "x") == RK_AGAIN)
            rk_progress_once(team->ctx);
        if (tag % 64 == 0)
            rk_progress_once(team->ctx);
    }
}

/*
 * A peer that sends without credit, or leaves more here than its share of RANK_CONN_MEMORY, is disconnected; another one
 * is not. Its memory is given back.
 */
static void end_flood(bool by_window)
{
    const char *reason = by_window ? "without credit" : "(see RANK_CONN_MEMORY)";

    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        rank_team_t bad[2], good[2];
        struct unit_stderr log;
        const char *text, *line;
        struct rk_ctx *ctx;
        struct sides s;
        size_t made;

        unit_stderr_begin(&log);
        sides_open(&s, &channels[i]);
        if (!by_window)
            rk_conf.conn_memory = 8 << 20;
        sides_connect(&s, bad, channels[i].channel);
        sides_connect(&s, good, i == 0 ? "tcp" : channels[i].channel);
        exchange(bad);
        exchange(good);
        ctx = good[0]->ctx;
        {
            RK_ENTER(ctx);
            assert_int_equal(rk_team_peer(bad[0], 0)->window, rk_conf.eager_window);
            if (!by_window)
                rk_team_peer(bad[0], 0)->window = INT64_MAX;
        }
        flood(bad[1]);
        await_end(bad);
        exchange(good);
        {
            RK_ENTER(ctx);
            assert_in_range(ctx->engine->conn_memory, 7 << 20, by_window ? 32 << 20 : 9 << 20);
            assert_int_equal(ctx->engine->conn_keepers, 1);
            made = ctx->p2p->kept_slab.made;
        }
        rank_disconnect(&bad[0], 0);
        {
            RK_ENTER(ctx);
            assert_int_equal(ctx->engine->conn_memory, 0);
            assert_int_equal(ctx->engine->conn_keepers, 0);
            assert_true(made > 20000 && ctx->p2p->kept_slab.made < 1000);
        }
        exchange(good);
        sides_close(&s);
        text = unit_stderr_end(&log);
        line = strstr(text, reason);
        assert_non_null(line);
        assert_null(strstr(line + 1, reason));
    }
}

static void too_much_memory(void **state)
{
    (void)state;
    end_flood(false);
}

static void without_credit(void **state)
{
    (void)state;
    end_flood(true);
}

static int load(void **state)
{
    (void)state;
    return rk_conf_load() != RANK_OK;
}

int main(void)
{
    struct CMUnitTest tests[sizeof(ways) / sizeof(ways[0]) + 6];
    size_t n = 0;

    for (; n < sizeof(ways) / sizeof(ways[0]); n++)
        tests[n] = (struct CMUnitTest){ways[n].name, each_way, NULL, NULL, (void *)(uintptr_t)&ways[n]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(one_at_a_time);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(on_foreign_team);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(without_job);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(behind_guesses);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(too_much_memory);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(without_credit);
    return cmocka_run_group_tests(tests, load, NULL);
}
