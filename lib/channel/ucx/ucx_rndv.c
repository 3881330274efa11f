/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_rndv.c: announce messages and transfer them on the match (rendezvous).
 *
 * Long messages use UCP's rendezvous: the active message carries the header, and UCP moves the data into the
 * receive buffer. UCP holds a segment for each message that waits to be fetched. So short ones (sent without
 * credit, or synchronous), and long ones while many wait, are announced and pulled with control frames, which are
 * cheap. Pulled data comes in a frame if it fits, else by UCP's rendezvous into a posted receive.
 *
 * UCP cannot truncate a message. A receive that is too small or noncontiguous takes the data through callbacks
 * (UCP's generic datatype), which keep what fits. A view of many pieces is sent that way too; one of a few long
 * pieces is UCP's iovec.
 */
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Private words of a struct rk_rndv: own op, or the peer's. */
enum { P_OURS, P_THEIRS };

void rk_ucx_finish(struct rk_ucx_op *op, rank_status_t st)
{
    struct rank_request *req = op->req;

    if (rk_unlikely(op->parent != NULL)) {
        rk_ucx_piece_done(op, st ? st : op->copied);
        return;
    }
    if (!st)
        st = op->copied;
    rk_ucx_op_free(op);
    if (req)
        rk_req_complete(req, st);
}

/* Free an op without request. */
static void free_piece(struct rk_ucx_op *op)
{
    struct rk_ucx_op *parent = op->parent;

    rk_ucx_op_free(op);
    if (parent)
        rk_ucx_stage_check(parent);
}

void rk_ucx_ucp_done(void *request, ucs_status_t status, void *arg)
{
    struct rk_ucx_op *op = arg;
    struct rk_ucx_link *l = op->of;

    l->ucx->handled++;
    ucp_request_free(request);
    if (op->type == RK_UCX_OP_ORPHAN) {
        free_piece(op);
        return;
    }
    if (status == UCS_ERR_MESSAGE_TRUNCATED) /* the receiver took a part, which is no error here */
        status = UCS_OK;
    /*
     * The peer has left and dropped what it had not received, for which UCP reports success. Data that it received
     * was acknowledged before its BYE: fetches are acknowledged in order with it, and tcp and shared memory
     * complete writes as they write. With verbs, when the sender writes (UCX_RNDV_SCHEME), a message that the peer
     * received just before it left may be reported as lost.
     */
    if (status == UCS_OK && op->announced && l->bye)
        rk_ucx_finish(op, RANK_ERR_PEER_DEAD);
    else
        rk_ucx_finish(op, rk_ucx_status(status));
}

static void received(void *request, ucs_status_t status, size_t length, void *arg)
{
    (void)length;
    rk_ucx_ucp_done(request, status, arg);
}

/* ------------------------------------------------------------------------- views */

/* The buffer of UCP's generic datatype is the op. */
static void *view_begin_pack(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)(uintptr_t)buffer;
}

static void *view_begin_unpack(void *context, void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return buffer;
}

static size_t view_size(void *state)
{
    return ((struct rk_ucx_op *)state)->total;
}

static size_t view_pack(void *state, size_t offset, void *to, size_t room)
{
    struct rk_ucx_op *op = state;
    size_t n = op->total - offset < room ? op->total - offset : room;

    if (op->type == RK_UCX_OP_ORPHAN) /* the peer is dead, and the buffer belongs to its owner again */
        memset(to, 0, n);
    else
        op->view.ops->pack(&op->view, op->at + offset, to, n); /* host memory: see rk_ucx_stages */
    return n;
}

static ucs_status_t view_unpack(void *state, size_t offset, const void *from, size_t n)
{
    struct rk_ucx_op *op = state;

    offset += op->at;
    if (op->type == RK_UCX_OP_ORPHAN || offset >= op->view.bytes)
        return UCS_OK;
    if (n > op->view.bytes - offset)
        n = op->view.bytes - offset;
    if (!op->copied)
        op->copied = rk_copy_in(&op->view, offset, from, n);
    return UCS_OK;
}

static void view_end(void *state)
{
    (void)state;
}

rank_status_t rk_ucx_view_type(struct rk_ucx *ucx)
{
    static const ucp_generic_dt_ops_t ops = {
        .start_pack = view_begin_pack,
        .start_unpack = view_begin_unpack,
        .packed_size = view_size,
        .pack = view_pack,
        .unpack = view_unpack,
        .finish = view_end,
    };

    return rk_ucx_create_type(&ops, &ucx->view_type, &ucx->has_view_type);
}

