/* SPDX-License-Identifier: BSD-3-Clause */
/* procs_test.c: number processes, describe them to a spawned job, lose other jobs. */
#include "tests/unit/unit.h"

#include "lib/boot/parent.h"
#include "lib/boot/nspaces.h"
#include "lib/core/card.h"
#include "lib/core/procs.h"
#include "lib/node/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ------------------------------------------------------------------------ parent.h */

static struct rk_boot_parent example(void)
{
    struct rk_boot_parent p = {.job = 0xfedcba9876543210u, .pair = 1, .both = 0, .root_job = 77,
                               .root_rank = 3, .root_size = 4, .card_len = 5, .card = "ab\0\xff"};

    strcpy(p.root_space, "prterun-host-1@2");
    strcpy(p.server, "server.x");
    return p;
}

static void text_and_back(void **state)
{
    struct rk_boot_parent p = example(), q;
    char *text = rk_parent_text(&p);

    (void)state;
    assert_non_null(text);
    assert_true(rk_parent_parse(text, &q));
    assert_memory_equal(&p, &q, sizeof(p));
    free(text);

    memset(p.server, 0, sizeof(p.server)); /* not reported */
    p.card_len = sizeof(p.card);
    memset(p.card, 0xa5, sizeof(p.card));
    memset(p.root_space, 'n', sizeof(p.root_space) - 1);
    p.root_rank = RK_JOB_SIZE_MAX - 1;
    p.root_size = RK_JOB_SIZE_MAX;
    text = rk_parent_text(&p);
    assert_non_null(text);
    assert_true(rk_parent_parse(text, &q));
    assert_memory_equal(&p, &q, sizeof(p));
    free(text);

    p.root_space[2] = ',';
    assert_null(rk_parent_text(&p));
}

static void garbage(void **state)
{
    static const char *const bad[] = {
        "", ",", "1", "1,,,,,,,,,", "2,1,1,1,1,0,1,s,n,00", "1,1,1,1,1,1,1,s,n,00",
        "1,1,1,1,1,0,1,s,,00", "1,1,1,1,1,0,1,s,n,", "1,1,1,1,1,0,1,s,n,0", "1,1,1,1,1,0,1,s,n,0g",
        "1,1,1,1,1,0,1,s,n,00,", "1,11111111111111111,1,1,1,0,1,s,n,00", "1,1,1,1,1,-1,1,s,n,00",
        "1,1,1,1,1,0,fffffff,s,n,00", "1, 1,1,1,1,0,1,s,n,00", "1,1,1,1,1,0,1,s,n,AB"};
    struct rk_boot_parent *p = calloc(1, sizeof(*p));
    char *text, *longer = calloc(1, 3 * RK_CARD_MAX);

    (void)state;
    assert_true(rk_parent_parse("1,1,1,1,1,0,1,s,n,00", p));
    for (size_t i = 0; i < RK_ARRAY_LEN(bad); i++) {
        if (rk_parent_parse(bad[i], p))
            fail_msg("taken: %s", bad[i]);
    }
    *p = example();
    text = rk_parent_text(p);
    for (size_t cut = strlen(text) - 2 * p->card_len + 1; cut-- > 0;) { /* every beginning */
        text[cut] = '\0';
        assert_false(rk_parent_parse(text, p));
    }
    strcpy(longer, "1,1,1,1,1,0,1,s,n,");
    memset(longer + strlen(longer), '0', 2 * RK_CARD_MAX + 2);
    assert_false(rk_parent_parse(longer, p));
    memset(longer + strlen("1,1,1,1,1,0,1,"), 'n', RK_NSPACE_MAX); /* a name too long */
    assert_false(rk_parent_parse(longer, p));
    free(text);
    free(longer);
    free(p);
}

/* ------------------------------------------------------------------------ nspaces.h */

struct ended {
    int n, number[600];
};

static void record_end(int number, void *arg)
{
    struct ended *t = arg;

    assert_in_range(t->n, 0, 599);
    t->number[t->n++] = number;
}

