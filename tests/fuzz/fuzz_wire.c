/*
 * fuzz_wire.c: libFuzzer target: what comes over the wires between xrun and its
 * agents, and to their doors; and lists of hosts. The first byte says which.
 */
#include "launcher/bootstrap/handshake.h"
#include "launcher/alloc/hostlist.h"
#include "launcher/job/job.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void setup(const uint8_t *data, size_t len)
{
    struct rk_unpacker u = {data, len, false};
    struct rk_packer p = {0};
    struct rk_setup s;

    if (rk_setup_unpack(&u, &s) == RANK_OK)
        rk_setup_pack(&s, s.node, &p);
    rk_packer_free(&p);
    rk_setup_clear(&s);
}

/* What is taken can be packed again, and is the same then. */
static void job(const uint8_t *data, size_t len)
{
    struct rk_unpacker u = {data, len, false};
    struct rk_packer p = {0};
    struct rk_job_map map;
    struct rk_job j;

    if (rk_job_unpack(&u, &j) == RANK_OK) {
        rk_job_pack(&j, &p);
        if (!p.failed && p.len > len)
            abort();
        if (rk_job_map_make(&j, &map) == RANK_OK && map.n == 0)
            abort();
        rk_job_map_clear(&map);
        for (uint32_t r = 0; r < j.size; r++) {
            if (!rk_job_app_of(&j, r) || j.host_of[r] >= j.nhosts)
                abort();
        }
    }
    rk_packer_free(&p);
    rk_job_clear(&j);
}

static void seats(const uint8_t *data, size_t len)
{
    struct rk_unpacker u = {data, len, false};
    struct rk_seats s;

    rk_seats_unpack(&u, &s);
    rk_seats_clear(&s);
}

static void hello(const uint8_t *data, size_t len)
{
    static const uint8_t secret[RK_SECRET] = "0123456789abcdef";
    char version[RK_HELLO_VERSION + 1];
    uint32_t node;

    rk_hello_begins(data, len < RK_HELLO ? len : RK_HELLO);
    if (len >= RK_HELLO && rk_hello_check(data, secret, &node, version) != RK_HELLO_STRANGER &&
        memcmp(data + 16, secret, RK_SECRET / 2) != 0)
        abort();
}

static void hosts(const uint8_t *data, size_t len)
{
    struct rk_hostlist list = {.n = 0};
    char text[256], err[128];

    if (len >= sizeof(text) || memchr(data, '\0', len))
        return;
    memcpy(text, data, len);
    text[len] = '\0';
    if (rk_hostlist_parse(&list, text, err, sizeof(err)) == RANK_OK) {
        for (uint32_t i = 0; i < list.n; i++) {
            if (!list.host[i].name[0])
                abort();
        }
    }
    rk_hostlist_clear(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const all[])(const uint8_t *data, size_t len) = {setup, job, seats, hello, hosts};

    rk_log_threshold = -1;
    if (len > 0)
        all[data[0] % 5](data + 1, len - 1);
    return 0;
}
