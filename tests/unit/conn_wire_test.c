/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_wire_test.c: test handshake, addresses and secrets of connections. */
#include "lib/base/conf.h"
#include "lib/conn/address.h"
#include "lib/conn/handshake_wire.h"
#include "lib/base/random.h"
#include "lib/conn/secret.h"

#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>

enum { ROUNDS = 20000 };

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void fill_random(void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)next_random();
}

/* ------------------------------------------------------------------- messages */

/* Decode in memory of just the size, so that a sanitizer finds a read past the end. */
static ssize_t decode_exact(const unsigned char *from, size_t len, struct rk_shake *out)
{
    unsigned char *copy = malloc(len ? len : 1);
    ssize_t used;

    assert_non_null(copy);
    memcpy(copy, from, len);
    used = rk_shake_next(copy, len, out);
    free(copy);
    return used;
}

/* A message of a type with random fields; a text that the decoder does not change. */
static struct rk_shake random_message(int type)
{
    static const rank_status_t refusals[] = {RANK_ERR_REFUSED, RANK_ERR_SECRET, RANK_ERR_NO_MEMORY};
    struct rk_shake m = {.type = (enum rk_shake_type)type};

    if (type == RK_SHAKE_HELLO || type == RK_SHAKE_CHALLENGE)
        fill_random(m.nonce, sizeof(m.nonce));
    m.secret_wanted = type == RK_SHAKE_CHALLENGE && next_random() % 2;
    if (type == RK_SHAKE_PROOF || type == RK_SHAKE_WELCOME) {
        fill_random(m.mac, sizeof(m.mac));
        m.context = next_random();
        m.host = next_random();
        m.pid = (uint32_t)next_random();
        m.uid = (uint32_t)next_random();
        m.window = (uint32_t)next_random();
        memset(m.name, 'n', next_random() % RK_SHAKE_NAME);
        m.hello_bytes = (uint16_t)(next_random() % (RK_SHAKE_HELLO_MAX + 1));
        fill_random(m.hello, m.hello_bytes);
        m.card_bytes = next_random() % 2 ? (uint16_t)(next_random() % (RK_SHAKE_CARD_MAX + 1)) : 0;
        fill_random(m.card, m.card_bytes);
        m.team = type == RK_SHAKE_WELCOME ? next_random() : 0;
    }
    if (type == RK_SHAKE_WELCOME) {
        m.segment = next_random();
        m.segment_bytes = next_random();
        m.segment_fd = (uint32_t)next_random();
    }
    m.takes = type == RK_SHAKE_READY ? (uint8_t)(next_random() % 3) : 0;
    if (type == RK_SHAKE_REFUSED) {
        m.status = refusals[next_random() % 3];
        memset(m.text, 't', next_random() % (RK_SHAKE_TEXT_MAX + 1));
    }
    return m;
}

static void assert_same_message(const struct rk_shake *a, const struct rk_shake *b)
{
    assert_int_equal(a->type, b->type);
    assert_memory_equal(a->nonce, b->nonce, sizeof(a->nonce));
    assert_int_equal(a->secret_wanted, b->secret_wanted);
    assert_memory_equal(a->mac, b->mac, sizeof(a->mac));
    assert_true(a->context == b->context && a->host == b->host && a->pid == b->pid && a->uid == b->uid && a->team == b->team && a->window == b->window);
    assert_true(a->segment == b->segment && a->segment_bytes == b->segment_bytes && a->segment_fd == b->segment_fd);
    assert_int_equal(a->takes, b->takes);
    assert_int_equal(a->card_bytes, b->card_bytes);
    assert_memory_equal(a->card, b->card, sizeof(a->card));
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->hello_bytes, b->hello_bytes);
    assert_memory_equal(a->hello, b->hello, sizeof(a->hello));
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->text, b->text);
}

static void test_round_trips(void **state)
{
    unsigned char bytes[RK_SHAKE_MAX], again[RK_SHAKE_MAX];

    (void)state;
    for (int i = 0; i < 500; i++)
        for (int type = RK_SHAKE_HELLO; type < RK_SHAKE_TYPE_END; type++) {
            struct rk_shake in = random_message(type), out;
            size_t len = rk_shake_encode(&in, bytes);

            assert_int_equal(decode_exact(bytes, len, &out), len);
            assert_same_message(&in, &out);
            assert_int_equal(rk_shake_encode(&out, again), len);
            assert_memory_equal(bytes, again, len);
        }
}