static void spaces(void **state)
{
    struct rk_nspaces *s = rk_nspaces_new();
    struct ended t = {0};

    (void)state;
    assert_non_null(s);
    assert_int_equal(rk_nspaces_register(s, "a", 10, 3, record_end, &t), RANK_OK);
    rk_nspaces_ended(s, "a", 2, record_end, &t);
    rk_nspaces_ended(s, "a", 3, record_end, &t); /* there is none */
    assert_int_equal(t.n, 1);
    assert_int_equal(t.number[0], 12);
    rk_nspaces_ended(s, "a", RK_NSPACE_ALL, record_end, &t);
    assert_int_equal(t.n, 4);
    assert_int_equal(t.number[3], 12);

    t.n = 0; /* before it has a name */
    rk_nspaces_ended(s, "b", 1, record_end, &t);
    rk_nspaces_ended(s, "c", 0, record_end, &t);
    rk_nspaces_ended(s, "b", 0, record_end, &t);
    assert_int_equal(t.n, 0);
    assert_int_equal(rk_nspaces_register(s, "b", 20, 2, record_end, &t), RANK_OK);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.number[0], 21);
    assert_int_equal(t.number[1], 20);
    assert_int_equal(rk_nspaces_register(s, "b", 20, 2, record_end, &t), RANK_OK);
    assert_int_equal(t.n, 2);

    t.n = 0; /* the oldest of too many are forgotten */
    for (int i = 0; i < 500; i++)
        rk_nspaces_ended(s, "d", i, record_end, &t);
    assert_int_equal(rk_nspaces_register(s, "d", 100, 500, record_end, &t), RANK_OK);
    assert_in_range(t.n, 100, 499);
    assert_int_equal(t.number[t.n - 1], 599);
    rk_nspaces_ended(s, "e", 1, record_end, &t); /* stays till the end */
    rk_nspaces_free(s);
    rk_nspaces_free(NULL);
}

/* ------------------------------------------------------------------------ core/procs.h */

static void job_removed(struct rk_boot *boot, int first)
{
    assert_true(first >= boot->size);
}

static const struct rk_boot_provider provider = {.name = "unit", .remove_job = job_removed};

static void processes(void **state)
{
    static struct rk_boot boot = {.ops = &provider, .rank = 1, .size = 5, .alone = true, .job = "w"};
    struct rk_ctx ctx = {.boot = &boot};
    struct rk_engine *e;
    char card[8];
    size_t len = sizeof(card), all_len = 0;
    unsigned char *all = NULL;
    struct rk_peer peer = {.ctx = &ctx};
    int first;

    (void)state;
    assert_int_equal(rk_engine_open(&ctx), RANK_OK);
    e = ctx.engine;
    assert_int_equal(rk_procs_add_job(&ctx, e->job, 5, 3, &first), RANK_OK); /* ours */
    assert_int_equal(first, 0);
    assert_int_equal(rk_procs_add_job(&ctx, 7, 100, 7, &first), RANK_OK);
    assert_int_equal(first, 5);
    assert_int_equal(rk_procs_add_job(&ctx, 8, 1, 8, &first), RANK_OK);
    assert_int_equal(first, 105);
    assert_int_equal(rk_procs_add_job(&ctx, 7, 100, 7, &first), RANK_OK); /* again */
    assert_int_equal(first, 5);
    assert_int_equal(e->npeers, 106);
    assert_int_equal(rk_procs_add_job(&ctx, 7, 101, 7, &first), RANK_ERR_BOOT);
    assert_int_equal(rk_procs_add_job(&ctx, 9, 0, 9, &first), RANK_ERR_BOOT);
    assert_int_equal(rk_procs_add_job(&ctx, 9, RK_JOB_SIZE_MAX + 1, 9, &first), RANK_ERR_BOOT);

    for (int n = 0; n < 106; n++) { /* there and back */
        struct rk_procid id = rk_procs_id(&ctx, n);
        assert_int_equal(rk_procs_number(&ctx, id), n);
        assert_int_equal(id.rank, n < 5 ? n : n < 105 ? n - 5 : 0);
        assert_int_equal(id.job, n < 5 ? e->job : n < 105 ? 7 : 8);
    }
    assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){7, 100}), -1);
    assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){e->job, 5}), -1);
    assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){12, 0}), -1);
    assert_null(rk_engine_find_peer(&ctx, (struct rk_procid){12, 0}));

    assert_true(rk_card_add(&all, &all_len, "ucx", "address", 8));
    assert_true(rk_card_add(&all, &all_len, "tcp", "card", 5));
    assert_int_equal(rk_procs_set_card(&ctx, 6, all, all_len), RANK_OK);
    peer.number = 6;
    assert_int_equal(rk_peer_card(&peer, "tcp", card, &len), RANK_OK);
    assert_int_equal(len, 5);
    assert_string_equal(card, "card");
    assert_int_equal(rk_peer_card(&peer, "shm", card, &len), RANK_ERR_UNREACHABLE);
    len = 4;
    assert_int_equal(rk_peer_card(&peer, "tcp", card, &len), RANK_ERR_UNREACHABLE);
    peer.number = 7;
    assert_int_equal(rk_peer_card(&peer, "tcp", card, &len), RANK_ERR_UNREACHABLE);
    for (size_t cut = 0; cut < all_len; cut++)
        assert_null(rk_card_part(all, cut, "tcp", &len));
    free(all);

    /* A death is not lost when the table grows, nor left when numbers go to others. */
    e->boot_dead[0] = 1u << 3;
    e->boot_dead[105 / 64] |= 1ull << (105 % 64);
    rk_procs_remove_job(&ctx, 8);
    assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){8, 0}), -1);
    assert_int_equal(rk_procs_add_job(&ctx, 10, 1000, 10, &first), RANK_OK);
    assert_int_equal(first, 105);
    assert_int_equal(e->boot_dead[0], 1u << 3);
    assert_int_equal(e->boot_dead[105 / 64], 0);

    /* The lowest range with room. */
    rk_procs_remove_job(&ctx, 7);
    assert_int_equal(rk_procs_id(&ctx, 105).job, 10);
    assert_int_equal(rk_procs_add_job(&ctx, 11, 60, 11, &first), RANK_OK);
    assert_int_equal(first, 5);
    assert_int_equal(rk_procs_add_job(&ctx, 12, 41, 12, &first), RANK_OK);
    assert_int_equal(first, 1105);
    assert_int_equal(rk_procs_add_job(&ctx, 13, 40, 13, &first), RANK_OK);
    assert_int_equal(first, 65);
    assert_int_equal(rk_procs_id(&ctx, 64).job, 11);
    assert_int_equal(rk_procs_id(&ctx, 65).job, 13);
    assert_int_equal(rk_procs_epoch(&ctx, 104), 13);
    assert_int_equal(rk_procs_epoch(&ctx, 4), 0);
    assert_int_equal(e->npeers, 1146);
    rk_engine_close(&ctx);
}

