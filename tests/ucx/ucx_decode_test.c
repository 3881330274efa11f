/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_decode_test.c: decode bytes from outside, reorder packets, parse devices. */
#include "lib/channel/ucx/decode.h"
#include "lib/channel/ucx/devices.h"
#include "lib/channel/ucx/reorder.h"
#include "tests/unit/unit.h"

/* ---------------------------------------------------------------------- decode */

struct packet {
    unsigned char head[RK_UCX_HEAD_MAX + sizeof(struct rk_id)];
    size_t head_len;
    unsigned char data[512];
    size_t len;
};

static void begin(struct packet *p, uint8_t kind, uint32_t len, bool hello)
{
    struct rk_ucx_head h = {.to = {3, 77}, .first = {.turn = 9, .kind = kind, .len = len}};
    struct rk_ucx_hello hello_frame = {RK_UCX_MAGIC, 5, 0x1122334455667788ull, {6, 88}};

    memset(p, 0, sizeof(*p));
    memcpy(p->head, &h, sizeof(h));
    memcpy(p->head + sizeof(h), &hello_frame, sizeof(hello_frame));
    p->head_len = hello ? RK_UCX_HEAD_MAX : sizeof(h);
    for (uint32_t i = 0; i < len; i++)
        p->data[i] = (unsigned char)(i + 1);
    p->len = len;
}

static void add(struct packet *p, uint8_t kind, uint32_t len)
{
    struct rk_hdr h = {.kind = kind, .len = len, .tag = len};

    p->len = rk_ucx_pad(p->len);
    memcpy(p->data + p->len, &h, sizeof(h));
    p->len += sizeof(h);
    memset(p->data + p->len, (int)len, len);
    p->len += len;
}

static bool decodes(const struct packet *p, bool rndv)
{
    struct rk_ucx_packet out;

    return rk_ucx_decode(p->head, p->head_len, p->data, p->len, rndv, &out);
}

static void test_one_frame(void **state)
{
    struct rk_ucx_packet out;
    struct packet p;
    struct rk_hdr hdr;
    const void *payload;

    (void)state;
    for (uint32_t len = 0; len < 40; len++) {
        begin(&p, RK_KIND_MSG, len, false);
        assert_true(rk_ucx_decode(p.head, p.head_len, p.data, p.len, false, &out));
        assert_int_equal(out.to.index, 3);
        assert_int_equal(out.to.gen, 77);
        assert_false(out.has_hello);
        assert_true(rk_ucx_next(&out, &hdr, &payload));
        assert_int_equal(hdr.turn, 9);
        assert_int_equal(hdr.len, len);
        assert_ptr_equal(payload, len ? p.data : NULL);
        assert_false(rk_ucx_next(&out, &hdr, &payload));
    }
}

static void test_hello(void **state)
{
    struct rk_ucx_packet out;
    struct packet p;

    (void)state;
    begin(&p, RK_KIND_MSG, 8, true);
    assert_true(rk_ucx_decode(p.head, p.head_len, p.data, p.len, false, &out));
    assert_true(out.has_hello);
    assert_int_equal(out.hello.rank, 5);
    assert_int_equal(out.hello.from.index, 6);
    assert_int_equal(out.hello.from.gen, 88);
    p.head[sizeof(struct rk_ucx_head)] ^= 1; /* the magic */
    assert_false(decodes(&p, false));
}

static void test_handshake_is_optional(void **state)
{
    struct packet p;

    (void)state;
    begin(&p, RK_KIND_MSG, 8, true);
    memset(p.head, 0xff, 4);
    assert_true(decodes(&p, false));
    p.head_len = sizeof(struct rk_ucx_head);
    assert_false(decodes(&p, false));
}