/* Pass the op's view to UCP: its memory, or the op itself for callbacks. */
static void *view_for_ucp(struct rk_ucx_op *op, bool in_one_piece, ucp_request_param_t *param)
{
    if (in_one_piece && op->view.ops) {
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param->memory_type = UCS_MEMORY_TYPE_CUDA;
    }
    if (in_one_piece)
        return op->view.base;
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param->datatype = op->ucx->view_type;
    return op;
}

/*
 * Send a few long pieces in place, in segments as long as those of contiguous data; callbacks would fill UCX's
 * short segments (8 KiB over tcp), with a system call each. Returns the number of pieces; 0: too many or too
 * short.
 */
static size_t list_pieces(struct rk_ucx_op *op, uint64_t bytes)
{
    struct iovec v[RK_UCX_PIECES_MAX];
    uint64_t sum = 0;
    int n;

    if (!op->view.ops->list || bytes < 2 * RK_UCX_PIECE_MIN)
        return 0;
    n = op->view.ops->list(op->view.base, op->at, bytes, v, RK_UCX_PIECES_MAX);
    for (int i = 0; i < n; i++) {
        op->pieces[i] = (ucp_dt_iov_t){v[i].iov_base, v[i].iov_len};
        sum += v[i].iov_len;
    }
    return n > 0 && sum == bytes && bytes / (uint64_t)n >= RK_UCX_PIECE_MIN ? (size_t)n : 0;
}

/* -------------------------------------------------------------------- sender */

static rank_status_t ucx_rndv_offer(struct rk_ucx_link *l, const struct rk_hdr *hdr,
                           const struct rk_view *view, struct rank_request *req)
{
    struct rk_ucx_op *op = rk_ucx_op_new(l, RK_UCX_OP_OFFERED);
    struct rk_ucx_announce a;
    struct rk_hdr h = *hdr;
    rank_status_t st;

    if (!op)
        return RANK_ERR_NO_MEMORY;
    op->req = req;
    op->view = *view;
    a = (struct rk_ucx_announce){op->id, view->bytes};
    h.kind = RK_UCX_ANNOUNCE;
    h.len = sizeof(a);
    st = rk_ucx_put(l, &h, &a, sizeof(a), NULL, NULL);
    if (st)
        rk_ucx_op_free(op);
    return st;
}

rank_status_t rk_ucx_send_by_ucp(struct rk_ucx_op *op, struct rk_hdr *hdr, uint64_t bytes)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_RNDV,
        .cb.send = rk_ucx_ucp_done,
        .user_data = op,
    };
    bool in_one_piece = rk_ucx_takes(op->ucx, &op->view);
    struct rk_ucx_link *l = op->of;
    size_t head_len, count = in_one_piece ? bytes : 1, pieces = in_one_piece ? 0 : list_pieces(op, bytes);
    void *buffer;
    ucs_status_ptr_t p;

    if (pieces) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = ucp_dt_make_iov();
        buffer = op->pieces;
        count = pieces;
    } else {
        buffer = view_for_ucp(op, in_one_piece, &param);
    }
    rk_ucx_flush_open(l);
    if (!l->ep || l->failed)
        return RANK_ERR_PEER_DEAD;
    op->total = bytes;
    op->type = RK_UCX_OP_UCP;
    head_len = rk_ucx_write_head(l, op->head, hdr);
    if (hdr->kind == RK_KIND_RNDV) {
        memcpy(op->head + head_len, &op->id, sizeof(op->id));
        head_len += sizeof(op->id);
    }
    l->last_tick = l->ucx->tick;
    l->ucx->sent++;
    p = ucp_am_send_nbx(l->ep, RK_UCX_AM, op->head, head_len, buffer, count, &param);
    if (UCS_PTR_IS_ERR(p)) {
        rk_ucx_link_ended(l, UCS_PTR_STATUS(p));
        return RANK_ERR_PEER_DEAD;
    }
    if (p == NULL)
        rk_ucx_finish(op, RANK_OK);
    return RANK_OK;
}

/* Before UCP accesses device memory: make the program's own copies to it complete. No-op for other payload. */
static rank_status_t settle_memory(const struct rk_ucx *ucx, const struct rk_view *view)
{
    const struct rk_kind *kind = view->ops && rk_ucx_takes(ucx, view) ? view->ops->kind : NULL;
    struct rk_kind_block block;
    rank_status_t st = kind && kind->block ? kind->block(view->base, true, &block) : RANK_OK;

    return st == RANK_ERR_NOT_SUPPORTED ? RANK_OK : st;
}

