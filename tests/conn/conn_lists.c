/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_lists.c: move lists of blocks over a connection, and end them.
 *
 * --seed N, --steps N, --cases N, --only NAME.
 */
#include "tests/conn/conn_pair.h"
#include "tests/conn/list_model.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int nsteps = 15;

static rank_status_t reg(void *ctx, void *ptr, int64_t bytes, rank_mem_t *mem)
{
    return rank_ctx_reg(ctx, ptr, bytes, RANK_ACCESS_READ | RANK_ACCESS_WRITE, mem);
}

struct side {
    rank_ctx_t ctx;
    rank_listener_t listener;
    rank_team_t conn;
    struct list_model lists;
};

static void open_side(struct side *s, struct pair *p, int level, int thread)
{
    rank_conn_opts_t opts = pair_opts();

    memset(s, 0, sizeof(*s));
    s->ctx = pair_context(level, thread);
    s->listener = p->me == 0 ? pair_listen(p, s->ctx, &opts) : NULL;
    s->conn = pair_connect(p, s->ctx, s->listener);
    list_open(&s->lists, s->ctx, s->conn, 1 - rank_team_rank(s->conn), p->me, p->seed, reg, s->ctx);
}

static void random_side(struct pair *p)
{
    uint64_t random = p->seed;
    int level = mp_random(&random) % 2 ? RANK_THREAD_MULTIPLE : RANK_THREAD_SERIALIZED;
    struct side s;

    open_side(&s, p, level, level == RANK_THREAD_MULTIPLE && mp_random(&random) % 2);
    list_wrong(&s.lists);
    for (int i = 0; i < nsteps; i++)
        list_step(&s.lists);
    list_wrong(&s.lists);
    CHECK(s.lists.notices > 0);
    list_close(&s.lists);
    OK(rank_ctx_close(&s.ctx, 20 * SECOND));
}

/* Wait for a list that is ended by the death of the other side, in less than a second. */
static void wait_lost(rank_request_t *req, rank_status_t want)
{
    double begun = mp_now();

    STATUS(rank_wait_timed(req, 20 * SECOND, NULL), want);
    CHECK(mp_now() - begun < 1);
}

/* The other side is killed during a write and a read. */
static void killed_side(struct pair *p)
{
    rank_request_t reqs[2];
    struct side s;

    open_side(&s, p, RANK_THREAD_SERIALIZED, 0);
    pair_meet(p);
    if (p->me == 1) {
        for (;;)
            OK(rank_ctx_progress(s.ctx));
    }
    OK(list_start_long(&s.lists, RANK_XFER_WRITE, 1ll << 34, &reqs[0]));
    OK(list_start_long(&s.lists, RANK_XFER_READ, 1ll << 34, &reqs[1]));
    STATUS(rank_wait_timed(&reqs[0], SECOND / 20, NULL), RANK_ERR_TIMED_OUT);
    CHECK(kill(p->other, SIGKILL) == 0);
    wait_lost(&reqs[0], RANK_ERR_PEER_DEAD);
    wait_lost(&reqs[1], RANK_ERR_PEER_DEAD);
    STATUS(list_start_long(&s.lists, RANK_XFER_WRITE, 1 << 20, &reqs[0]), RANK_OK);
    wait_lost(&reqs[0], RANK_ERR_PEER_DEAD);
    OK(rank_ctx_close(&s.ctx, 5 * SECOND));
    list_free(&s.lists);
}

/* Either side closes the connection during lists of both. */
static void closed_side(struct pair *p)
{
    rank_request_t reqs[2];
    struct side s;

    open_side(&s, p, RANK_THREAD_SERIALIZED, 0);
    pair_meet(p);
    OK(list_start_long(&s.lists, RANK_XFER_WRITE, 1ll << 34, &reqs[0]));
    OK(list_start_long(&s.lists, RANK_XFER_READ, 1ll << 34, &reqs[1]));
    if (p->me == 1) {
        STATUS(rank_wait_timed(&reqs[0], SECOND / 20, NULL), RANK_ERR_TIMED_OUT);
        OK(rank_disconnect(&s.conn, 5 * SECOND));
    }
    STATUS(rank_wait_timed(&reqs[0], 20 * SECOND, NULL), RANK_ERR_CLOSED);
    STATUS(rank_wait_timed(&reqs[1], 20 * SECOND, NULL), RANK_ERR_CLOSED);
    OK(rank_ctx_close(&s.ctx, SECOND));
    list_free(&s.lists);
}