static void test_chain(void **state)
{
    static const uint32_t lens[] = {0, 1, 7, 8, 9, 33};
    struct rk_ucx_packet out;
    struct packet p;
    struct rk_hdr hdr;
    const void *payload;

    (void)state;
    begin(&p, RK_KIND_MSG, 5, false);
    for (size_t i = 0; i < RK_ARRAY_LEN(lens); i++)
        add(&p, RK_KIND_MSG, lens[i]);
    assert_true(rk_ucx_decode(p.head, p.head_len, p.data, p.len, false, &out));
    assert_true(rk_ucx_next(&out, &hdr, &payload));
    assert_int_equal(hdr.len, 5);
    for (size_t i = 0; i < RK_ARRAY_LEN(lens); i++) {
        assert_true(rk_ucx_next(&out, &hdr, &payload));
        assert_int_equal(hdr.len, lens[i]);
        assert_int_equal(hdr.tag, lens[i]);
        for (uint32_t k = 0; k < lens[i]; k++)
            assert_int_equal(((const unsigned char *)payload)[k], lens[i]);
    }
    assert_false(rk_ucx_next(&out, &hdr, &payload));
}

/* A packet cut anywhere, or with bytes left over, is broken unless it ends with a whole frame. */
static void test_every_cut(void **state)
{
    size_t whole[3], n;
    struct packet p;

    (void)state;
    begin(&p, RK_KIND_MSG, 5, false);
    whole[0] = p.len;
    add(&p, RK_KIND_MSG, 3);
    whole[1] = p.len;
    add(&p, RK_KIND_CREDIT, 0);
    whole[2] = p.len;
    for (n = 0; n <= whole[2]; n++) {
        bool good = n == whole[0] || n == whole[1] || n == whole[2];
        p.len = n;
        if (decodes(&p, false) != good)
            fail_msg("cut to %zu of %zu bytes", n, whole[2]);
    }
    p.len = whole[2] + 1;
    assert_false(decodes(&p, false));
    for (n = 0; n < sizeof(p.head) + 8; n++) {
        p.len = whole[0];
        p.head_len = n;
        assert_int_equal(decodes(&p, false),
                         n == sizeof(struct rk_ucx_head) || n == RK_UCX_HEAD_MAX);
    }
}

static void test_kinds(void **state)
{
    struct packet p;

    (void)state;
    for (int k = 0; k < RK_KIND_COUNT; k++) {
        bool ours = k >= RK_KIND_CHANNEL_FIRST && k < RK_UCX_KIND_END;
        bool good = k != RK_KIND_NONE && k != RK_KIND_RNDV && k < RK_UCX_KIND_END;

        if (ours)
            continue;
        begin(&p, (uint8_t)k, 4, false);
        if (decodes(&p, false) != good)
            fail_msg("kind %d", k);
        begin(&p, RK_KIND_MSG, 4, false);
        add(&p, (uint8_t)k, 4);
        if (decodes(&p, false) != good)
            fail_msg("kind %d behind another", k);
    }
}

static void test_lengths_of_our_own(void **state)
{
    struct packet p;

    (void)state;
    for (uint32_t len = 0; len < 64; len++) {
        begin(&p, RK_UCX_BYE, len, false);
        assert_int_equal(decodes(&p, false), len == 0);
    }
}

static void test_rndv(void **state)
{
    struct rk_ucx_packet out;
    struct packet p;

    (void)state;
    begin(&p, RK_KIND_RNDV, 0, true);
    /* Its data is a descriptor that must not be read. */
    assert_true(rk_ucx_decode(p.head, p.head_len, (void *)16, 1u << 30, true, &out));
    assert_false(rk_ucx_decode(p.head, p.head_len, (void *)16, 0, true, &out));
    begin(&p, RK_KIND_MSG, 0, true);
    assert_false(rk_ucx_decode(p.head, p.head_len, (void *)16, 1u << 30, true, &out));
    begin(&p, RK_KIND_RNDV, 4, true);
    assert_false(rk_ucx_decode(p.head, p.head_len, (void *)16, 1u << 30, true, &out));
    assert_false(rk_ucx_decode(NULL, 0, NULL, 0, false, &out));
    begin(&p, RK_KIND_MSG, 4, false);
    assert_false(rk_ucx_decode(p.head, p.head_len, NULL, 4, false, &out));
}

/* ----------------------------------------------------------------------- order */