/* The need of each prefix leads to the message and not a byte further. */
static void test_truncation(void **state)
{
    (void)state;
    for (int type = RK_SHAKE_HELLO; type < RK_SHAKE_TYPE_END; type++) {
        unsigned char bytes[RK_SHAKE_MAX + 3];
        struct rk_shake in = random_message(type), out;
        size_t len = rk_shake_encode(&in, bytes), read = 0;

        memset(bytes + len, 0xff, 3); /* the next message is not looked at */
        for (size_t part = 0; part < len; part++) {
            assert_int_equal(decode_exact(bytes, part, &out), 0);
            assert_true(out.need > part && out.need <= len);
            assert_int_equal(out.type, part < RK_SHAKE_HEAD ? 0 : type);
        }
        while (decode_exact(bytes, read, &out) == 0)
            read = out.need;
        assert_int_equal(read, len);
        assert_int_equal(decode_exact(bytes, len + 3, &out), len);
    }
}

static void assert_malformed(const unsigned char *bytes, size_t len, const char *why)
{
    struct rk_shake out;

    assert_true(decode_exact(bytes, len, &out) < 0);
    assert_contains(out.why, why);
}

static void test_malformed(void **state)
{
    static const struct {
        int type;
        size_t at;
        unsigned char byte;
        const char *why;
    } cases[] = {
        {RK_SHAKE_HELLO, 0, 'G', "not a listener or client of librank"},
        {RK_SHAKE_HELLO, 3, 0, "not a listener or client of librank"},
        {RK_SHAKE_HELLO, 4, 7, "has version 7 of the handshake, this side has version 2"},
        {RK_SHAKE_HELLO, 6, 0, "unknown type 0"},
        {RK_SHAKE_HELLO, 6, 7, "unknown type 7"},
        {RK_SHAKE_HELLO, 7, 1, "unknown type 257"},
        {RK_SHAKE_HELLO, 8, 33, "HELLO has a body of 33 bytes"},
        {RK_SHAKE_HELLO, 11, 0x80, "HELLO has a body of 2147483680 bytes"},
        {RK_SHAKE_CHALLENGE, 12 + 32, 2, "wants 2 secrets"},
        {RK_SHAKE_PROOF, 9, 0x10, "PROOF has a body of"},
        {RK_SHAKE_PROOF, 12 + 32 + 28 + 63, 'x', "name in PROOF"},
        {RK_SHAKE_PROOF, 12 + 32 + 28 + 64, 9, "PROOF announces a card of 9 bytes, and 7 follow"},
        {RK_SHAKE_PROOF, 12 + 32 + 28 + 64 + 1, 0xff, "PROOF announces a card of 65280 bytes, and 7 follow"},
        {RK_SHAKE_PROOF, 12 + 32 + 28 + 64 + 2, 9, "PROOF announces a hello of 9 bytes and has 5"},
        {RK_SHAKE_WELCOME, 12 + 32 + 28 + 64 + RK_SHAKE_WELCOME_MORE + 3, 1, "WELCOME announces a hello of 261 bytes and has 5"},
        {RK_SHAKE_READY, 12, 3, "READY takes the unknown way 3"},
        {RK_SHAKE_REFUSED, 12, 0xff, "REFUSED has the status -1"},
        {RK_SHAKE_REFUSED, 15, 0x7f, "REFUSED has the status"},
    };
    unsigned char bytes[RK_SHAKE_MAX];
    struct rk_shake out;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct rk_shake in = {.type = (enum rk_shake_type)cases[i].type, .name = "name", .hello_bytes = 5,
                              .status = RANK_ERR_REFUSED, .text = "text"};
        size_t len = rk_shake_encode(&in, bytes);

        bytes[cases[i].at] = cases[i].byte;
        assert_malformed(bytes, len, cases[i].why);
    }
    assert_int_equal(rk_shake_next(NULL, 0, &out), 0);
    assert_int_equal(out.need, RK_SHAKE_HEAD);
    assert_malformed((const unsigned char *)"GET", 3, "not a listener or client of librank");
    assert_malformed((const unsigned char *)"S", 1, "not a listener or client of librank");
}