/* Its memory is taken back: the call fails if the peer has read that already, else the list does. */
static rank_status_t move_taken_back(rank_xfer_op_t op, const rank_block_t *b, struct side *s, rank_request_t *req,
                                     rank_request_t *other)
{
    const rank_notice_t bad = {1, "bad", 3}, good = {2, "good", 4};
    rank_status_t st = rank_xfer(op, b, 2, s->lists.other, s->conn, &bad, req);

    if (other)
        OK(rank_xfer(RANK_XFER_WRITE, b, 1, s->lists.other, s->conn, &good, other));
    return st ? st : rank_wait(req, NULL);
}

/* The owner takes memory back during a write and a read; other memory of the same lists stays. A key is closed here. */
static void taken_back_side(struct pair *p)
{
    rank_request_t reqs[2], saved;
    rank_block_t b[2];
    char data[64] = "";
    struct side s;

    open_side(&s, p, RANK_THREAD_SERIALIZED, 0);
    b[0] = (rank_block_t){data, 8, s.lists.mem[0].remote, 0};
    b[1] = (rank_block_t){data + 8, 8, s.lists.mem[1].remote, 0};
    if (p->me == 1)
        OK(rank_dereg(&s.lists.mem[1].own));
    pair_meet(p);
    if (p->me == 0) {
        STATUS(move_taken_back(RANK_XFER_WRITE, b, &s, &reqs[0], NULL), RANK_ERR_HANDLE);
        STATUS(move_taken_back(RANK_XFER_READ, b, &s, &reqs[0], &reqs[1]), RANK_ERR_HANDLE);
        OK(rank_wait(&reqs[1], NULL));
        OK(rank_xfer_init(RANK_XFER_WRITE, b, 1, s.lists.other, s.conn, &(rank_notice_t){2, "good", 4}, &saved));
        OK(rank_start(&saved));
        STATUS(rank_start(&saved), RANK_ERR_STATE);
        OK(rank_wait(&saved, NULL));
        OK(rank_rkey_close(&s.lists.mem[0].remote));
        STATUS(rank_start(&saved), RANK_ERR_HANDLE);
        OK(rank_request_free(&saved));
        STATUS(rank_xfer(RANK_XFER_WRITE, b, 1, s.lists.other, s.conn, NULL, &reqs[0]), RANK_ERR_HANDLE);
        OK(list_start_long(&s.lists, RANK_XFER_WRITE, 0, &reqs[0]));
        OK(rank_wait(&reqs[0], NULL));
    } else {
        for (int i = 0; i < 2; i++) {
            OK(rank_recv(data, 64, RANK_BYTE, RANK_ANY_SOURCE, RANK_ANY_TAG, s.conn, NULL));
            CHECK(memcmp(data, "good", 4) == 0);
        }
    }
    pair_put(p, data, 1);
    pair_get(p, data, 1);
    OK(rank_ctx_close(&s.ctx, SECOND));
    list_free(&s.lists);
}

/* Memory is taken back in the middle: its lists end, and the connection goes on. */
static void middle_side(struct pair *p)
{
    rank_request_t req, also;
    rank_mem_t other;
    struct side s;
    int go = 1;

    open_side(&s, p, RANK_THREAD_SERIALIZED, 0);
    if (p->me == 0) {
        OK(list_start_long(&s.lists, RANK_XFER_WRITE, 1ll << 34, &req));
        OK(list_start_long(&s.lists, RANK_XFER_READ, 1ll << 34, &also));
        STATUS(rank_wait_timed(&req, SECOND / 20, NULL), RANK_ERR_TIMED_OUT);
        OK(rank_send(&go, 1, RANK_INT32, s.lists.other, 1, s.conn));
        STATUS(rank_wait_timed(&req, 20 * SECOND, NULL), RANK_ERR_HANDLE);
        STATUS(rank_wait_timed(&also, 20 * SECOND, NULL), RANK_ERR_HANDLE);
        OK(rank_recv(&go, 1, RANK_INT32, s.lists.other, 1, s.conn, NULL));
        OK(rank_send(&go, 1, RANK_INT32, s.lists.other, 1, s.conn));
    } else {
        OK(rank_recv(&go, 1, RANK_INT32, s.lists.other, 1, s.conn, NULL));
        OK(rank_dereg(&s.lists.mem[0].own));
        OK(rank_ctx_reg(s.ctx, &go, sizeof(go), RANK_ACCESS_READ, &other)); /* gets the same index */
        OK(rank_send(&go, 1, RANK_INT32, s.lists.other, 1, s.conn));
        OK(rank_recv(&go, 1, RANK_INT32, s.lists.other, 1, s.conn, NULL));
    }
    OK(rank_ctx_close(&s.ctx, SECOND));
    list_free(&s.lists);
}

