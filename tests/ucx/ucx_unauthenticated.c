/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_unauthenticated.c: read and write memory of a rank without its key.
 * The process has a UCX of its own and rank 0's address: a key to its own memory and an address of rank 0's. It works only where
 * UCX was chosen for puts and gets (RANK_UCX_RMA=on), which shows that the other test checks the right thing.
 *
 * By UCX 1.22 a put over tcp is one of the transport itself, without a check: see doc/rma.md. There only the get is tested.
 */
#include "lib/base/clock.h"
#include "lib/channel/ucx/decode.h"
#include "tests/ucx/ucx_fixture.h"

#include <ucp/api/ucp.h>

enum { SECRET = 0x5c, WAIT_MS = 20 * 1000, LOOK_MS = 50 };

static uint64_t target[8], stolen;
static int nframes;

static void on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                     const void *payload, const struct rk_rndv *rndv)
{
    (void)ctx;
    (void)peer;
    (void)hdr;
    (void)payload;
    (void)rndv;
    nframes++;
}

static bool has_frame(void *arg)
{
    (void)arg;
    return nframes > 0;
}

static ucp_ep_h open_ep(struct rig *r, ucp_context_h *context, ucp_worker_h *worker)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA | UCP_FEATURE_AM};
    ucp_worker_params_t worker_params = {0};
    const struct rk_ucx_card *card = (const void *)r->shared->card[0].bytes;
    ucp_ep_params_t ep_params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address = (const ucp_address_t *)(const void *)(r->shared->card[0].bytes + sizeof(*card)),
    };
    ucp_config_t *config;
    ucp_ep_h ep;

    RIG_CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK);
    RIG_CHECK(ucp_config_modify(config, "TLS", "tcp") == UCS_OK);
    RIG_CHECK(ucp_init(&params, config, context) == UCS_OK);
    ucp_config_release(config);
    RIG_CHECK(ucp_worker_create(*context, &worker_params, worker) == UCS_OK);
    RIG_CHECK(ucp_ep_create(*worker, &ep_params, &ep) == UCS_OK);
    return ep;
}

static ucp_rkey_h forge_key(struct rig *r, ucp_context_h context, ucp_ep_h ep, ucp_mem_h *mem)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = target,
        .length = sizeof(target),
    };
    ucp_rkey_h key;
    void *packed;
    size_t len;

    RIG_CHECK(ucp_mem_map(context, &params, mem) == UCS_OK);
    RIG_CHECK(ucp_rkey_pack(context, *mem, &packed, &len) == UCS_OK);
    RIG_CHECK(ucp_ep_rkey_unpack(ep, packed, &key) == UCS_OK);
    ucp_rkey_buffer_release(packed);
    return key;
}

/* The request is left to UCP; what it sends goes before what is sent after it. */
static void begun(struct rig *r, ucs_status_ptr_t p)
{
    RIG_CHECK(!UCS_PTR_IS_ERR(p));
    if (UCS_PTR_IS_PTR(p))
        ucp_request_free(p);
}

static bool puts_are_the_transports(void)
{
    unsigned major, minor, patch;

    ucp_get_version(&major, &minor, &patch);
    return major > 1 || minor > 13;
}

static void work(ucp_worker_h worker, _Atomic uint64_t *until, int ms)
{
    uint64_t end = rk_clock_ns() + (uint64_t)ms * 1000000u;

    while (rk_clock_ns() < end && (!until || atomic_load(until) == 0) && (until || stolen == 0))
        ucp_worker_progress(worker);
}

/* Behind them a frame in the name of rank 1, so that rank 0 sees that they have come by. */
static void attack(struct rig *r, bool asked)
{
    static const uint64_t evil = 0x6576696c6576696cull;
    ucp_request_param_t param = {0};
    struct {
        struct rk_ucx_head head;
        struct rk_ucx_hello hello;
    } packet = {
        .head = {.to = {RK_UCX_NO_LINK, 0}, .first = {.kind = RK_KIND_MSG}},
        .hello = {.magic = RK_UCX_MAGIC, .rank = 1, .job = rk_engine_peer(r->ctx, 1)->id.job, .from = {0, 1}},
    };
    uint64_t there = atomic_load(&r->shared->word[0]), secret = 0;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep = open_ep(r, &context, &worker);
    ucp_mem_h mem;
    ucp_rkey_h key = forge_key(r, context, ep, &mem);

    memset(&secret, SECRET, sizeof(secret));
    stolen = 0;
    begun(r, ucp_get_nbx(ep, &stolen, sizeof(stolen), there, key, &param));
    if (!puts_are_the_transports())
        begun(r, ucp_put_nbx(ep, &evil, sizeof(evil), there + sizeof(target[0]), key, &param));
    begun(r, ucp_am_send_nbx(ep, 17, &packet, sizeof(packet), NULL, 0, &param));
    work(worker, &r->shared->word[1], WAIT_MS); /* until rank 0 has had all of it, */
    work(worker, NULL, asked ? WAIT_MS : LOOK_MS); /* and an answer, if there is one, is here */
    RIG_CHECK(atomic_load(&r->shared->word[1]) == 1);
    RIG_CHECK(stolen == (asked ? secret : 0));
    ucp_rkey_destroy(key);
    ucp_mem_unmap(context, mem);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

static void be_attacked(struct rig *r, bool asked)
{
    bool written = asked && !puts_are_the_transports();
    const unsigned char *bytes = (const unsigned char *)target;

    nframes = 0;
    memset(target, SECRET, sizeof(target));
    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    atomic_store(&r->shared->word[0], (uint64_t)(uintptr_t)target);
    rig_meet(r, r->n);
    if (r->me == 1) {
        attack(r, asked);
    } else {
        rig_wait(r, has_frame, NULL);
        atomic_store(&r->shared->word[1], 1);
        for (size_t i = 0; i < sizeof(target); i++)
            RIG_CHECK((bytes[i] == SECRET) == (!written || i < 8 || i >= 16));
    }
    rig_meet(r, r->n);
}

void unauthenticated_body(struct rig *r)
{
    RIG_CHECK(!r->ucx->one_sided(r->state));
    be_attacked(r, false);
}

void unauthenticated_rma_body(struct rig *r)
{
    RIG_CHECK(r->ucx->one_sided(r->state));
    be_attacked(r, true);
}