/* What is too long is cut; what a terminal would execute is replaced. */
static void test_limits(void **state)
{
    struct rk_shake in = {.type = RK_SHAKE_REFUSED, .status = RANK_ERR_ARG, .text = "a\033[31m\nb"}, out;
    unsigned char bytes[RK_SHAKE_MAX];

    (void)state;
    assert_int_equal(decode_exact(bytes, rk_shake_encode(&in, bytes), &out), RK_SHAKE_HEAD + 4 + 8);
    assert_int_equal(out.status, RANK_ERR_REFUSED);
    assert_string_equal(out.text, "a?[31m?b");
    in = (struct rk_shake){.type = RK_SHAKE_WELCOME, .hello_bytes = 9999, .card_bytes = RK_SHAKE_CARD_MAX};
    memset(in.name, 'x', sizeof(in.name));
    in.name[1] = '\t';
    assert_int_equal(rk_shake_encode(&in, bytes), RK_SHAKE_MAX);
    assert_int_equal(decode_exact(bytes, RK_SHAKE_MAX, &out), RK_SHAKE_MAX);
    assert_int_equal(strlen(out.name), RK_SHAKE_NAME - 1);
    assert_int_equal(out.name[1], '?');
    assert_int_equal(out.hello_bytes, RK_SHAKE_HELLO_MAX);
    assert_null(rk_shake_label(RK_SHAKE_HELLO));
    assert_string_equal(rk_shake_type_text(RK_SHAKE_TYPE_END), "?");
}

/* Damaged and random bytes: never a read past the end, and what is accepted is the only encoding. */
static void test_random_bytes(void **state)
{
    unsigned char bytes[RK_SHAKE_MAX], again[RK_SHAKE_MAX];
    int accepted = 0;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct rk_shake in = random_message(1 + (int)(next_random() % 5)), out;
        size_t len = rk_shake_encode(&in, bytes);
        ssize_t used;

        for (int n = (int)(next_random() % 4); n; n--)
            bytes[next_random() % (next_random() % 2 ? len : RK_SHAKE_HEAD)] = (unsigned char)next_random();
        len -= next_random() % 4 ? 0 : next_random() % len;
        used = decode_exact(bytes, len, &out);
        assert_true(used <= (ssize_t)len);
        assert_true(used != 0 || (out.need > len && out.need <= RK_SHAKE_MAX));
        assert_true(used >= 0 || out.why[0]);
        if (used > 0) {
            assert_int_equal(rk_shake_encode(&out, again), used);
            if (!strchr(out.name, '?') && !strchr(out.text, '?'))
                assert_memory_equal(bytes, again, (size_t)used);
        }
        accepted += used > 0;
    }
    assert_true(accepted > ROUNDS / 10 && accepted < ROUNDS);
}

/* ------------------------------------------------------------------- secrets */

