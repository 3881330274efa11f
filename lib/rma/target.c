/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.c: execute requests of one-sided calls at the owner, and reply.
 *
 * A request is checked against the memory that it names. A posted request has no reply: the peer's next flush
 * reports its error.
 */
#include "lib/base/log.h"
#include "lib/core/conn_memory.h"
#include "lib/rma/amo.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>

/* A correct peer never has that many replies pending, and so many bytes of them. */
enum { REPLIES_MAX = 4096, REPLIES_BYTES_MAX = 2 * RK_REQUESTS_MAX * 16384 };
/* Bytes of a reply that are gathered. */
enum { GATHERED_MAX = 16384 };
/* So many memories that are none may the peer of a connection name. */
enum { UNKNOWN_MAX = 64 };

/* A reply that waits for room. */
struct pending_reply {
    struct rk_send_item item;
    uint32_t len;
    unsigned char payload[];
};

static void reply_end(struct rk_send_item *item, struct rk_peer *peer, rank_status_t status)
{
    (void)status;
    struct pending_reply *w = rk_container_of(item, struct pending_reply, item);
    struct rk_rma_peer *state = rk_rma_peer_of(peer->ctx, peer);

    state->nreplies--;
    state->reply_bytes -= w->len;
    rk_peer_keeps(peer, -(int64_t)(sizeof(*w) + w->len));
    free(w);
}

static rank_status_t reply_send(struct rk_send_item *item, struct rk_peer *peer)
{
    struct pending_reply *w = rk_container_of(item, struct pending_reply, item);
    struct rk_hdr hdr = {.kind = RK_KIND_RMA_REP, .epoch = peer->epoch, .len = w->len};
    rank_status_t st = peer->channel->send(peer, &hdr, w->payload);

    if (st == RK_AGAIN)
        return st;
    if (rk_unlikely(st))
        rk_send_give_up(peer, st);
    reply_end(item, peer, st);
    return st;
}

static const struct rk_send_ops reply_ops = {reply_send, reply_end};

void rk_target_drop(struct rk_ctx *ctx)
{
    rk_sendq_fail_ops(ctx, &reply_ops, RANK_ERR_STATE);
}

static void target_reply(struct rk_peer *peer, struct rk_rma_peer *state, const struct rk_rma_reply *a, const void *data,
                          size_t bytes)
{
    struct rk_hdr hdr = {.kind = RK_KIND_RMA_REP, .epoch = peer->epoch,
                         .len = (uint32_t)(sizeof(*a) + bytes)};
    struct pending_reply *w = NULL;
    rank_status_t st = RK_AGAIN;

    if (!rk_sendq_has(&peer->sendq, RK_SEND_CONTROL))
        st = peer->channel->send2(peer, &hdr, a, sizeof(*a), data);
    if (st != RK_AGAIN) {
        if (rk_unlikely(st))
            rk_send_give_up(peer, st);
        return;
    }
    if (!rk_peer_may_keep(peer))
        return;
    if (state->nreplies < REPLIES_MAX && state->reply_bytes < REPLIES_BYTES_MAX)
        w = malloc(sizeof(*w) + hdr.len);
    if (!w) {
        rk_peer_condemn(peer, "too many replies to it wait, since it does not receive them");
        return;
    }
    w->len = hdr.len;
    memcpy(w->payload, a, sizeof(*a));
    if (bytes)
        memcpy(w->payload + sizeof(*a), data, bytes);
    state->nreplies++;
    state->reply_bytes += w->len;
    rk_peer_keeps(peer, (int64_t)(sizeof(*w) + w->len));
    rk_sendq_append(peer, RK_SEND_CONTROL, &w->item, &reply_ops);
}

/* ------------------------------------------------------------------------ execute */

/*
 * Is it memory of a team that the peer of a connection is not in? Such a peer names what it has the key of, and the
 * memory of the connection.
 */
RK_INLINE bool is_closed_to(const struct rank_mem *mem, const struct rk_peer *peer)
{
    return rk_unlikely(peer->by_conn) && mem->sort == RK_MEM_SYMMETRIC && mem->partner != peer->number;
}