static void test_turns(void **state)
{
    struct rk_order o = {.due = UINT32_MAX - 1}; /* the count wraps in the middle */

    (void)state;
    assert_int_equal(rk_order_compare(&o, UINT32_MAX - 1), RK_TURN_DUE);
    assert_int_equal(rk_order_compare(&o, UINT32_MAX), RK_TURN_EARLY);
    assert_int_equal(rk_order_compare(&o, 0), RK_TURN_EARLY);
    assert_int_equal(rk_order_compare(&o, UINT32_MAX - 2), RK_TURN_STALE);
    assert_int_equal(rk_order_compare(&o, UINT32_MAX - 1 + RK_ORDER_WINDOW - 1), RK_TURN_EARLY);
    assert_int_equal(rk_order_compare(&o, UINT32_MAX - 1 + RK_ORDER_WINDOW), RK_TURN_BROKEN);
}

enum { MANY = 5000, STEPS_BACK = 40 };

static void never(void *item, void *arg)
{
    (void)item;
    (void)arg;
    fail_msg("nothing may be left");
}

static void test_shuffled(void **state)
{
    static uint32_t turn[MANY];
    static int items[MANY];
    struct rk_order o = {.due = UINT32_MAX - MANY / 2};
    uint32_t first = o.due, next = 0, seed = 12345;

    (void)state;
    for (uint32_t i = 0; i < MANY; i++)
        turn[i] = i;
    for (uint32_t i = 0; i + STEPS_BACK < MANY; i++) { /* nothing moves far */
        uint32_t k, t = turn[i];
        seed = seed * 1664525u + 1013904223u;
        k = i + (seed >> 16) % STEPS_BACK;
        turn[i] = turn[k];
        turn[k] = t;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        void *item;
        if (rk_order_compare(&o, first + turn[i]) == RK_TURN_EARLY) {
            assert_int_equal(rk_order_hold(&o, first + turn[i], &items[turn[i]]), 0);
            assert_int_equal(rk_order_hold(&o, first + turn[i], &items[0]), 1);
            continue;
        }
        assert_int_equal(rk_order_compare(&o, first + turn[i]), RK_TURN_DUE);
        assert_int_equal(turn[i], next);
        rk_order_advance(&o);
        next++;
        while ((item = rk_order_take(&o)) != NULL) {
            assert_ptr_equal(item, &items[next]);
            rk_order_advance(&o);
            next++;
        }
    }
    assert_int_equal(next, MANY);
    assert_int_equal(o.nheld, 0);
    assert_true(o.mask < 64 * STEPS_BACK); /* it grew with what was held, not with the count */
    rk_order_destroy(&o, never, NULL);
}

static void count(void *item, void *arg)
{
    (void)item;
    ++*(int *)arg;
}

static void test_left_over(void **state)
{
    struct rk_order o = {0};
    int item, n = 0;

    (void)state;
    rk_order_destroy(&o, count, &n);
    assert_int_equal(n, 0);
    for (uint32_t t = 1; t < RK_ORDER_WINDOW; t *= 3)
        assert_int_equal(rk_order_hold(&o, t, &item), 0);
    assert_int_equal(rk_order_hold(&o, RK_ORDER_WINDOW - 1, &item), 0);
    rk_order_destroy(&o, count, &n);
    assert_int_equal(n, 11);
}

/* --------------------------------------------------------------------- devices */

#define MD "#            md 1  :  component 1  tcp \n#\n"
#define RESOURCE(name) "#      resource 1  :  md 1  dev 1  flags -- " name "\n"

static void test_devices(void **state)
{
    const char *text = MD RESOURCE("self/memory0") RESOURCE("tcp/eth0") "#\n", *at = text, *name;
    size_t len;

    (void)state;
    name = rk_ucx_next_device(&at, &len);
    assert_non_null(name);
    assert_int_equal(len, strlen("self/memory0"));
    assert_memory_equal(name, "self/memory0", len);
    name = rk_ucx_next_device(&at, &len);
    assert_non_null(name);
    assert_int_equal(len, strlen("tcp/eth0"));
    assert_memory_equal(name, "tcp/eth0", len);
    assert_null(rk_ucx_next_device(&at, &len));
    assert_null(rk_ucx_next_device(&at, &len));
}