/* ---------------------------------------------------------------- peers come and go */

enum { JOB_SIZE = 4, COMING = 100000, FIRST_COMING = 1000, GROWTH_MAX = 1 << 20 };

/* A channel that delivers each sent frame to its sender, as channels do: frames of another epoch are dropped. */
static struct {
    int connected, forgotten, late;
} fake;

static rank_status_t fake_open(struct rk_ctx *ctx, void **state, void *card, size_t *len)
{
    (void)ctx;
    (void)card;
    *state = &fake;
    *len = 0;
    return RANK_OK;
}

static void fake_close(struct rk_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
}

static rank_status_t fake_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer)
{
    (void)ctx;
    (void)state;
    peer->ep = malloc(64);
    fake.connected++;
    return peer->ep ? RANK_OK : RANK_ERR_NO_MEMORY;
}

static void fake_disconnect(void *state, struct rk_peer *peer)
{
    (void)state;
    free(peer->ep);
    peer->ep = NULL;
    fake.connected--;
}

static void fake_forget(void *state, struct rk_peer *peer, bool disconnected)
{
    assert_true(disconnected || peer->state == RK_PEER_DEAD);
    if (peer->ep)
        fake_disconnect(state, peer);
    fake.forgotten++;
}

static size_t fake_max(const struct rk_peer *peer)
{
    (void)peer;
    return 4096;
}

static rank_status_t fake_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    if (hdr->epoch != peer->epoch)
        fake.late++;
    else
        peer->ctx->engine->handler[hdr->kind](peer->ctx, peer, hdr, payload, NULL);
    return RANK_OK;
}

static const struct rk_channel fake_channel = {.name = "fake", .open = fake_open, .close = fake_close, .connect = fake_connect,
                                               .disconnect = fake_disconnect, .forget = fake_forget, .frame_max = fake_max,
                                               .send = fake_send};

static int frames, died, dropped;

static void count_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                        const struct rk_rndv *rndv)
{
    (void)ctx;
    (void)payload;
    (void)rndv;
    assert_int_equal(hdr->tag, peer->id.job);
    frames++;
}

static void count_death(struct rk_ctx *ctx, struct rk_peer *peer)
{
    (void)ctx;
    assert_int_equal(peer->state, RK_PEER_DEAD);
    died++;
}

