/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sendq_test.c: queue, send, cancel and fail at random, against a model.
 * The channel has room for a few frames.
 */
#include "tests/unit/unit.h"

#include "lib/boot/boot.h"
#include "lib/core/engine.h"

enum { SENDQ_PEERS = 3, SENDQ_ROUNDS = 3000, SENDQ_STEPS = 100, ENTRIES_MAX = 2 * SENDQ_STEPS };

/* What is sent: a frame with its number. Control frames are the queue's, others its own items. */
struct entry {
    struct rk_send_item item;
    int peer, class;
    bool waits;
};

static struct entry entries[ENTRIES_MAX];
static int nentries, nended, nfailed;
static struct rk_engine engine;
static struct rk_ctx ctx;
static struct rk_peer peers[SENDQ_PEERS];
static int room[SENDQ_PEERS];
static rank_status_t reached, broken; /* results of the channel's connect and send */

/* The model: entries of a class wait in the order of their numbers. */
static int first_waiting(int peer, int class, const struct rk_send_ops *ops)
{
    for (int n = 0; n < nentries; n++) {
        const struct entry *e = &entries[n];
        if (e->waits && e->peer == peer && e->class == class && (!ops || e->item.ops == ops))
            return n;
    }
    return -1;
}

static bool any_waits(int peer)
{
    for (int c = 0; c < RK_SEND_CLASSES; c++) {
        if (first_waiting(peer, c, NULL) >= 0)
            return true;
    }
    return false;
}

static rank_status_t fake_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    int p = peer->number, n, first = first_waiting(p, hdr->kind, NULL);

    memcpy(&n, payload, sizeof(n));
    assert_int_equal(hdr->len, sizeof(n));
    assert_int_equal(hdr->tag, n);
    assert_int_equal(entries[n].peer, p);
    assert_int_equal(entries[n].class, hdr->kind);
    assert_int_equal(peer->state, RK_PEER_UP);
    assert_int_equal(first, entries[n].waits ? n : -1); /* in order */
    if (hdr->kind != RK_SEND_CONTROL)
        assert_int_equal(first_waiting(p, RK_SEND_CONTROL, NULL), -1); /* no reply waits behind data */
    if (room[p] == 0)
        return RK_AGAIN;
    room[p]--;
    nended += entries[n].waits;
    entries[n].waits = false;
    return broken;
}

static rank_status_t fake_connect(struct rk_ctx *c, void *state, struct rk_peer *peer)
{
    (void)c;
    (void)state;
    (void)peer;
    return reached;
}

static size_t fake_frame_max(const struct rk_peer *peer)
{
    (void)peer;
    return 64;
}

static void fake_disconnect(void *state, struct rk_peer *peer)
{
    (void)state;
    (void)peer;
}

static const struct rk_channel fake = {.name = "fake", .connect = fake_connect, .disconnect = fake_disconnect,
                                       .frame_max = fake_frame_max, .send = fake_send};

static rank_status_t entry_send(struct rk_send_item *item, struct rk_peer *peer)
{
    struct entry *e = rk_container_of(item, struct entry, item);
    int n = (int)(e - entries);
    struct rk_hdr hdr = {.kind = (uint8_t)e->class, .len = sizeof(n), .tag = (uint64_t)n};

    assert_true(rk_list_empty(&item->link)); /* free for another list */
    return peer->channel->send(peer, &hdr, &n);
}

static rank_status_t fail_status;
static const struct rk_send_ops *failing; /* NULL: of all rooms */

static void entry_fail(struct rk_send_item *item, struct rk_peer *peer, rank_status_t status)
{
    struct entry *e = rk_container_of(item, struct entry, item);

    assert_int_equal(status, fail_status);
    assert_int_equal(first_waiting(peer->number, e->class, failing), e - entries);
    e->waits = false;
    nfailed++;
}

static const struct rk_send_ops rooms[] = {{entry_send, entry_fail}, {entry_send, entry_fail}};

static void check_state(void)
{
    int busy = 0;

    for (int p = 0; p < SENDQ_PEERS; p++) {
        for (int c = 0; c < RK_SEND_CLASSES; c++)
            assert_int_equal(rk_sendq_has(&peers[p].sendq, (enum rk_send_class)c), first_waiting(p, c, NULL) >= 0);
        busy += any_waits(p);
    }
    assert_int_equal(engine.ndeferred, busy);
    assert_int_equal(rk_sendq_is_idle(&engine), busy == 0);
}

/* As callers do: at once if nothing waits before it, else from the queue. */
static void begin_send(int p, int class)
{
    struct rk_peer *peer = &peers[p];
    struct entry *e = &entries[nentries];
    int n = nentries, had_room = room[p];

    *e = (struct entry){.peer = p, .class = class};
    rk_list_init(&e->item.link);
    nentries++;
    if (class == RK_SEND_CONTROL) {
        rk_send_control(peer, RK_SEND_CONTROL, (uint64_t)n, &n, sizeof(n));
        e->waits = room[p] == had_room && peer->state != RK_PEER_DEAD;
        return;
    }
    if (peer->state == RK_PEER_DEAD ||
        (peer->state == RK_PEER_UP && !rk_sendq_has(&peer->sendq, (enum rk_send_class)class) &&
         !rk_sendq_has(&peer->sendq, RK_SEND_CONTROL) && entry_send(&e->item, peer) != RK_AGAIN))
        return;
    rk_sendq_append(peer, (enum rk_send_class)class, &e->item, &rooms[rand() % 2]);
    e->waits = true;
}

static void make_progress(void)
{
    int n;

    nended = 0;
    n = rk_sendq_progress(&ctx);
    assert_int_equal(n, nended);
    for (int p = 0; p < SENDQ_PEERS; p++)
        assert_true(room[p] == 0 || peers[p].state != RK_PEER_UP || !any_waits(p)); /* what can go has gone */
}