static void test_hmac_vectors(void **state)
{
    /* RFC 4231, test case 6, of which the key is long enough for a secret; its first word serves as no label. */
    static const unsigned char expected[RK_SECRET_MAC] = {
        0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f, 0x0d, 0x8a, 0x26, 0xaa, 0xcb, 0xf5, 0xb7, 0x7f,
        0x8e, 0x0b, 0xc6, 0x21, 0x37, 0x28, 0xc5, 0x14, 0x05, 0x46, 0x04, 0x0f, 0x0e, 0xe3, 0x7f, 0x54};
    static const char data[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    unsigned char mac[RK_SECRET_MAC], other[RK_SECRET_MAC];
    struct rk_secret secret = {.bytes = 131};

    (void)state;
    memset(secret.data, 0xaa, 131);
    if (rk_secret_prove(&secret, NULL, data, strlen(data), mac) == RANK_ERR_NOT_SUPPORTED)
        skip(); /* no libsodium */
    assert_memory_equal(mac, expected, sizeof(mac));
    assert_true(rk_secret_verify(&secret, NULL, data, strlen(data), mac));
    assert_int_equal(rk_secret_prove(&secret, "client", data, 5, mac), RANK_OK);
    assert_int_equal(rk_secret_prove(&secret, NULL, "client\0Test ", 12, other), RANK_OK);
    assert_memory_equal(mac, other, sizeof(mac)); /* the label and its NUL are part of it */
    assert_false(rk_secret_verify(&secret, "server", data, 5, mac));
    for (int bit = 0; bit < 256; bit++) {
        mac[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(rk_secret_verify(&secret, "client", data, 5, mac));
        mac[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(rk_secret_verify(&secret, "client", data, 5, mac));
}

/* A mac covers both nonces and each byte of its message, itself excepted. */
static void test_signed_bytes(void **state)
{
    unsigned char client[RK_SHAKE_NONCE], server[RK_SHAKE_NONCE], bytes[RK_SHAKE_MAX];
    unsigned char before[RK_SHAKE_SIGNED_MAX], after[RK_SHAKE_SIGNED_MAX];

    (void)state;
    assert_true(rk_random_secret(client, sizeof(client)));
    assert_true(rk_random_secret(server, sizeof(server)));
    assert_memory_not_equal(client, server, sizeof(client));
    for (int type = RK_SHAKE_HELLO; type < RK_SHAKE_TYPE_END; type++) {
        struct rk_shake in = random_message(type);
        size_t len = rk_shake_encode(&in, bytes), n = rk_shake_signed(client, server, bytes, len, before);

        if (!rk_shake_label((enum rk_shake_type)type)) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(n, 2 * RK_SHAKE_NONCE + len - RK_SHAKE_MAC);
        for (size_t i = 0; i < len; i++) {
            bool of_mac = i >= RK_SHAKE_HEAD && i < RK_SHAKE_HEAD + RK_SHAKE_MAC;

            bytes[i] ^= 1;
            if (i != 6 && i != 7) { /* the type, which labels have */
                assert_int_equal(rk_shake_signed(client, server, bytes, len, after), n);
                assert_int_equal(memcmp(before, after, n) == 0, of_mac);
            }
            bytes[i] ^= 1;
        }
        assert_int_equal(rk_shake_signed(server, client, bytes, len, after), n);
        assert_memory_not_equal(before, after, n);
        assert_int_equal(rk_shake_signed(client, server, bytes, RK_SHAKE_HEAD + RK_SHAKE_MAC - 1, after), 0);
    }
}

static char file_name[] = "/tmp/conn_wire_test.XXXXXX";

/* Load a file of these bytes and mode. */
static rank_status_t load_file(const char *data, size_t bytes, mode_t mode, struct rk_secret *out, char *why, size_t len)
{
    int fd = open(file_name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, bytes), bytes);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    rk_conf.secret_file = file_name;
    return rk_secret_load(NULL, 0, out, why, len);
}

static void test_secret_files(void **state)
{
    static const struct {
        size_t bytes;
        mode_t mode;
        rank_status_t status;
        const char *why;
    } cases[] = {
        {16, 0600, RANK_OK, ""},
        {17, 0400, RANK_OK, ""},
        {4096, 0600, RANK_OK, ""},
        {15, 0600, RANK_ERR_CONFIG, "less than 16 bytes; it may have 16 to 4096"},
        {0, 0600, RANK_ERR_CONFIG, "less than 16"},
        {4097, 0600, RANK_ERR_CONFIG, "more than 4096"},
        {9000, 0600, RANK_ERR_CONFIG, "more than 4096"},
        {32, 0640, RANK_ERR_CONFIG, "open to others (mode 0640); run: chmod 600 /tmp/conn_wire_test."},
        {32, 0602, RANK_ERR_CONFIG, "mode 0602"},
        {32, 0610, RANK_ERR_CONFIG, "mode 0610"},
    };
    static char data[9001];
    struct rk_secret secret, given;
    char why[512];
    int fd = mkstemp(file_name);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    memset(data, 'k', sizeof(data));
    if (rk_secret_load("0123456789abcdef", 16, &given, why, sizeof(why)) == RANK_ERR_NOT_SUPPORTED) {
        assert_contains(why, "libsodium23");
        unlink(file_name);
        skip();
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int newline = 0; newline < 2; newline++) {
            size_t bytes = cases[i].bytes;

            data[bytes] = '\n';
            why[0] = '\0';
            assert_int_equal(load_file(data, bytes + (size_t)newline, cases[i].mode, &secret, why, sizeof(why)), cases[i].status);
            data[bytes] = 'k';
            assert_int_equal(secret.bytes, cases[i].status == RANK_OK ? bytes : 0);
            assert_memory_equal(secret.data, data, secret.bytes);
            assert_contains(why, cases[i].why);
            assert_null(strstr(why, "kkk"));
        }
    unlink(file_name);
    assert_int_equal(rk_secret_load(NULL, 0, &secret, why, sizeof(why)), RANK_ERR_CONFIG);
    assert_contains(why, "cannot be opened: No such file");
    assert_int_equal(mkfifo(file_name, 0600), 0);
    assert_int_equal(rk_secret_load(NULL, 0, &secret, why, sizeof(why)), RANK_ERR_CONFIG); /* and does not wait */
    assert_contains(why, "not a regular file");
    unlink(file_name);
    load_file(data, 32, 0600, &secret, why, sizeof(why));
    if (geteuid() == 0 && chown(file_name, 12345, 0) == 0) {
        assert_int_equal(rk_secret_load(NULL, 0, &secret, why, sizeof(why)), RANK_ERR_CONFIG);
        assert_contains(why, "belongs to user 12345, not to user 0");
    }
    unlink(file_name);
    /* what the program gives comes first */
    assert_int_equal(rk_secret_load("0123456789abcdef", 16, &secret, why, sizeof(why)), RANK_OK);
    assert_memory_equal(secret.data, "0123456789abcdef", 16);
    rk_secret_clear(&secret);
    assert_int_equal(secret.bytes | secret.data[0] | secret.data[15], 0);
    assert_int_equal(rk_secret_load("0123456789abcde", 15, &secret, why, sizeof(why)), RANK_ERR_ARG);
    assert_int_equal(rk_secret_load(NULL, 20, &secret, why, sizeof(why)), RANK_ERR_ARG);
    assert_int_equal(rk_secret_load(data, 4097, &secret, why, sizeof(why)), RANK_ERR_ARG);
    assert_contains(why, "4097 bytes; it may have 16 to 4096");
    rk_conf.secret_file = "";
    assert_int_equal(rk_secret_load(NULL, 0, &secret, why, sizeof(why)), RANK_OK);
    assert_int_equal(secret.bytes, 0);
}

/* Without a secret the mac is zero, and a side that has one is noticed. */
static void test_no_secret(void **state)
{
    struct rk_secret none = {0};
    unsigned char mac[RK_SECRET_MAC];

    (void)state;
    memset(mac, 1, sizeof(mac));
    assert_false(rk_secret_verify(&none, "client", "data", 4, mac));
    assert_int_equal(rk_secret_prove(&none, "client", "data", 4, mac), RANK_OK);
    assert_true(rk_secret_verify(&none, "server", "other", 5, mac));
}

/* ------------------------------------------------------------------- addresses */

static void test_addresses(void **state)
{
    static const struct {
        const char *text, *host;
        int port, client, listener; /* accepted by */
        const char *why;
    } cases[] = {
        {"hosta:7471", "hosta", 7471, 1, 1, ""},
        {"a-b.c_d.example:1", "a-b.c_d.example", 1, 1, 1, ""},
        {"10.1.2.3:65535", "10.1.2.3", 65535, 1, 1, ""},
        {"[::1]:7471", "::1", 7471, 1, 1, ""},
        {"[fe80::1%eth0]:9", "fe80::1%eth0", 9, 1, 1, ""},
        {"[::ffff:1.2.3.4]:9", "::ffff:1.2.3.4", 9, 1, 1, ""},
        {":7471", "", 7471, 0, 1, "no host, which is for listening only; write \"host:7471\""},
        {":0", "", 0, 0, 1, "port 0 is for listening only"},
        {"hosta:0", "hosta", 0, 0, 1, "port 0 is for listening only"},
        {"", "", 0, 0, 0, "no port"},
        {"hosta", "", 0, 0, 0, "no port"},
        {"[::1]", "", 0, 0, 0, "no port"},
        {"hosta:", "", 0, 0, 0, "not a number"},
        {"hosta:http", "", 0, 0, 0, "not a number"},
        {"hosta:65536", "", 0, 0, 0, "not a number"},
        {"hosta:-1", "", 0, 0, 0, "not a number"},
        {"hosta: 1", "", 0, 0, 0, "not a number"},
        {"hosta:1 ", "", 0, 0, 0, "not a number"},
        {"hosta:007471", "", 0, 0, 0, "not a number"},
        {"::1:7471", "", 0, 0, 0, "several colons"},
        {"[::1:7471", "", 0, 0, 0, "without ']'"},
        {"[hosta]:7471", "", 0, 0, 0, "not an IPv6 address"},
        {"[]:7471", "", 0, 0, 0, "not an IPv6 address"},
        {"[fe80::1%]:7471", "", 0, 0, 0, "not an IPv6 address"},
        {"[1.2.3.4]:7471", "", 0, 0, 0, "not an IPv6 address"},
        {"[::1]x:7471", "", 0, 0, 0, "without ']'"},
        {"tcp://hosta:7471", "", 0, 0, 0, "without a scheme"},
        {"host a:7471", "", 0, 0, 0, "characters"},
        {"*:7471", "", 0, 0, 0, "characters"},
        {"10.0.1:7471", "", 0, 0, 0, "write four numbers"},
        {"7471:7471", "", 0, 0, 0, "write four numbers"},
        {"1.2.3.400:7471", "", 0, 0, 0, "write four numbers"},
    };
    struct rk_address a;
    char why[256], longest[300];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int listens = 0; listens < 2; listens++) {
            rank_status_t status = rk_address_parse(cases[i].text, listens, &a, why, sizeof(why));

            assert_int_equal(status == RANK_OK, listens ? cases[i].listener : cases[i].client);
            if (status == RANK_OK) {
                assert_string_equal(a.host, cases[i].host);
                assert_int_equal(a.port, cases[i].port);
            } else {
                assert_int_equal(status, RANK_ERR_ARG);
                assert_contains(why, cases[i].why);
            }
        }
    memset(longest, 'h', sizeof(longest));
    memcpy(longest + 255, ":1", 3);
    assert_int_equal(rk_address_parse(longest, false, &a, why, sizeof(why)), RANK_OK);
    memcpy(longest + 255, "h:1", 4);
    assert_int_equal(rk_address_parse(longest, false, &a, why, sizeof(why)), RANK_ERR_ARG);
    assert_contains(why, "256 characters; it may have 255");
}

/* Resolve, print and parse again. */
static void check_resolved(const char *text, const char *printed, bool listens, bool loopback)
{
    struct rk_address a;
    struct addrinfo *list;
    char why[256], again[RK_ADDRESS_TEXT];

    assert_int_equal(rk_address_parse(text, listens, &a, why, sizeof(why)), RANK_OK);
    assert_int_equal(rk_address_resolve(&a, listens, &list, why, sizeof(why)), RANK_OK);
    rk_address_text(list->ai_addr, again, sizeof(again));
    assert_string_equal(again, printed);
    assert_int_equal(rk_address_is_loopback(list->ai_addr), loopback);
    freeaddrinfo(list);
    assert_int_equal(rk_address_parse(again, true, &a, why, sizeof(why)), RANK_OK);
}

static void test_resolving(void **state)
{
    struct sockaddr_in6 widest = {.sin6_family = AF_INET6, .sin6_port = htons(65535)};
    struct rk_address a = {.host = "no..host", .port = 1};
    struct addrinfo *list;
    struct sockaddr other = {.sa_family = AF_UNIX};
    char why[300], text[RK_ADDRESS_TEXT];

    (void)state;
    check_resolved("127.0.0.1:5", "127.0.0.1:5", false, true);
    check_resolved("127.9.9.9:5", "127.9.9.9:5", false, true);
    check_resolved("10.1.2.3:65535", "10.1.2.3:65535", false, false);
    check_resolved("[0::1]:5", "[::1]:5", true, true);
    check_resolved("[::ffff:127.0.0.1]:5", "127.0.0.1:5", false, true);
    check_resolved("[::ffff:10.0.0.1]:5", "10.0.0.1:5", false, false);
    check_resolved("[2001:db8::2]:7", "[2001:db8::2]:7", false, false);
    check_resolved(":7471", "[::]:7471", true, false);
    check_resolved("0.0.0.0:0", "0.0.0.0:0", true, false);
    assert_true(rk_address_resolve(&a, false, &list, why, sizeof(why)) != RANK_OK);
    assert_null(list);
    assert_contains(why, "host \"no..host\" cannot be resolved: ");
    rk_address_text(&other, text, sizeof(text));
    assert_string_equal(text, "?");
    assert_false(rk_address_is_loopback(&other));
    memset(&widest.sin6_addr, 0xfe, sizeof(widest.sin6_addr));
    rk_address_text((const void *)&widest, text, sizeof(text));
    assert_string_equal(text, "[fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe]:65535");
    assert_true(rk_address_host_id() == rk_address_host_id());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),  cmocka_unit_test(test_truncation),   cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_limits),       cmocka_unit_test(test_random_bytes), cmocka_unit_test(test_hmac_vectors),
        cmocka_unit_test(test_signed_bytes), cmocka_unit_test(test_secret_files), cmocka_unit_test(test_no_secret),
        cmocka_unit_test(test_addresses),    cmocka_unit_test(test_resolving),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