/* Short messages pass while long lists move in both directions. */
static void fair_side(struct pair *p)
{
    enum { TRIPS = 40 };
    int me = p->me, x = 0;
    rank_request_t reqs[2];
    double begun;
    struct side s;

    open_side(&s, p, RANK_THREAD_SERIALIZED, 0);
    OK(list_start_long(&s.lists, RANK_XFER_WRITE, 1ll << 34, &reqs[0]));
    OK(list_start_long(&s.lists, RANK_XFER_READ, 1ll << 34, &reqs[1]));
    begun = mp_now();
    for (int i = 0; i < TRIPS; i++) {
        if (me == i % 2)
            OK(rank_send(&x, 1, RANK_INT32, s.lists.other, 1, s.conn));
        else
            OK(rank_recv(&x, 1, RANK_INT32, s.lists.other, 1, s.conn, NULL));
    }
    CHECK(mp_now() - begun < 20);
    if (me == 0) /* which has received the last message */
        OK(rank_disconnect(&s.conn, 5 * SECOND));
    STATUS(rank_wait_timed(&reqs[0], 20 * SECOND, NULL), RANK_ERR_CLOSED);
    STATUS(rank_wait_timed(&reqs[1], 20 * SECOND, NULL), RANK_ERR_CLOSED);
    OK(rank_ctx_close(&s.ctx, SECOND));
    list_free(&s.lists);
}

static void count_down(const rank_envelope_t *e, void *arg)
{
    CHECK(e->status == RANK_OK);
    --*(int *)arg;
}

/* Lists of both sides move in event loops, which sleep in poll. */
static void loop_side(struct pair *p)
{
    enum { LONG = 100 << 20 };
    int lists = 2, messages = 1, in, fd;
    rank_request_t req;
    struct side s;

    open_side(&s, p, RANK_THREAD_SERIALIZED, 0);
    OK(rank_ctx_progress_fd(s.ctx, &fd));
    for (rank_xfer_op_t op = RANK_XFER_WRITE; op <= RANK_XFER_READ; op++) {
        OK(list_start_long(&s.lists, op, LONG, &req));
        OK(rank_on_done(&req, count_down, &lists));
    }
    OK(rank_irecv(&in, 1, RANK_INT32, s.lists.other, 1, s.conn, &req));
    OK(rank_on_done(&req, count_down, &messages));
    for (bool sent = false; lists || messages || !sent;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        rank_status_t st = rank_ctx_progress_arm(s.ctx);

        if (st != RANK_ERR_AGAIN) {
            OK(st);
            CHECK(poll(&ready, 1, 20000) == 1);
        }
        OK(rank_ctx_progress(s.ctx));
        if (!lists && !sent) {
            OK(rank_send(&fd, 1, RANK_INT32, s.lists.other, 1, s.conn));
            sent = true;
        }
    }
    OK(rank_ctx_close(&s.ctx, 5 * SECOND));
    list_free(&s.lists);
}

static bool chosen(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--only") == 0)
            return strcmp(argv[i + 1], name) == 0;
    return true;
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)mp_option(argc, argv, "--seed", 1);
    int64_t cases = mp_option(argc, argv, "--cases", 2);
    bool ok = true;

    static const struct {
        const char *name;
        void (*side)(struct pair *p);
        int limit_s;
        bool kills, frames; /* frames: the owner carries out the lists */
    } others[] = {{"killed", killed_side, 60, true, false},
                  {"closed", closed_side, 60, false, false},
                  {"taken back", taken_back_side, 60, false, true},
                  {"taken back in the middle", middle_side, 60, false, true},
                  {"fairness", fair_side, 90, false, false},
                  {"event loop", loop_side, 60, false, false}};

    nsteps = (int)mp_option(argc, argv, "--steps", nsteps);
    for (int way = 0; way < 4; way++) { /* CMA; frames by shared memory, by the socket, by UCX */
        if (!pair_use(way < 2 ? PAIR_SHARED : way - 1))
            continue;
        setenv("RANK_CMA", way ? "off" : "auto", 1);
        for (int64_t i = 0; i < cases && chosen(argc, argv, "random lists"); i++)
            ok &= pair_run("random lists", random_side, seed + (uint64_t)i, 120, false);
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            if ((way > 0 || !others[i].frames) && chosen(argc, argv, others[i].name))
                ok &= pair_run(others[i].name, others[i].side, seed, others[i].limit_s, others[i].kills);
    }
    return ok ? 0 : 1;
}