rank_status_t rk_ucx_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req)
{
    struct rk_ucx_link *l = peer->ep;
    struct rk_hdr h = *hdr;
    struct rk_ucx_op *op;
    rank_status_t st;

    if (!l || !l->ep || l->failed)
        return rk_ucx_conn_refusal(l);
    if (rk_unlikely(view->ops != NULL) && (st = settle_memory(l->ucx, view)) != RANK_OK)
        return st;
    if (view->bytes <= RK_UCX_FRAME_MAX || l->announced >= RK_UCX_ANNOUNCED_MAX || rk_ucx_copies(l->ucx, view))
        return ucx_rndv_offer(l, hdr, view, req);
    if (l->ucx->inside)
        return RK_AGAIN;
    op = rk_ucx_op_new(l, RK_UCX_OP_UCP);
    if (!op)
        return RANK_ERR_NO_MEMORY;
    op->req = req;
    op->view = *view;
    op->announced = true;
    l->announced++;
    h.kind = RK_KIND_RNDV;
    h.len = 0;
    st = rk_ucx_send_by_ucp(op, &h, view->bytes);
    if (st)
        rk_ucx_op_free(op);
    return st;
}

rank_status_t rk_ucx_send_unread(const struct rk_ucx_op *op)
{
    struct rk_hdr hdr = {.kind = RK_UCX_DATA, .flags = RK_UCX_UNREAD, .epoch = op->of->peer->epoch, .len = sizeof(op->theirs)};

    return rk_ucx_put(op->of, &hdr, &op->theirs, sizeof(op->theirs), NULL, NULL);
}

bool rk_ucx_send_pulled(struct rk_ucx_op *op)
{
    struct rk_ucx_link *l = op->of;
    struct rk_hdr hdr = {.kind = RK_UCX_DATA, .epoch = l->peer->epoch};
    char packed[RK_UCX_FRAME_MAX];
    rank_status_t st = RANK_OK;
    bool may_fail = rk_view_may_fail(&op->view);

    if (rk_unlikely(rk_ucx_stages(op))) {
        st = rk_ucx_stage_send(op);
        if (!st)
            return true;
    } else if (rk_unlikely(may_fail) && op->want <= RK_UCX_FRAME_MAX) { /* UCP cannot end what it has begun to send */
        st = rk_copy_out(packed, &op->view, 0, op->want);
    }
    if (rk_unlikely(st)) {
        if (rk_ucx_send_unread(op) == RK_AGAIN)
            return false;
        rk_ucx_finish(op, st);
        return true;
    }
    if (op->want > RK_UCX_FRAME_MAX) {
        if (l->ucx->inside)
            return false;
        rk_list_remove(&op->link);
        rk_list_append(&l->ops, &op->link);
        hdr.kind = RK_UCX_LONG;
        hdr.tag = rk_id_pack(op->theirs);
        st = rk_ucx_send_by_ucp(op, &hdr, op->want);
        if (st)
            rk_ucx_finish(op, st);
        return true;
    }
    hdr.len = (uint32_t)(sizeof(op->theirs) + op->want);
    st = rk_ucx_put(l, &hdr, &op->theirs, sizeof(op->theirs), packed, may_fail ? NULL : &op->view);
    if (st == RK_AGAIN)
        return false;
    rk_ucx_finish(op, st);
    return true;
}

/* A message that UCP has announced is pulled in pieces: they are an op of their own, as UCP will report the end of its. */
static struct rk_ucx_op *pulled_from_ucp(struct rk_ucx_link *l, const struct rk_ucx_pull *pull)
{
    struct rk_ucx_op *announced = rk_ucx_op_find(l, pull->sender, RK_UCX_OP_UCP), *op;

    if (!announced || !announced->announced || !announced->req || announced->parent || pull->want > announced->view.bytes)
        return NULL;
    op = rk_ucx_op_new(l, RK_UCX_OP_OFFERED);
    if (!op) {
        rk_ucx_link_broken(l); /* the receiver waits */
        return NULL;
    }
    op->req = announced->req;
    op->view = announced->view;
    announced->req = NULL;
    return op;
}

