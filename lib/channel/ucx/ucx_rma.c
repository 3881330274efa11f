/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_rma.c: put, get and flush by UCP on exposed memory.
 *
 * Atomics are frames of lib/rma: the CPU must execute them, as it does for node peers. Keys of peers are unpacked
 * on first use: that needs an endpoint, and few ranks access all parts.
 */
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SLACK = 256 }; /* a key has no length; bytes past its end are read as 0 */

bool rk_ucx_one_sided(void *state)
{
    return ((struct rk_ucx *)state)->rma;
}

struct part {
    unsigned char *key; /* NULL: not attached */
    uint64_t base;
    ucp_rkey_h rkey;    /* NULL: not unpacked yet */
    struct rk_peer *peer;
    uint64_t written;   /* number of puts, */
    uint64_t flushed;   /* and number of those flushed */
};

struct rk_channel_mem {
    struct rk_ucx *ucx;
    ucp_mem_h memh;     /* NULL: attached parts of peers only */
    struct part *parts; /* by rank in the team */
    int nparts;
};

static rank_status_t write_key(struct rk_channel_mem *mem, void *key, size_t *keylen)
{
    void *packed;
    size_t len;
    ucs_status_t st = ucp_rkey_pack(mem->ucx->context, mem->memh, &packed, &len);

    if (st != UCS_OK) {
        rk_fail(rk_ucx_status(st), "UCX does not give a key to memory: %s", ucs_status_string(st));
        return rk_ucx_status(st);
    }
    if (len > *keylen) {
        rk_fail(RANK_ERR_CHANNEL, "UCX's key to memory takes %zu bytes and there are %zu", len, *keylen);
        ucp_rkey_buffer_release(packed);
        return RANK_ERR_CHANNEL;
    }
    memcpy(key, packed, len);
    *keylen = len;
    ucp_rkey_buffer_release(packed);
    return RANK_OK;
}

rank_status_t rk_ucx_mem_expose(struct rk_ctx *ctx, void *state, void *base, size_t bytes,
                                struct rk_channel_mem **out, void *key, size_t *keylen)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = base,
        .length = bytes,
    };
    struct rk_ucx *ucx = state;
    struct rk_channel_mem *mem = calloc(1, sizeof(*mem));
    ucs_status_t ust;
    rank_status_t st;

    (void)ctx;
    if (!mem)
        return RANK_ERR_NO_MEMORY;
    mem->ucx = ucx;
    *out = mem;
    if (bytes == 0)
        return RANK_OK;
    ust = ucp_mem_map(ucx->context, &params, &mem->memh);
    if (ust != UCS_OK) {
        rk_fail(rk_ucx_status(ust), "UCX does not register %zu bytes: %s (see ulimit -l)", bytes, ucs_status_string(ust));
        free(mem);
        *out = NULL;
        return rk_ucx_status(ust);
    }
    st = write_key(mem, key, keylen);
    if (st) {
        rk_ucx_mem_close(ucx, mem);
        *out = NULL;
    }
    return st;
}

void rk_ucx_mem_close(void *state, struct rk_channel_mem *mem)
{
    (void)state;
    if (!mem)
        return;
    for (int i = 0; i < mem->nparts; i++) {
        if (mem->parts[i].rkey)
            ucp_rkey_destroy(mem->parts[i].rkey);
        free(mem->parts[i].key);
    }
    free(mem->parts);
    if (mem->memh)
        ucp_mem_unmap(mem->ucx->context, mem->memh);
    free(mem);
}

rank_status_t rk_ucx_mem_attach(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                                const void *key, size_t keylen, uint64_t base)
{
    struct part *p;

    if (index < 0 || keylen == 0)
        return RANK_ERR_INTERNAL;
    if (index >= mem->nparts) {
        int n = index + 1 > 2 * mem->nparts ? index + 1 : 2 * mem->nparts;
        p = realloc(mem->parts, (size_t)n * sizeof(*p));
        if (!p)
            return RANK_ERR_NO_MEMORY;
        memset(p + mem->nparts, 0, (size_t)(n - mem->nparts) * sizeof(*p));
        mem->parts = p;
        mem->nparts = n;
    }
    p = &mem->parts[index];
    free(p->key);
    p->key = calloc(1, keylen + KEY_SLACK);
    if (!p->key)
        return RANK_ERR_NO_MEMORY;
    memcpy(p->key, key, keylen);
    p->peer = peer;
    p->base = base;
    return RANK_OK;
}

