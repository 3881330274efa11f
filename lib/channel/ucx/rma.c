/*
 * rma.c: one-sided: UCP's put, get and flush on memory that ranks exposed, and
 * atomics of our own. Those have to be the CPU's, as a node peer's are; UCP
 * would emulate them too, with messages like ours, but on some versions not
 * together with its error handling.
 *
 * Keys of peers are unpacked at first use: that needs an endpoint, and few
 * ranks touch the parts of all others. A call that UCP cannot finish at once
 * is waited for by the library's one way to wait, so that a death ends it.
 */
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SLACK = 256 }; /* a key knows no length of its own: what is read past its end is 0 */

struct part {
    unsigned char *key; /* NULL: not attached */
    uint64_t base;
    ucp_rkey_h rkey;    /* NULL: not unpacked yet */
    struct rk_peer *peer;
    bool dirty;         /* written to since the last flush */
};

struct rk_channel_mem {
    struct rk_ucx *ucx;
    struct rk_id id;    /* its name for peers, the first thing in its key */
    char *base;
    ucp_mem_h memh;
    uint64_t bytes;
    struct part *parts; /* by rank in the team */
    int nparts;
};

/* Give it a name. */
static rank_status_t enter(struct rk_ucx *ucx, struct rk_channel_mem *mem)
{
    uint32_t i = 0;

    while (i < ucx->nmems && ucx->mems[i])
        i++;
    if (i == ucx->nmems) {
        struct rk_channel_mem **mems = realloc(ucx->mems, (i + 1) * sizeof(*mems));
        if (!mems)
            return RANK_ERR_NO_MEMORY;
        ucx->mems = mems;
        ucx->nmems++;
    }
    ucx->mems[i] = mem;
    mem->id = (struct rk_id){i, ++ucx->mem_gen};
    return RANK_OK;
}

/* The name and UCP's key. */
static rank_status_t write_key(struct rk_channel_mem *mem, unsigned char *key, size_t *keylen)
{
    void *packed;
    size_t len;
    ucs_status_t st = ucp_rkey_pack(mem->ucx->context, mem->memh, &packed, &len);

    if (st != UCS_OK) {
        rk_error("UCX does not give a key to memory: %s", ucs_status_string(st));
        return rk_ucx_status(st);
    }
    if (sizeof(mem->id) + len > *keylen) {
        rk_error("UCX's key to memory takes %zu bytes and there are %zu", len,
                 *keylen - sizeof(mem->id));
        ucp_rkey_buffer_release(packed);
        return RANK_ERR_CHANNEL;
    }
    memcpy(key, &mem->id, sizeof(mem->id));
    memcpy(key + sizeof(mem->id), packed, len);
    *keylen = sizeof(mem->id) + len;
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
    mem->base = base;
    mem->bytes = bytes;
    ust = ucp_mem_map(ucx->context, &params, &mem->memh);
    if (ust != UCS_OK) {
        rk_error("UCX does not register %zu bytes: %s (see ulimit -l)", bytes,
                 ucs_status_string(ust));
        free(mem);
        return rk_ucx_status(ust);
    }
    st = enter(ucx, mem);
    if (!st)
        st = write_key(mem, key, keylen);
    if (st) {
        rk_ucx_mem_close(ucx, mem);
        return st;
    }
    *out = mem;
    return RANK_OK;
}

void rk_ucx_mem_close(void *state, struct rk_channel_mem *mem)
{
    (void)state;
    if (!mem)
        return;
    if (mem->id.gen)
        mem->ucx->mems[mem->id.index] = NULL;
    for (int i = 0; i < mem->nparts; i++) {
        if (mem->parts[i].rkey)
            ucp_rkey_destroy(mem->parts[i].rkey);
        free(mem->parts[i].key);
    }
    free(mem->parts);
    ucp_mem_unmap(mem->ucx->context, mem->memh);
    free(mem);
}

rank_status_t rk_ucx_mem_attach(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                                const void *key, size_t keylen, uint64_t base)
{
    struct part *p;

    if (index < 0 || keylen <= sizeof(struct rk_id))
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

/* The endpoint and the key, ready for use, and the address of offset. */
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
        st = ucp_ep_rkey_unpack(l->ep, p->key + sizeof(struct rk_id), &p->rkey);
        if (st != UCS_OK) {
            p->rkey = NULL;
            rk_error("UCX does not take the key to memory of rank %u: %s", peer->id.rank,
                     ucs_status_string(st));
            return rk_ucx_status(st);
        }
    }
    *part = p;
    *at = p->base + offset;
    return RANK_OK;
}

static bool is_done(void *op)
{
    return ((struct rk_ucx_op *)op)->done;
}

/* Wait for a call that was started with op in UCP's hands; p is what UCP said. */
static rank_status_t finish(struct rk_ucx_op *op, ucs_status_ptr_t p)
{
    struct rk_ctx *ctx = op->ucx->ctx;
    rank_status_t st;

    if (UCS_PTR_IS_PTR(p)) {
        rk_wait(ctx, is_done, op);
        st = op->status;
        if (op->type == RK_UCX_OP_ORPHAN)
            return st; /* freed when UCP calls back */
    } else {
        st = rk_ucx_status(UCS_PTR_STATUS(p));
    }
    if (st == RANK_ERR_PEER_DEAD)
        rk_ucx_link_broken(op->of);
    rk_ucx_op_free(op);
    return st;
}

