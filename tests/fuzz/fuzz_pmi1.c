/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_pmi1.c: serve the bytes of a rank by the PMI-1 server.
 * Its lines, its KVS, its replies. The first byte gives the size of the pieces in which
 * they come; they come as if the rank had joined.
 */
#include "launcher/pmi1/pmi1_internal.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void on_joined(void *arg, uint32_t rank)
{
    (void)arg;
    (void)rank;
}

static void on_aborted(void *arg, uint32_t rank, int code, const char *text)
{
    (void)arg;
    (void)rank;
    (void)code;
    if (strlen(text) >= XR_PMI1_LINE_MAX)
        abort();
}

/* Whatever has been put must come back from another host's view of it. */
static void on_exchange(void *arg, bool lost, const void *blob, size_t len)
{
    struct xr_pmi1_kvs *other;

    (void)arg;
    (void)lost;
    if (xr_pmi1_kvs_create(1 << 24, false, &other))
        return;
    if (xr_pmi1_kvs_merge(other, blob, len))
        abort();
    xr_pmi1_kvs_destroy(other);
}

/* A request for another process is parsed there. */
static void on_request(void *arg, uint32_t rank, uint32_t id, enum xr_rpc what, struct xr_packer *p)
{
    struct xr_unpacker u = {p->data, p->len, p->failed};
    struct xr_spawn_request request;

    (void)rank;
    if (what == XR_RPC_SPAWN) {
        if (!xr_spawn_request_unpack(&u, &request) || !xr_unpack_done(&u))
            abort();
        xr_spawn_request_clear(&request);
    }
    xr_packer_free(p);
    xr_pmi1_rpc_done(arg, id, NULL);
}

static void on_line(void *arg, const char *line)
{
    xr_pmi1_block_line(arg, line);
}

static const struct xr_pmi1_ops ops = {on_joined, on_aborted, on_exchange, on_joined, on_request};

/* A blob of bytes that the fuzzer thinks of. */
static void merge(const uint8_t *data, size_t len)
{
    struct xr_pmi1_kvs *space;

    if (xr_pmi1_kvs_create(1 << 16, true, &space))
        return;
    xr_pmi1_kvs_merge(space, data, len);
    xr_pmi1_kvs_destroy(space);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct xr_pmi1_client client = {.fd = -1, .state = XR_PMI1_JOINED, .inits = 1};
    struct xr_pmi1 server = {.ops = &ops, .name = (char *)(uintptr_t) "s", .size = 1, .local = 1};
    struct xr_pmi1_input *in = calloc(1, sizeof(*in));
    enum xr_pmi1_next next = XR_PMI1_MORE;
    struct xr_pmi1_command command;
    size_t piece, at = 1;

    rk_log_threshold = -1;
    if (!in || len < 1 || xr_pmi1_kvs_create(1 << 16, true, &server.space))
        goto out;
    server.arg = &server;
    in->line = on_line;
    in->arg = &client;
    piece = data[0] + 1u;
    client.server = &server;
    server.clients = &client;
    while (at < len && next == XR_PMI1_MORE) {
        size_t room, n = len - at < piece ? len - at : piece;
        char *to = xr_pmi1_input_room(in, &room);
        if (room == 0)
            abort();
        n = n < room ? n : room;
        memcpy(to, data + at, n);
        xr_pmi1_input_filled(in, n);
        at += n;
        while ((next = xr_pmi1_input_next(in, &command)) == XR_PMI1_COMMAND) {
            xr_pmi1_execute(&client, &command);
            client.state = XR_PMI1_JOINED;
            client.waiting = false;
            server.waiting = 0;
        }
    }
    merge(data, len);
out:
    xr_pmi1_kvs_destroy(server.space);
    xr_pmi1_forget_block(&client);
    free(in);
    return 0;
}
