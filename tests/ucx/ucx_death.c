/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_death.c: complete all that waits for a killed rank within a second.
 * The living go on. And a sleeping rank is woken by a frame.
 */
#include "tests/ucx/ucx_fixture.h"
#include "lib/base/clock.h"

#include <signal.h>

/* HUGE: more than all buffers of the kernel between two processes. */
enum { LONG = 4 << 20, HUGE = 64 << 20, PENDING = 5, LOOK_PASSES = 20 * 1000 };

static int nframes;
static bool got_rndv;
static struct rk_rndv waiting;

static void on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                     const void *payload, const struct rk_rndv *rndv)
{
    (void)ctx;
    (void)peer;
    (void)hdr;
    (void)payload;
    nframes++;
    if (rndv) {
        waiting = *rndv;
        got_rndv = true;
    }
}

static bool has_frame(void *n)
{
    return nframes >= *(int *)n;
}

static void wait_frames(struct rig *r, int n)
{
    rig_wait(r, has_frame, &n);
}

static bool peer_dead(void *peer)
{
    return ((struct rk_peer *)peer)->state == RK_PEER_DEAD;
}

static void announce(struct rig *r, int to, void *buf, size_t bytes, struct rank_request *req)
{
    struct rk_peer *p = rig_peer(r, to);
    struct rk_hdr hdr = {.kind = RK_KIND_RNDV};
    struct rk_view view = {buf, bytes, NULL};

    *req = (struct rank_request){.type = RK_REQ_SEND, .ctx = r->ctx, .peer = p};
    RIG_CHECK(p->channel->rndv_send(p, &hdr, &view, req) == RANK_OK);
}

/* Rank 1 sends a word, announces a long message and a short one, and is killed. */
static void victim(struct rig *r, char *buf)
{
    struct rk_hdr hdr = {.kind = RK_KIND_MSG};
    struct rank_request reqs[2];

    RIG_CHECK(rig_send(r, 0, &hdr, NULL) == RANK_OK);
    announce(r, 0, buf, LONG, &reqs[0]);
    wait_frames(r, PENDING);
    kill(getpid(), SIGKILL);
}

static bool runs(pid_t pid)
{
    char path[64], text[256] = "";
    const char *state;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (fgets(text, sizeof(text), f) == NULL)
        text[0] = '\0';
    fclose(f);
    state = strrchr(text, ')');
    return state && state[2] != 'Z';
}

static void mourner(struct rig *r, char *buf)
{
    struct rk_peer *p = rig_peer(r, 1);
    struct rk_view view = {buf + LONG, LONG, NULL};
    struct rk_hdr hdr = {.kind = RK_KIND_MSG};
    struct rank_request reqs[PENDING];
    uint64_t start;
    rank_status_t st;

    wait_frames(r, 2);
    RIG_CHECK(got_rndv);
    announce(r, 1, buf, LONG, &reqs[0]);
    announce(r, 1, buf, 100, &reqs[1]);
    announce(r, 1, buf, 0, &reqs[2]);
    announce(r, 1, buf, LONG, &reqs[3]);
    RIG_CHECK(rig_send(r, 1, &hdr, NULL) == RANK_OK);
    start = rk_clock_ns();
    if (r->by_shm) { /* UCX does not report it; in real jobs the node segment does */
        while (runs((pid_t)atomic_load(&r->shared->word[0])))
            rk_progress(r->ctx);
        rk_peer_died(p);
    } else {
        rig_wait(r, peer_dead, p);
    }
    /* Fetching what a dead rank announced ends too. */
    reqs[4] = (struct rank_request){.type = RK_REQ_RECV, .ctx = r->ctx, .peer = p};
    r->ucx->rndv_recv(&waiting, &view, &reqs[4]);
    for (int i = 0; i < PENDING; i++)
        RIG_CHECK(reqs[i].done && reqs[i].status == RANK_ERR_PEER_DEAD);
    RIG_CHECK(rk_clock_ns() - start < 1000000000u);
    st = r->ucx->send(p, &hdr, NULL);
    RIG_CHECK(st == RANK_ERR_PEER_DEAD);
    r->ucx->rndv_drop(&waiting);
}