static void pulled(struct rk_ucx_link *l, const struct rk_ucx_pull *pull, bool in_pieces)
{
    struct rk_ucx_op *op = rk_ucx_op_find(l, pull->sender, RK_UCX_OP_OFFERED);

    if (!op && in_pieces)
        op = pulled_from_ucp(l, pull);
    if (!op || pull->want > op->view.bytes) {
        rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
        return;
    }
    op->theirs = pull->receiver;
    op->want = pull->want;
    op->in_pieces = in_pieces;
    op->type = RK_UCX_OP_SENDING;
    if (rk_list_empty(&l->sending) && rk_ucx_send_pulled(op))
        return;
    rk_list_remove(&op->link);
    rk_list_append(&l->sending, &op->link);
    rk_ucx_mark_busy(l);
}

/* ------------------------------------------------------------------ receiver */

bool rk_ucx_announced(struct rk_ucx_link *l, const struct rk_hdr *hdr, void *desc, uint64_t total,
                      struct rk_id sender)
{
    struct rk_rndv rndv = {.peer = l->peer, .total = total, .priv[P_THEIRS] = rk_id_pack(sender)};
    struct rk_ctx *ctx = l->ucx->ctx;
    struct rk_hdr h = *hdr;
    struct rk_ucx_op *op;

    if (total > INT64_MAX) {
        rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
        return false;
    }
    if (!rk_ucx_is_valid(l, hdr))
        return false;
    /* Fetching needs a connection back. */
    if (!l->ep && (rk_peer_try_connect(l->peer) != RANK_OK || !l->ep)) {
        rk_error("rank %u sends through ucx, but ucx does not lead back to it", l->peer->id.rank);
        rk_ucx_link_broken(l);
        return false;
    }
    if (desc) {
        op = rk_ucx_op_new(l, RK_UCX_OP_HERE);
        if (!op) {
            rk_ucx_link_broken(l); /* a message is lost, and so is the order */
            return false;
        }
        op->desc = desc;
        op->total = total;
        rndv.priv[P_OURS] = rk_id_pack(op->id);
    }
    h.kind = RK_KIND_RNDV;
    h.len = 0;
    if (l->ucx->fast_recv)
        rk_ucx_fast_recv_frame(l->ucx->fast_recv, l, &h, NULL); /* not the wanted message */
    ctx->engine->handler[RK_KIND_RNDV](ctx, l->peer, &h, NULL, &rndv);
    return true;
}

static uint64_t wanted_bytes(const struct rk_rndv *rndv, const struct rk_view *view)
{
    return rndv->total < view->bytes ? rndv->total : view->bytes;
}

/* Does the payload pass through bounce buffers? Then the sender sends it in pieces. */
static bool wants_pieces(const struct rk_ucx *ucx, const struct rk_rndv *rndv, const struct rk_view *view)
{
    return rk_view_may_fail(view) && !(rk_ucx_takes(ucx, view) && view->bytes >= rndv->total);
}

/* op: has what UCP announced, which is released when the first piece comes; NULL: announced by a frame. */
static void pull(struct rk_ucx_link *l, const struct rk_rndv *rndv, struct rk_ucx_op *op, const struct rk_view *view,
                 struct rank_request *req)
{
    struct rk_ucx_pull p;

    if (op)
        op->type = RK_UCX_OP_PULLING;
    else
        op = rk_ucx_op_new(l, RK_UCX_OP_PULLING);
    if (!op) {
        rk_ucx_rndv_drop(rndv);
        rk_req_complete(req, RANK_ERR_NO_MEMORY);
        return;
    }
    op->req = req;
    op->view = *view;
    op->want = wanted_bytes(rndv, view);
    p = (struct rk_ucx_pull){rk_id_unpack(rndv->priv[P_THEIRS]), op->id, op->want};
    rk_send_control(l->peer, RK_UCX_PULL, wants_pieces(l->ucx, rndv, view), &p, sizeof(p));
}

void rk_ucx_start_receive(struct rk_ucx_op *op)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am = received,
        .user_data = op,
    };
    bool in_one_piece = rk_ucx_takes(op->ucx, &op->view) && op->view.bytes >= op->total;
    rank_status_t settled = in_one_piece ? settle_memory(op->ucx, &op->view) : RANK_OK;
    void *buffer = view_for_ucp(op, in_one_piece, &param), *desc = op->desc;
    ucs_status_ptr_t p;

    op->type = RK_UCX_OP_UCP;
    op->desc = NULL;
    op->copied = settled;
    p = ucp_am_recv_data_nbx(op->ucx->worker, desc, buffer, in_one_piece ? op->total : 1, &param);
    if (UCS_PTR_IS_ERR(p)) {
        rk_debug("UCX does not fetch a message: %s", ucs_status_string(UCS_PTR_STATUS(p)));
        rk_ucx_finish(op, rk_ucx_status(UCS_PTR_STATUS(p)));
    } else if (p == NULL) {
        rk_ucx_finish(op, RANK_OK);
    }
}

