/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_wire.c: decode what goes between xrun and its agents.
 * And what comes to their listeners; and lists of hosts. The first byte chooses.
 */
#include "launcher/bootstrap/handshake.h"
#include "launcher/alloc/hostlist.h"
#include "launcher/job/job.h"
#include "launcher/job/machine_pack.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void setup(const uint8_t *data, size_t len)
{
    struct xr_unpacker u = {data, len, false};
    struct xr_packer p = {0};
    struct xr_setup s;

    if (xr_setup_unpack(&u, &s) == RANK_OK)
        xr_setup_pack(&s, s.node, &p);
    xr_packer_free(&p);
    xr_setup_clear(&s);
}

/* What is taken can be packed again, and is the same then. */
static void job(const uint8_t *data, size_t len)
{
    struct xr_unpacker u = {data, len, false};
    struct xr_packer p = {0};
    struct xr_job_map map;
    struct xr_job j;

    if (xr_job_unpack(&u, &j) == RANK_OK) {
        xr_job_pack(&j, &p);
        if (!p.failed && p.len > len)
            abort();
        if (xr_job_map_make(&j, &map) == RANK_OK && map.n == 0)
            abort();
        xr_job_map_clear(&map);
        for (uint32_t r = 0; r < j.size; r++) {
            if (!xr_job_app_of(&j, r) || j.host_of[r] >= j.nhosts)
                abort();
        }
    }
    xr_packer_free(&p);
    xr_job_clear(&j);
}

static void local_ranks(const uint8_t *data, size_t len)
{
    struct xr_unpacker u = {data, len, false};
    struct xr_local_ranks s;

    xr_local_ranks_unpack(&u, &s);
    xr_local_ranks_clear(&s);
}

/* A machine that is taken can be packed again, and is the same then. */
static void machine(const uint8_t *data, size_t len)
{
    struct xr_unpacker u = {data, len, false};
    struct xr_packer p = {0};
    struct rk_machine m;

    if (xr_machine_unpack(&u, &m) == RANK_OK) {
        xr_machine_pack(&m, &p);
        if (!p.failed && p.len != len)
            abort();
    }
    xr_packer_free(&p);
    rk_machine_free(&m);
}

/* A peer without a key gets an answer only as a node of the tree, and proves nothing. */
static void hello(const uint8_t *data, size_t len)
{
    static const uint8_t secret[RK_AUTH_KEY] = "0123456789abcdef";
    static const struct xr_kary shape = {.nodes = 100, .fanout = 3, .head = 5};
    char version[XR_HANDSHAKE_VERSION + 1];
    uint8_t answer[XR_HANDSHAKE_ANSWER];
    struct xr_handshake h;

    xr_handshake_begins(data, len < XR_HANDSHAKE_HELLO ? len : XR_HANDSHAKE_HELLO);
    if (len < XR_HANDSHAKE_HELLO + XR_HANDSHAKE_PROOF || !rk_auth_open())
        return;
    memcpy(h.transcript, data, XR_HANDSHAKE_HELLO);
    if (xr_handshake_node(&h) >= shape.nodes || !xr_handshake_key(&shape, XR_NODE_FRONT, secret, xr_handshake_node(&h), h.key))
        return;
    if (!xr_handshake_answer(&h, answer) ||
        xr_handshake_is_proved(&h, data + XR_HANDSHAKE_HELLO))
        abort();
    xr_handshake_same_version(&h, version);
}

static void hosts(const uint8_t *data, size_t len)
{
    struct xr_hostlist list = {.n = 0};
    char text[256], err[128];

    if (len >= sizeof(text) || memchr(data, '\0', len))
        return;
    memcpy(text, data, len);
    text[len] = '\0';
    if (xr_hostlist_parse(&list, text, err, sizeof(err)) == RANK_OK) {
        for (uint32_t i = 0; i < list.n; i++) {
            if (!list.host[i].name[0])
                abort();
        }
    }
    xr_hostlist_clear(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const all[])(const uint8_t *data, size_t len) = {setup, job, local_ranks, hello, hosts, machine};

    rk_log_threshold = -1;
    if (len > 0)
        all[data[0] % 6](data + 1, len - 1);
    return 0;
}