static void expose(struct rig *r, void *base, struct rk_channel_mem **mem)
{
    size_t len = RIG_KEY_MAX;

    RIG_CHECK(r->ucx->mem_expose(r->ctx, r->state, base, LONG, mem, r->shared->key[r->me].bytes,
                                 &len) == RANK_OK);
    r->shared->key[r->me].len = len;
    r->shared->key[r->me].base = (uint64_t)(uintptr_t)base;
    rig_meet(r, r->n);
}

/* Rank 1 no longer answers, and is killed while ranks 0 and 2 wait for it in a one-sided call. */
void death_onesided_body(struct rig *r)
{
    struct rk_channel_mem *mem;
    struct rk_peer *p;
    char *buf = calloc(1, LONG);
    uint64_t start;
    rank_status_t st;

    RIG_CHECK(buf);
    expose(r, buf, &mem);
    if (r->me == 1) {
        while (atomic_load(&r->shared->word[0]) < 2)
            usleep(1000);
        usleep(20 * 1000); /* now they are in their calls, or about to be: both must end */
        kill(getpid(), SIGKILL);
    }
    p = rig_peer(r, 1);
    RIG_CHECK(r->ucx->mem_attach(mem, p, 1, r->shared->key[1].bytes, r->shared->key[1].len,
                                 r->shared->key[1].base) == RANK_OK);
    start = rk_clock_ns();
    atomic_fetch_add(&r->shared->word[0], 1);
    st = rig_move(r, false, mem, 1, buf, LONG, 0);
    RIG_CHECK(st == RANK_ERR_PEER_DEAD);
    RIG_CHECK(rk_clock_ns() - start < 1000000000u);
    rig_wait(r, peer_dead, p);
    RIG_CHECK(rig_move(r, true, mem, 1, buf, 8, 0) == RANK_ERR_PEER_DEAD);
    rig_meet(r, r->n - 1);
    r->ucx->mem_close(r->state, mem);
    free(buf);
}

/* Rank 1 is killed with puts to it under way. */
void death_flush_body(struct rig *r)
{
    struct rk_channel_mem *mem;
    struct rk_peer *p;
    char *buf = calloc(1, LONG);
    rank_status_t st = RANK_OK;

    RIG_CHECK(buf);
    expose(r, buf, &mem);
    if (r->me == 1) {
        while (atomic_load(&r->shared->word[0]) < 2)
            rk_progress(r->ctx);
        kill(getpid(), SIGKILL);
    }
    p = rig_peer(r, 1);
    RIG_CHECK(r->ucx->mem_attach(mem, p, 1, r->shared->key[1].bytes, r->shared->key[1].len,
                                 r->shared->key[1].base) == RANK_OK);
    for (int i = 1; st == RANK_OK; i++) {
        st = rig_move(r, true, mem, 1, buf, 1000, 0);
        if (st == RANK_OK && i % 10 == 0)
            st = r->ucx->flush(mem, NULL);
        if (i == 50)
            atomic_fetch_add(&r->shared->word[0], 1);
    }
    RIG_CHECK(st == RANK_ERR_PEER_DEAD);
    rig_wait(r, peer_dead, p);
    rig_meet(r, r->n - 1);
    r->ucx->mem_close(r->state, mem);
    free(buf);
}

/*
 * Rank 0 parts with rank 1 in the midst of a message from it, and uses the buffer for something else as soon as it is
 * notified. Rank 1 only stands still and then goes on sending, which is the worst of all ends. No byte comes later.
 */