void rk_ucx_drop_desc(struct rk_ucx_op *op)
{
    void *desc = op->desc;
    struct rk_ucx *ucx = op->ucx;

    free_piece(op);
    ucp_am_data_release(ucx->worker, desc);
}

static void put_off(struct rk_ucx_op *op)
{
    rk_list_append(&op->ucx->todo, &op->todo);
}

int rk_ucx_todo(struct rk_ucx *ucx)
{
    int n = 0;

    while (!rk_list_empty(&ucx->todo)) {
        struct rk_ucx_op *op = rk_list_entry(ucx->todo.next, struct rk_ucx_op, todo);
        rk_list_remove(&op->todo);
        n++;
        if (op->unwanted)
            rk_ucx_drop_desc(op);
        else
            rk_ucx_start_receive(op);
    }
    return n;
}

void rk_ucx_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                      struct rank_request *req)
{
    struct rk_ucx_link *l = rndv->peer->ep;
    struct rk_ucx_op *op;

    if (!l || l->failed) {
        rk_req_complete(req, RANK_ERR_PEER_DEAD);
        return;
    }
    if (rndv->total && view->bytes == 0) {
        rk_ucx_rndv_drop(rndv);
        rk_req_complete(req, RANK_OK);
        return;
    }
    if (!rndv->priv[P_OURS]) {
        pull(l, rndv, NULL, view, req);
        return;
    }
    op = rk_ucx_op_find(l, rk_id_unpack(rndv->priv[P_OURS]), RK_UCX_OP_HERE);
    if (!op || op->wanted || op->unwanted) {
        rk_req_complete(req, RANK_ERR_INTERNAL);
        return;
    }
    if (rk_unlikely(wants_pieces(l->ucx, rndv, view))) {
        if (rndv->total > RK_BOUNCE_BYTES)
            pull(l, rndv, op, view, req);
        else if (!rk_ucx_stage_whole(op, view, wanted_bytes(rndv, view), req)) {
            rk_ucx_rndv_drop(rndv);
            rk_req_complete(req, RANK_ERR_NO_MEMORY);
        }
        return;
    }
    op->req = req;
    op->view = *view;
    op->wanted = true;
    if (op->ucx->inside) /* UCP still writes into the announcement */
        put_off(op);
    else
        rk_ucx_start_receive(op);
}

void rk_ucx_rndv_drop(const struct rk_rndv *rndv)
{
    struct rk_ucx_link *l = rndv->peer->ep;
    struct rk_ucx_op *op;
    struct rk_id id;

    if (!l)
        return;
    if (!rndv->priv[P_OURS]) {
        id = rk_id_unpack(rndv->priv[P_THEIRS]);
        rk_send_control(l->peer, RK_UCX_DROP, 0, &id, sizeof(id));
        return;
    }
    op = rk_ucx_op_find(l, rk_id_unpack(rndv->priv[P_OURS]), RK_UCX_OP_HERE);
    if (!op || op->wanted || op->unwanted)
        return;
    op->unwanted = true;
    if (op->ucx->inside)
        put_off(op);
    else
        rk_ucx_drop_desc(op);
}

bool rk_ucx_long_arrived(struct rk_ucx_link *l, const struct rk_hdr *hdr, void *desc,
                         uint64_t total)
{
    struct rk_ucx_op *op = rk_ucx_op_find(l, rk_id_unpack(hdr->tag), RK_UCX_OP_PULLING);

    if (op && hdr->flags & RK_UCX_PIECE && !op->unwanted)
        return rk_ucx_piece_arrived(op, hdr, desc, total);
    if (!op || total != op->want || op->stage || op->desc) {
        rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
        return false;
    }
    op->type = RK_UCX_OP_HERE; /* with a request, so that a death completes it */
    op->desc = desc;
    op->total = total;
    op->wanted = true;
    put_off(op);
    return true;
}