/* Get endpoint, key and remote address of offset. */
static rank_status_t reach(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                           size_t offset, struct part **part, uint64_t *at)
{
    struct rk_ucx_link *l;
    struct part *p;
    ucs_status_t st;
    rank_status_t rst = rk_peer_connect(peer);

    if (rst)
        return rst;
    l = peer->ep;
    if (index < 0 || index >= mem->nparts || !mem->parts[index].key)
        return RANK_ERR_INTERNAL;
    if (!l || !l->ep || l->failed)
        return RANK_ERR_PEER_DEAD;
    p = &mem->parts[index];
    if (!p->rkey) {
        st = ucp_ep_rkey_unpack(l->ep, p->key, &p->rkey);
        if (st != UCS_OK) {
            p->rkey = NULL;
            rk_fail(rk_ucx_status(st), "UCX does not take the key to memory of rank %u: %s", peer->id.rank,
                    ucs_status_string(st));
            return rk_ucx_status(st);
        }
    }
    *part = p;
    *at = p->base + offset;
    return RANK_OK;
}

static void ucx_rma_done(void *request, ucs_status_t status, void *arg)
{
    struct rk_ucx_op *op = arg;

    if (rk_ucx_status(status) == RANK_ERR_PEER_DEAD)
        rk_ucx_link_broken(op->of);
    rk_ucx_ucp_done(request, status, arg);
}

/* The op completes req, unless started returns an error. */
static rank_status_t ucx_rma_begin(struct rk_peer *peer, struct rank_request *req, struct rk_ucx_op **op,
                                   ucp_request_param_t *param)
{
    struct rk_ucx_link *l = peer->ep;

    *op = rk_ucx_op_new(l, RK_UCX_OP_UCP);
    if (!*op)
        return RANK_ERR_NO_MEMORY;
    (*op)->req = req;
    l->ucx->sent++;
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param->cb.send = ucx_rma_done;
    param->user_data = *op;
    return RANK_OK;
}

/* Complete the request if UCP is done; p is UCP's result. Otherwise its callback does. */
static rank_status_t started(struct rk_ucx_op *op, ucs_status_ptr_t p)
{
    struct rank_request *req = op->req;
    rank_status_t st;

    if (UCS_PTR_IS_PTR(p))
        return RANK_OK;
    st = rk_ucx_status(UCS_PTR_STATUS(p));
    if (st == RANK_ERR_PEER_DEAD)
        rk_ucx_link_broken(op->of);
    rk_ucx_op_free(op);
    if (!st)
        rk_req_complete(req, RANK_OK);
    return st;
}

static rank_status_t ucx_rma_move(bool put, struct rk_channel_mem *mem, struct rk_peer *peer, int index, void *local,
                                  size_t bytes, size_t offset, struct rank_request *req)
{
    ucp_request_param_t param = {0};
    struct rk_ucx_op *op;
    struct part *part = NULL;
    uint64_t at = 0;
    rank_status_t st = reach(mem, peer, index, offset, &part, &at);

    if (st || (st = ucx_rma_begin(peer, req, &op, &param)))
        return st;
    part->written += put;
    return started(op, put ? ucp_put_nbx(op->of->ep, local, bytes, at, part->rkey, &param)
                           : ucp_get_nbx(op->of->ep, local, bytes, at, part->rkey, &param));
}

rank_status_t rk_ucx_iput_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                              const void *src, size_t bytes, size_t offset,
                              struct rank_request *req)
{
    return ucx_rma_move(true, mem, peer, index, (void *)(uintptr_t)src, bytes, offset, req);
}

rank_status_t rk_ucx_iget_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                              void *dst, size_t bytes, size_t offset, struct rank_request *req)
{
    return ucx_rma_move(false, mem, peer, index, dst, bytes, offset, req);
}

rank_status_t rk_ucx_iflush(struct rk_peer *peer, struct rank_request *req)
{
    struct rk_ucx_link *l = peer->ep;
    ucp_request_param_t param = {0};
    struct rk_ucx_op *op;
    rank_status_t st;

    if (!l || !l->ep || l->failed)
        return RANK_ERR_PEER_DEAD;
    st = ucx_rma_begin(peer, req, &op, &param);
    return st ? st : started(op, ucp_ep_flush_nbx(l->ep, &param));
}

static rank_status_t flush_part(struct part *part)
{
    struct rank_request req = {.type = RK_REQ_RMA, .kind = RK_REQ_FLUSH, .peer = part->peer, .ctx = part->peer->ctx};
    uint64_t written = part->written; /* other threads may add more during the wait */
    rank_status_t st;

    if (part->flushed == written)
        return RANK_OK;
    st = rk_ucx_iflush(part->peer, &req);
    if (!st)
        st = rk_req_wait(&req);
    if ((!st || st == RANK_ERR_PEER_DEAD) && written > part->flushed) /* a death is reported once; else the next flush retries */
        part->flushed = written;
    return st;
}

rank_status_t rk_ucx_flush_mem(struct rk_channel_mem *mem, struct rk_peer *peer)
{
    rank_status_t first = RANK_OK;

    for (int i = 0; i < mem->nparts; i++) {
        if (mem->parts[i].key && (!peer || mem->parts[i].peer == peer)) {
            rank_status_t st = flush_part(&mem->parts[i]);
            if (!first)
                first = st;
        }
    }
    return first;
}