static rank_status_t begin(struct rk_peer *peer, struct rk_ucx_op **op, ucp_request_param_t *param)
{
    struct rk_ucx_link *l = peer->ep;

    *op = rk_ucx_op_new(l, RK_UCX_OP_UCP);
    if (!*op)
        return RANK_ERR_NO_MEMORY;
    l->ucx->sent++;
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param->cb.send = rk_ucx_ucp_done;
    param->user_data = *op;
    return RANK_OK;
}

rank_status_t rk_ucx_put_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                             const void *src, size_t bytes, size_t offset)
{
    ucp_request_param_t param = {0};
    struct rk_ucx_op *op;
    struct part *part;
    uint64_t at;
    rank_status_t st = reach(mem, peer, index, offset, &part, &at);

    if (!st)
        st = begin(peer, &op, &param);
    if (st)
        return st;
    part->dirty = true;
    return finish(op, ucp_put_nbx(op->of->ep, src, bytes, at, part->rkey, &param));
}

rank_status_t rk_ucx_get_mem(struct rk_channel_mem *mem, struct rk_peer *peer, int index, void *dst,
                             size_t bytes, size_t offset)
{
    ucp_request_param_t param = {0};
    struct rk_ucx_op *op;
    struct part *part;
    uint64_t at;
    rank_status_t st = reach(mem, peer, index, offset, &part, &at);

    if (!st)
        st = begin(peer, &op, &param);
    if (st)
        return st;
    return finish(op, ucp_get_nbx(op->of->ep, dst, bytes, at, part->rkey, &param));
}

rank_status_t rk_ucx_fetch_add(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                               uint64_t operand, size_t width, size_t offset, uint64_t *result)
{
    struct rk_ucx_add add = {.offset = offset, .operand = operand, .width = width};
    struct rk_ucx_op *op;
    struct part *part;
    uint64_t at;
    rank_status_t st = reach(mem, peer, index, offset, &part, &at);

    if (st)
        return st;
    op = rk_ucx_op_new(peer->ep, RK_UCX_OP_ASKED);
    if (!op)
        return RANK_ERR_NO_MEMORY;
    add.asker = op->id;
    memcpy(&add.mem, part->key, sizeof(add.mem));
    rk_ucx_control(op->of, RK_UCX_ADD, &add, sizeof(add));
    rk_wait(mem->ucx->ctx, is_done, op);
    st = op->status;
    if (!st && result)
        *result = op->want;
    rk_ucx_op_free(op);
    return st;
}

/* At the owner of the memory. */
static rank_status_t add_here(struct rk_ucx *ucx, const struct rk_ucx_add *add, uint64_t *before)
{
    struct rk_channel_mem *mem = add->mem.index < ucx->nmems ? ucx->mems[add->mem.index] : NULL;
    void *at;

    if (!mem || mem->id.gen != add->mem.gen)
        return RANK_ERR_HANDLE;
    if ((add->width != 4 && add->width != 8) || add->width > mem->bytes ||
        add->offset > mem->bytes - add->width || add->offset % add->width)
        return RANK_ERR_BOUNDS;
    at = mem->base + add->offset;
    if (add->width == 8)
        *before = __atomic_fetch_add((uint64_t *)at, add->operand, __ATOMIC_ACQ_REL);
    else
        *before = __atomic_fetch_add((uint32_t *)at, (uint32_t)add->operand, __ATOMIC_ACQ_REL);
    return RANK_OK;
}

void rk_ucx_atomic_frame(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_ucx_added added = {0};
    struct rk_ucx_add add;
    struct rk_ucx_op *op;

    if (hdr->kind == RK_UCX_ADD) {
        if (!l->ep && (rk_peer_connect(l->peer) != RANK_OK || !l->ep)) {
            rk_ucx_link_broken(l); /* the answer does not get there */
            return;
        }
        memcpy(&add, payload, sizeof(add));
        added.asker = add.asker;
        added.status = add_here(l->ucx, &add, &added.before);
        rk_ucx_control(l, RK_UCX_ADDED, &added, sizeof(added));
        return;
    }
    memcpy(&added, payload, sizeof(added));
    op = rk_ucx_op_find(l, added.asker, RK_UCX_OP_ASKED);
    if (!op || op->done) {
        l->ucx->bad_frames++;
        return;
    }
    op->want = added.before;
    op->status = added.status > 0 || added.status < RANK_ERR_TIMED_OUT
                     ? RANK_ERR_CHANNEL
                     : (rank_status_t)added.status;
    op->done = true;
}

static rank_status_t flush_part(struct part *part)
{
    struct rk_peer *peer = part->peer;
    struct rk_ucx_link *l = peer->ep;
    ucp_request_param_t param = {0};
    struct rk_ucx_op *op;
    rank_status_t st;

    if (!part->dirty)
        return RANK_OK;
    part->dirty = false;
    if (!l || !l->ep || l->failed)
        return RANK_ERR_PEER_DEAD;
    st = begin(peer, &op, &param);
    if (st)
        return st;
    return finish(op, ucp_ep_flush_nbx(l->ep, &param));
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