static void count_drop(struct rk_ctx *ctx, struct rk_peer *peer)
{
    (void)ctx;
    (void)peer;
    dropped++;
}

static const struct rk_room counting = {.name = "counting", .peer_died = count_death, .peer_dropped = count_drop,
                                        .frames = {{RK_KIND_MSG, count_frame}}};

static long resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0, all = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &all, &pages), 2);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Meet each process of a job; a frame of the number's earlier process comes late. */
static void meet_all(struct rk_ctx *ctx, uint64_t job, uint16_t epoch, int first, bool others)
{
    for (int i = 0; i < JOB_SIZE; i++) {
        struct rk_peer *p = rk_engine_peer(ctx, first + i);
        struct rk_hdr hdr = {.kind = RK_KIND_MSG, .epoch = epoch, .tag = job}, old = {.kind = RK_KIND_MSG, .epoch = epoch - 1};

        assert_non_null(p);
        assert_int_equal(p->id.job, job);
        assert_int_equal(p->id.rank, i);
        assert_int_equal(p->epoch, epoch);
        assert_int_equal(p->state, RK_PEER_NEW);
        assert_int_equal(rk_peer_try_connect(p), RANK_OK);
        assert_int_equal(p->channel->send(p, &hdr, NULL), RANK_OK);
        if (others)
            assert_int_equal(p->channel->send(p, &old, NULL), RANK_OK);
    }
}

/* 100,000 peers do not grow the process: half of them are disconnected, half die. */
static void come_and_go(void **state)
{
    static struct rk_boot boot = {.ops = &provider, .rank = 1, .size = 3, .alone = true, .job = "w"};
    struct rk_node node = {.nlocal = 1};
    struct rk_ctx ctx = {.boot = &boot, .node = &node};
    long before = 0, after;
    size_t len = 0;
    int first;

    (void)state;
    assert_int_equal(rk_engine_open(&ctx), RANK_OK);
    assert_int_equal(rk_engine_open_channel(&ctx, &fake_channel, NULL, &len), RANK_OK);
    assert_int_equal(rk_room_open(&ctx, &counting), RANK_OK);
    for (int n = 0; n < COMING; n += JOB_SIZE) {
        uint64_t job = 100 + (uint64_t)n;
        uint16_t epoch = (uint16_t)(7 + n / JOB_SIZE);

        if (n == FIRST_COMING)
            before = resident_bytes();
        assert_int_equal(rk_procs_add_job(&ctx, job, JOB_SIZE, epoch, &first), RANK_OK);
        assert_int_equal(first, 3);
        assert_int_equal(rk_procs_set_card(&ctx, first, "card", 5), RANK_OK);
        meet_all(&ctx, job, epoch, first, n > 0);
        rk_procs_sweep(&ctx); /* it is neither disconnected nor dead */
        assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){job, 0}), 3);
        if (n % (2 * JOB_SIZE)) {
            rk_procs_disconnect(&ctx, job);
        } else {
            for (int i = 0; i < JOB_SIZE; i++) {
                rk_engine_report_death(&ctx, first + i);
                rk_peer_died(rk_engine_peer(&ctx, first + i));
            }
        }
        assert_false(rk_procs_all_dead(&ctx));
        rk_procs_hold(&ctx, &first, 1, 1);
        rk_procs_sweep(&ctx);
        assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){job, 0}), 3);
        rk_procs_hold(&ctx, &first, 1, -1);
        rk_procs_sweep(&ctx);
        assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){job, 0}), -1);
    }
    after = resident_bytes();
    assert_int_equal(ctx.engine->npeers, 3 + JOB_SIZE);
    assert_int_equal(ctx.engine->boot_dead[0], 0);
    assert_int_equal(frames, COMING);
    assert_int_equal(fake.late, COMING - JOB_SIZE);
    assert_int_equal(died, COMING / 2);
    assert_int_equal(dropped, COMING);
    assert_int_equal(fake.forgotten, COMING);
    assert_int_equal(fake.connected, 0);
#ifndef __SANITIZE_ADDRESS__ /* it keeps freed memory */
    assert_in_range(after > before ? after - before : 0, 0, GROWTH_MAX);
#else
    (void)after, (void)before;
#endif
    rk_engine_close(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back),
        cmocka_unit_test(garbage),
        cmocka_unit_test(spaces),
        cmocka_unit_test(processes),
        cmocka_unit_test(come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