static void cancel_any(void)
{
    struct entry *e = &entries[rand() % (nentries + 1)];

    if (!e->waits || e->class == RK_SEND_CONTROL)
        return;
    rk_sendq_remove(&peers[e->peer], &e->item);
    e->waits = false;
}

static void open_fake(void)
{
    static struct rk_peer *table[SENDQ_PEERS];
    static struct rk_boot boot = {.rank = -1, .size = SENDQ_PEERS, .alone = true};
    static _Atomic uint64_t dead[1];

    memset(entries, 0, sizeof(entries));
    nentries = nfailed = 0;
    atomic_store(dead, 0);
    engine = (struct rk_engine){.npeers = SENDQ_PEERS, .peers = table, .boot_dead = dead,
                                .deaths_lock = PTHREAD_MUTEX_INITIALIZER, .open = {{&fake, NULL}}, .nopen = 1};
    ctx = (struct rk_ctx){.engine = &engine, .boot = &boot};
    rk_sendq_open(&engine);
    for (int p = 0; p < SENDQ_PEERS; p++) {
        peers[p] = (struct rk_peer){.ctx = &ctx, .number = p, .local = -1};
        rk_sendq_init(&peers[p].sendq);
        table[p] = &peers[p];
        room[p] = 0;
    }
    reached = broken = RANK_OK;
    failing = NULL;
}

static void some_steps(void)
{
    for (int i = rand() % SENDQ_STEPS; i > 0; i--) {
        int p = rand() % SENDQ_PEERS, what = rand() % 10;

        reached = rand() % 3 ? RANK_OK : RK_AGAIN;
        if (what < 6)
            begin_send(p, rand() % RK_SEND_CLASSES);
        else if (what < 9)
            make_progress();
        else
            cancel_any();
        room[p] += rand() % 3;
        check_state();
    }
}

/* Nothing is lost. */
static void finish(void)
{
    reached = RANK_OK;
    for (int p = 0; p < SENDQ_PEERS; p++)
        room[p] = ENTRIES_MAX;
    make_progress();
    check_state();
    assert_true(rk_sendq_is_idle(&engine));
    assert_int_equal(rk_slab_in_use(&engine.controls, 0), 0);
    rk_slab_close(&engine.controls);
}

static int count_waiting(int peer, bool control, const struct rk_send_ops *ops)
{
    int count = 0;

    for (int n = 0; n < nentries; n++) {
        const struct entry *e = &entries[n];
        count += e->waits && (peer < 0 || e->peer == peer) && (e->class == RK_SEND_CONTROL) == control &&
                 (!ops || e->item.ops == ops);
    }
    return count;
}

static void forget_control(int peer)
{
    for (int n = 0; n < nentries; n++) {
        if (entries[n].peer == peer && entries[n].class == RK_SEND_CONTROL)
            entries[n].waits = false;
    }
}

static void random_sends(void **state)
{
    (void)state;
    srand(18);
    for (int round = 0; round < SENDQ_ROUNDS; round++) {
        open_fake();
        some_steps();
        finish();
    }
}

static void death_fails_all(void **state)
{
    (void)state;
    for (int round = 0; round < SENDQ_ROUNDS; round++) {
        int p = rand() % SENDQ_PEERS, expected;

        open_fake();
        some_steps();
        expected = count_waiting(p, false, NULL);
        forget_control(p);
        fail_status = RANK_ERR_PEER_DEAD;
        rk_peer_died(&peers[p]);
        assert_int_equal(nfailed, expected);
        check_state();
        some_steps();
        assert_false(any_waits(p));
        assert_int_equal(atomic_load(&engine.boot_deaths), 0);
        finish();
    }
}

/* Without a connection messages fail, and replies that cannot be sent disconnect the peer, once. */
static void no_connection(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        int p = rand() % SENDQ_PEERS, replies, others;

        open_fake();
        reached = RK_AGAIN;
        for (int i = rand() % 20; i >= 0; i--)
            begin_send(p, rand() % RK_SEND_CLASSES);
        check_state();
        replies = count_waiting(p, true, NULL);
        others = count_waiting(p, false, NULL);
        forget_control(p);
        fail_status = reached = RANK_ERR_CHANNEL;
        assert_int_equal(rk_sendq_progress(&ctx), replies + others);
        assert_int_equal(nfailed, others);
        assert_int_equal(atomic_load(&engine.boot_deaths), replies > 0);
        check_state();
        finish();
    }
}

static void room_closes(void **state)
{
    (void)state;
    for (int round = 0; round < SENDQ_ROUNDS; round++) {
        int expected;

        open_fake();
        some_steps();
        failing = &rooms[rand() % 2];
        fail_status = RANK_ERR_STATE;
        expected = count_waiting(-1, false, failing);
        rk_sendq_fail_ops(&ctx, failing, RANK_ERR_STATE);
        assert_int_equal(nfailed, expected);
        assert_int_equal(count_waiting(-1, false, failing), 0);
        check_state();
        finish();
    }
}

/* A failed send ends its frame; only a control frame disconnects. */
static void broken_channel(void **state)
{
    (void)state;
    open_fake();
    for (int c = 0; c < RK_SEND_CLASSES; c++)
        begin_send(0, c);
    broken = RANK_ERR_CHANNEL;
    finish();
    assert_int_equal(atomic_load(&engine.boot_deaths), 1);
    assert_int_equal(nfailed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_sends), cmocka_unit_test(death_fails_all),
                                       cmocka_unit_test(no_connection), cmocka_unit_test(room_closes),
                                       cmocka_unit_test(broken_channel)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