/* End a pull of which no piece has come. */
static void end_pull(struct rk_ucx_op *op, rank_status_t st)
{
    struct rank_request *req = op->req;

    if (rk_likely(!op->desc)) {
        rk_ucx_finish(op, st);
        return;
    }
    op->req = NULL; /* UCP has announced the message: release that later */
    op->unwanted = true;
    put_off(op);
    rk_req_complete(req, st);
}

static void ucx_rndv_data_arrived(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *payload)
{
    size_t n = hdr->len - sizeof(struct rk_id);
    const char *data = (const char *)payload + sizeof(struct rk_id);
    struct rk_ucx_op *op;
    struct rk_id id;

    memcpy(&id, payload, sizeof(id));
    op = rk_ucx_op_find(l, id, RK_UCX_OP_PULLING);
    if (!op || op->unwanted || (!(hdr->flags & RK_UCX_UNREAD) && (n != op->want || op->stage))) {
        rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
        return;
    }
    if (rk_likely(!(hdr->flags & RK_UCX_UNREAD)))
        end_pull(op, rk_copy_in(&op->view, 0, data, n));
    else if (op->stage)
        rk_ucx_stage_end(op, RANK_ERR_DEVICE, false);
    else
        end_pull(op, RANK_ERR_DEVICE);
}

/* ------------------------------------------------------------------------ both */

void rk_ucx_rndv_frame(struct rk_ucx_link *l, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_ucx_announce a;
    struct rk_ucx_pull p;
    struct rk_ucx_op *op;
    struct rk_id id;

    switch (hdr->kind) { /* rk_ucx_decode has checked the lengths */
    case RK_UCX_ANNOUNCE:
        memcpy(&a, payload, sizeof(a));
        rk_ucx_announced(l, hdr, NULL, a.total, a.sender);
        break;
    case RK_UCX_PULL:
        memcpy(&p, payload, sizeof(p));
        pulled(l, &p, hdr->tag != 0);
        break;
    case RK_UCX_DATA:
        ucx_rndv_data_arrived(l, hdr, payload);
        break;
    case RK_UCX_DROP:
        memcpy(&id, payload, sizeof(id));
        op = rk_ucx_op_find(l, id, RK_UCX_OP_OFFERED);
        if (op)
            rk_ucx_finish(op, RANK_OK);
        else
            rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
        break;
    case RK_UCX_BYE:
        l->bye = true;
        l->lost_ns = 0;
        l->peer->left = 1;
        /* A wait for a peer that leaves alone, after a death, never ends; nor does the last barrier. */
        if (!(hdr->flags & RK_UCX_DISCONNECTED) && (!l->ucx->ctx->engine->finalizing || (hdr->flags & RK_UCX_ALONE)))
            rk_engine_report_death(l->ucx->ctx, l->peer->number);
        break;
    default:
        rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
        break;
    }
}

/* Completing a request may call back into this room: remove each op from the list first. */
static void fail_list(struct rk_link *list, bool orphan_ucp)
{
    struct rk_link all, *pos;

    if (rk_list_empty(list))
        return;
    rk_list_insert_before(list, &all); /* move the links, */
    rk_list_remove(list);              /* and leave an empty list */
    while ((pos = all.next) != &all) {
        struct rk_ucx_op *op = rk_list_entry(pos, struct rk_ucx_op, link);
        struct rank_request *req = op->req;

        rk_list_remove(pos);
        if (op->stage) {
            rk_list_append(list, pos);
            rk_ucx_stage_end(op, RANK_ERR_PEER_DEAD, orphan_ucp);
            continue;
        }
        if (op->type == RK_UCX_OP_ORPHAN || (op->type == RK_UCX_OP_UCP && !orphan_ucp)) {
            rk_list_append(list, pos);
            continue;
        }
        if (op->parent)
            rk_ucx_stage_end(op->parent, RANK_ERR_PEER_DEAD, orphan_ucp);
        op->req = NULL;
        if (op->type == RK_UCX_OP_UCP) {
            op->type = RK_UCX_OP_ORPHAN;
            rk_list_append(list, pos);
        } else if (op->desc) {
            rk_ucx_drop_desc(op);
        } else {
            free_piece(op);
        }
        if (req)
            rk_req_complete(req, RANK_ERR_PEER_DEAD);
    }
}

void rk_ucx_fail_ops(struct rk_ucx_link *l, bool orphan_ucp)
{
    fail_list(&l->ops, orphan_ucp);
    fail_list(&l->sending, orphan_ucp);
}