/* Own memory that holds a range, or an error. Checks denied accesses: a faulty peer must not end this process. */
static rank_status_t locate(const struct rk_peer *peer, struct rk_id id, uint64_t offset, uint64_t bytes, unsigned denied,
                            char **at, const struct rk_kind **kind)
{
    struct rk_rma *rma = peer->ctx->rma;
    struct rank_mem *mem = rk_mem_named(rma, id);

    if (rk_unlikely(!mem || is_closed_to(mem, peer))) {
        rma->unknown |= mem || !rk_secret_id_was_dropped(&rma->mem_ids, id);
        return RANK_ERR_HANDLE;
    }
    if (offset > mem->bytes || bytes > mem->bytes - offset)
        return RANK_ERR_BOUNDS;
    if (rk_unlikely(mem->denied & denied))
        return RANK_ERR_ARG;
    *at = mem->mine + offset;
    *kind = mem->kind;
    return RANK_OK;
}

/* The same for a word, of host memory. */
static rank_status_t locate_word(const struct rk_peer *peer, struct rk_id id, uint64_t offset, size_t width, unsigned denied,
                                 char **at)
{
    const struct rk_kind *kind;
    rank_status_t st = locate(peer, id, offset, width, denied, at, &kind);

    return !st && (kind || (uintptr_t)*at & (width - 1)) ? RANK_ERR_ARG : st;
}

/* Where a block lies. */
struct place {
    char *at;
    const struct rk_kind *kind;
};

/* Find all blocks before one is moved. */
static rank_status_t locate_blocks(const struct rk_peer *peer, const struct rk_rma_parsed_request *q, unsigned denied, struct place *place)
{
    rank_status_t st = RANK_OK;

    for (uint32_t i = 0; !st && i < q->nblocks; i++)
        st = locate(peer, q->block[i].mem, q->block[i].offset, q->block[i].bytes, denied, &place[i].at, &place[i].kind);
    return st;
}

static rank_status_t store_data(char *to, const struct rk_kind *kind, const void *data, size_t bytes)
{
    if (rk_unlikely(kind != NULL))
        return rk_kind_copy(to, kind, data, NULL, bytes);
    if (bytes)
        rk_mapped_put(to, data, bytes);
    return RANK_OK;
}

static rank_status_t target_put(const struct rk_peer *peer, const struct rk_rma_parsed_request *q)
{
    struct place place[RK_RMA_BLOCKS_MAX];
    const unsigned char *data = q->data;
    rank_status_t st = locate_blocks(peer, q, RK_NO_WRITES, place);

    if (st)
        return st;
    atomic_thread_fence(memory_order_release); /* ordered after earlier frames: see rank_fence */
    for (uint32_t i = 0; i < q->nblocks && !st; i++) {
        st = store_data(place[i].at, place[i].kind, data, (size_t)q->block[i].bytes);
        data += q->block[i].bytes;
    }
    return st;
}

/* A posted put of a long frame. *done: its status is st; false: it is none to device memory. */
static RK_COLD rank_status_t put_long(struct rk_peer *peer, const struct rk_rma_parsed_request *q, bool *done)
{
    const struct rk_kind *kind;
    char *to;
    rank_status_t st = locate(peer, q->block[0].mem, q->block[0].offset, q->bytes, RK_NO_WRITES, &to, &kind);

    *done = !st && kind && q->bytes <= RK_BOUNCE_BYTES; /* a correct peer's frame is shorter */
    return *done ? rk_store(peer, q->block[0].mem, to, kind, q->data, q->bytes) : st;
}

static rank_status_t target_update(const struct rk_peer *peer, const struct rk_rma_parsed_request *q, uint64_t *before)
{
    bool wide = q->head.dtype == RK_HANDLE_INDEX(RANK_INT64) || q->head.dtype == RK_HANDLE_INDEX(RANK_UINT64) ||
                q->head.dtype == RK_HANDLE_INDEX(RANK_F64);
    char *at;
    unsigned denied = RK_NO_WRITES | (RK_AMO_FETCHING >> q->head.amo & 1 ? RK_NO_READS : 0u);
    rank_status_t st = locate_word(peer, q->head.mem, q->head.offset, wide ? 8 : 4, denied, &at);

    if (st)
        return st;
    *before = rk_amo_apply(at, q->head.amo, q->head.dtype, q->operands.operand, q->operands.compare);
    return RANK_OK;
}