void death_receive_body(struct rig *r)
{
    struct rk_peer *p = rig_peer(r, 1 - r->me);
    unsigned char *buf = malloc(HUGE);
    struct rk_view view = {buf, HUGE, NULL};
    struct rank_request req = {.type = RK_REQ_RECV, .ctx = r->ctx, .peer = p};
    uint64_t start;
    size_t late = 0;
    bool reported;
    pid_t pid;

    RIG_CHECK(buf);
    memset(buf, r->me, HUGE);
    got_rndv = false;
    r->ctx->engine->handler[RK_KIND_RNDV] = on_frame;
    if (r->me == 1)
        atomic_store(&r->shared->word[0], (uint64_t)getpid());
    rig_meet(r, r->n);
    if (r->me == 1) {
        announce(r, 0, buf, HUGE, &req);
        for (;;)
            rk_progress(r->ctx);
    }
    pid = (pid_t)atomic_load(&r->shared->word[0]);
    while (!got_rndv)
        rk_progress(r->ctx);
    r->ucx->rndv_recv(&waiting, &view, &req);
    while (__atomic_load_n(&buf[1 << 20], __ATOMIC_RELAXED) == 0)
        rk_progress(r->ctx);
    kill(pid, SIGSTOP);
    reported = req.done;
    rk_peer_died(p);
    reported = !reported && req.done && req.status == RANK_ERR_PEER_DEAD;
    memset(buf, 0xaa, HUGE);
    kill(pid, SIGCONT);
    start = rk_clock_ns();
    for (int i = 0; i < LOOK_PASSES || rk_clock_ns() - start < 100 * 1000 * 1000; i++)
        rk_progress(r->ctx);
    kill(pid, SIGKILL);
    for (size_t i = 0; i < HUGE; i++)
        late += buf[i] != 0xaa;
    RIG_CHECK(reported);
    RIG_CHECK(late == 0);
    free(buf);
}

/* Ranks 0 and 2 still reach each other. */
static void survivors(struct rig *r)
{
    struct rk_hdr hdr = {.kind = RK_KIND_MSG};
    int other = r->me == 0 ? 2 : 0, before;

    rig_meet(r, r->n - 1);
    before = r->me == 0 ? 2 : 0;
    RIG_CHECK(nframes >= before);
    RIG_CHECK(rig_send(r, other, &hdr, NULL) == RANK_OK);
    wait_frames(r, before + 1);
}

void death_body(struct rig *r)
{
    char *buf = calloc(2, LONG);

    RIG_CHECK(buf);
    nframes = 0;
    got_rndv = false;
    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    r->ctx->engine->handler[RK_KIND_RNDV] = on_frame;
    if (r->me == 1)
        atomic_store(&r->shared->word[0], (uint64_t)getpid());
    rig_meet(r, r->n);
    if (r->me == 1)
        victim(r, buf);
    if (r->me == 0)
        mourner(r, buf);
    survivors(r);
    free(buf);
}

/* Rank 1 sends when rank 0 has slept for a while; without a wake it would sleep for 100 ms, each time. A machine that is shared
 * is late now and then. */
void sleep_body(struct rig *r)
{
    struct rk_hdr hdr = {.kind = RK_KIND_MSG};
    uint64_t slow = 0;

    nframes = 0;
    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    rig_peer(r, 1 - r->me);
    RIG_CHECK(rig_send(r, 1 - r->me, &hdr, NULL) == RANK_OK);
    wait_frames(r, 1);
    r->ctx->engine->spin_ns = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t start;
        if (r->me == 1) {
            usleep(30 * 1000); /* the other's sleep, which this test is about */
            atomic_store(&r->shared->word[1], rk_clock_ns());
            RIG_CHECK(rig_send(r, 0, &hdr, NULL) == RANK_OK);
            wait_frames(r, 2 + i);
            continue;
        }
        wait_frames(r, 2 + i);
        start = atomic_load(&r->shared->word[1]);
        slow += rk_clock_ns() - start > 50 * 1000 * 1000;
        RIG_CHECK(rig_send(r, 1, &hdr, NULL) == RANK_OK);
    }
    RIG_CHECK(slow <= 5);
    r->ctx->engine->spin_ns = 3600ull * 1000000000u;
}