static void test_rdma(void **state)
{
    (void)state;
    assert_false(rk_ucx_lists_rdma(""));
    assert_false(rk_ucx_lists_rdma(MD));
    assert_false(rk_ucx_lists_rdma(MD RESOURCE("self/memory0") RESOURCE("posix/memory") RESOURCE("cma/memory")));
    assert_false(rk_ucx_lists_rdma(MD RESOURCE("tcp/eth0")));
    assert_false(rk_ucx_lists_rdma(RESOURCE("ud_mlx5/mlx5_0:1") RESOURCE("cma/memory")));
    assert_true(rk_ucx_lists_rdma(RESOURCE("rc_mlx5/mlx5_0:1")));
    assert_true(rk_ucx_lists_rdma(RESOURCE("tcp/ib0") RESOURCE("dc_mlx5/mlx5_0:1") MD));
}

static void make_port(const char *root, const char *device, int port)
{
    char command[512];

    snprintf(command, sizeof(command), "mkdir -p %s/class/infiniband/%s/ports/%d", root, device, port);
    assert_int_equal(system(command), 0);
}

static void expect_net_devices(const char *root, const char *nics, const char *wanted)
{
    char *words = rk_ucx_net_devices(nics, root);

    assert_non_null(words);
    assert_string_equal(words, wanted);
    free(words);
}

static void test_net_devices(void **state)
{
    char root[] = "/tmp/rank-sysfs.XXXXXX", command[64];

    (void)state;
    assert_non_null(mkdtemp(root));
    make_port(root, "mlx5_0", 1);
    make_port(root, "mlx5_1", 2);
    expect_net_devices(root, "mlx5_0", "mlx5_0:1");
    expect_net_devices(root, "mlx5_0,ib0,mlx5_1,", "mlx5_0:1,ib0,mlx5_1:2");
    expect_net_devices(root, "mlx5_0:1,,mlx5_2", "mlx5_0:1,mlx5_2");
    expect_net_devices(root, "../infiniband/mlx5_0", "../infiniband/mlx5_0");
    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
    assert_true(rk_ucx_has_net_device(MD RESOURCE("self/memory0") RESOURCE("tcp/ib0"), "mlx5_0:1,ib0"));
    assert_true(rk_ucx_has_net_device(RESOURCE("rc_mlx5/mlx5_0:1") MD, "mlx5_0:1,ib0"));
    assert_false(rk_ucx_has_net_device(MD RESOURCE("tcp/ib1") RESOURCE("rc_mlx5/mlx5_0:2"), "mlx5_0:1,ib,ib10"));
    assert_false(rk_ucx_has_net_device("", "ib0"));
}

static void tls_without_tcp(void **state)
{
    static const char *const cases[][2] = {
        {"tcp", ""}, {"rc,tcp,self", "rc,self"}, {"tcp,\\tcp,posix", "posix"}, {"all", "^tcp"}, {"rc,all", "^tcp"},
        {"^shm", "^shm,tcp"}, {"^", "^tcp"}, {"rc", "rc"}, {"tcp2,ud:aux", "tcp2,ud:aux"}, {"", ""}, {",,tcp", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *left = rk_ucx_tls_without_tcp(cases[i][0]);

        assert_non_null(left);
        assert_string_equal(left, cases[i][1]);
        free(left);
    }
    assert_true(rk_ucx_lists_tcp("#  resource 2 : md 1 dev 2 flags -- tcp/eth0\n"));
    assert_false(rk_ucx_lists_tcp("#  resource 2 : md 1 dev 2 flags -- rc_verbs/tcp:1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_frame),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_handshake_is_optional),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_lengths_of_our_own),
        cmocka_unit_test(test_rndv),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_rdma),
        cmocka_unit_test(test_net_devices),
        cmocka_unit_test(tls_without_tcp),
    };

    return cmocka_run_group_tests_name("ucx wire", tests, NULL, NULL);
}