static rank_status_t signal_after(const struct rk_peer *peer, const struct rk_rma_parsed_request *q)
{
    char *word;
    rank_status_t st = locate_word(peer, q->signal.mem, q->signal.offset, 8, RK_NO_WRITES, &word);
    uint64_t *at = (uint64_t *)(void *)word;

    if (!st && q->bytes)
        st = target_put(peer, q);
    if (st)
        return st;
    if (q->head.amo == RANK_SIGNAL_SET)
        __atomic_store_n(at, q->signal.value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(at, q->signal.value, __ATOMIC_RELEASE);
    return RANK_OK;
}

/* *wrong: the first that is none. */
static rank_status_t check_keys(const struct rk_peer *peer, const struct rk_rma_parsed_request *q, uint64_t *wrong)
{
    struct rk_rma *rma = peer->ctx->rma;

    for (size_t at = 0; at < q->bytes; at += sizeof(struct rk_rma_name)) {
        struct rk_rma_name name;
        const struct rank_mem *mem;

        memcpy(&name, q->data + at, sizeof(name));
        mem = rk_mem_named(rma, name.mem);
        if (mem && rk_key_is(mem, name.nonce, name.sum))
            continue;
        rma->unknown |= !mem && !rk_secret_id_was_dropped(&rma->mem_ids, name.mem);
        *wrong = at / sizeof(name);
        return RANK_ERR_HANDLE;
    }
    return RANK_OK;
}

/*
 * Count a request that was refused. A peer of a connection that names too many memories that are none guesses, and is
 * disconnected. Memory that was freed does not count.
 */
static RK_COLD void target_refused(struct rk_peer *peer, struct rk_rma_peer *state)
{
    struct rk_ctx *ctx = peer->ctx;
    bool unknown = ctx->rma->unknown;

    ctx->rma->unknown = false;
    state->counts.refused++;
    if (!unknown || !peer->by_conn || ++state->unknown != UNKNOWN_MAX)
        return;
    rk_peer_condemn(peer, "it has named %d memories that do not exist", UNKNOWN_MAX);
}

rank_status_t rk_target_memory_at(struct rk_ctx *ctx, struct rk_peer *peer, struct rk_id id, uint64_t offset, uint64_t bytes,
                                  bool write, void **at)
{
    const struct rk_kind *kind = NULL;
    struct rk_rma_peer *state;
    char *found = NULL;
    rank_status_t st;

    if (rk_unlikely(rk_device_kind != NULL) && ctx->rma && rk_stores_pending(ctx->rma)) /* earlier puts first, as in rk_target_handle */
        rk_stores_end(ctx);
    st = ctx->rma ? locate(peer, id, offset, bytes, write ? RK_NO_WRITES : RK_NO_READS, &found, &kind) : RANK_ERR_STATE;
    if (!st && kind)
        st = RANK_ERR_NOT_SUPPORTED;
    if (rk_unlikely(st) && ctx->rma && (state = rk_rma_peer_of(ctx, peer)) != NULL)
        target_refused(peer, state);
    *at = found;
    return st;
}

/* Reply with data: one block in place, or many gathered. A word is read by one load. */
static void reply_data(struct rk_peer *peer, struct rk_rma_peer *state, const struct rk_rma_parsed_request *q,
                       struct rk_rma_reply *a)
{
    bool word = q->bytes == 4 || q->bytes == 8, fits = q->bytes <= peer->channel->frame_max(peer) - sizeof(*a) && q->bytes <= GATHERED_MAX;
    struct place place[RK_RMA_BLOCKS_MAX];
    unsigned char gathered[GATHERED_MAX], *to = gathered;

    a->status = fits ? locate_blocks(peer, q, RK_NO_READS, place) : RANK_ERR_COUNT;
    if (!a->status && q->nblocks == 1 && !place[0].kind && !word) {
        target_reply(peer, state, a, place[0].at, q->bytes);
        return;
    }
    for (uint32_t i = 0; i < q->nblocks && !a->status; i++) {
        size_t bytes = (size_t)q->block[i].bytes;

        if (place[i].kind)
            a->status = rk_kind_copy(to, NULL, place[i].at, place[i].kind, bytes);
        else if (bytes)
            rk_mapped_get(to, place[i].at, bytes);
        to += bytes;
    }
    target_reply(peer, state, a, gathered, a->status ? 0 : q->bytes);
}

static rank_status_t execute(struct rk_peer *peer, const struct rk_rma_parsed_request *q, struct rk_rma_peer *state,
                             uint64_t *before)
{
    struct rk_ctx *ctx = peer->ctx;
    rank_status_t st;

    switch (q->head.op) {
    case RK_RMA_PUT:
        return target_put(peer, q);
    case RK_RMA_AMO:
        return target_update(peer, q, before);
    case RK_RMA_SIGNAL:
        return signal_after(peer, q);
    case RK_RMA_KEYS:
        return check_keys(peer, q, before);
    case RK_RMA_REVOKE:
        return rk_key_revoke(ctx, peer, q->operands.operand);
    default: /* RK_RMA_FLUSH: a peer's frames arrive in order */
        st = state->owed;
        state->owed = RANK_OK;
        return st;
    }
}

/* Reply that a frame has failed, unless the last reply of this sort went to the same origin. */
static void reply_failed(struct rk_peer *peer, struct rk_rma_peer *state, const struct rk_rma_reply *a)
{
    if (rk_id_pack(state->failed) == rk_id_pack(a->origin))
        return;
    state->failed = a->origin;
    target_reply(peer, state, a, NULL, 0);
}

void rk_target_handle(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                      const void *payload, const struct rk_rndv *rndv)
{
    struct rk_rma_reply a = {.status = RANK_OK};
    struct rk_rma_parsed_request q;
    struct rk_rma_peer *state;
    bool done = false;
    rank_status_t st = RANK_OK;

    (void)rndv;
    if (!ctx->rma)
        return;
    state = rk_rma_peer_of(ctx, peer);
    if (!state) {
        rk_peer_condemn(peer, "out of memory for its requests");
        return;
    }
    if (!rk_rma_decode_request(payload, hdr->len, &q)) {
        rk_engine_refused(ctx, &ctx->rma->bad_frames);
        return;
    }
    /* A reply needs a connection now, within progress. A peer that cannot be reached has probably died. */
    if ((q.head.flags & (RK_RMA_WANTS_REPLY | RK_RMA_WANTS_ERROR)) && rk_peer_try_connect(peer) != RANK_OK) {
        rk_engine_report_death(ctx, peer->number);
        return;
    }
    if (rk_unlikely(rk_device_kind)) {
        if (q.head.op == RK_RMA_PUT && q.nblocks == 1 && q.bytes >= RK_STORE_MIN && !(q.head.flags & RK_RMA_WANTS_REPLY))
            st = put_long(peer, &q, &done);
        if (!done && rk_stores_pending(ctx->rma))
            rk_stores_end(ctx);
    }
    a.origin = q.head.origin;
    a.at = q.head.at;
    a.in = q.head.in;
    if (q.head.op == RK_RMA_GET) {
        if (q.head.flags & RK_RMA_WANTS_REPLY)
            reply_data(peer, state, &q, &a);
        if (rk_unlikely(a.status))
            target_refused(peer, state);
        return;
    }
    if (!done)
        st = execute(peer, &q, state, &a.before);
    a.status = st;
    if (rk_unlikely(st))
        target_refused(peer, state);
    if (q.head.flags & RK_RMA_WANTS_REPLY)
        target_reply(peer, state, &a, NULL, 0);
    else if (st && (q.head.flags & RK_RMA_WANTS_ERROR))
        reply_failed(peer, state, &a);
    else if (st && !state->owed)
        state->owed = st;
}
