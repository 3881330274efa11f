/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_rndv.c: send messages by UCP's rendezvous.
 *
 * The active message carries the header, and UCP moves the data into the receive buffer. UCP holds a segment for each
 * message that waits to be fetched.
 *
 * UCP cannot truncate a message. A receive that is too small or noncontiguous takes the data through callbacks
 * (UCP's generic datatype), which keep what fits. A view of many pieces is sent that way too; one of a few long
 * pieces is UCP's iovec. Device memory that UCP cannot access passes through host memory there (view_stage.h). UCP cannot
 * end a message that it has begun to send, so one whose copies may fail ends with a status behind the payload. An empty
 * message, which UCP does not announce, consists of that.
 */
#include "lib/channel/ucx/ucx.h"
#include "lib/data/view_stage.h"

#include <string.h>
#include <sys/uio.h>

/* Private word of a struct rk_rndv: the op. */
enum { P_OURS };

/* May UCP access the view's memory in one piece? */
static bool ucp_takes(const struct rk_ucx *ucx, const struct rk_view *view)
{
    return !view->ops || (ucx->cuda && view->ops->kind && view->ops->kind->id == RANK_MEM_CUDA);
}

/* End the op and complete its request, if any. */
static void ucx_op_end(struct rk_ucx_op *op, rank_status_t st)
{
    struct rank_request *req = op->req;
    rank_status_t copied = rk_view_stage_close(&op->view, !st && !op->copied);

    if (!st)
        st = op->copied ? op->copied : copied ? copied : op->status ? RANK_ERR_DEVICE : RANK_OK;
    rk_ucx_op_free(op);
    if (req)
        rk_req_complete(req, st);
}

void rk_ucx_ucp_done(void *request, ucs_status_t status, void *arg)
{
    struct rk_ucx_op *op = arg;
    struct rk_ucx_link *l = op->of;

    l->ucx->handled++;
    ucp_request_free(request);
    if (op->type == RK_UCX_OP_ORPHAN) {
        rk_ucx_op_free(op);
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
        ucx_op_end(op, RANK_ERR_PEER_DEAD);
    else
        ucx_op_end(op, rk_ucx_status(status));
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
    const struct rk_ucx_op *op = state;

    return op->total + (op->with_status ? sizeof(op->status) : 0);
}

/* Bytes of [offset, offset + n) that are payload. */
static size_t payload_of(const struct rk_ucx_op *op, size_t offset, size_t n)
{
    return offset >= op->total ? 0 : op->total - offset < n ? op->total - offset : n;
}

static size_t view_pack(void *state, size_t offset, void *to, size_t room)
{
    struct rk_ucx_op *op = state;
    size_t left = view_size(op) - offset, all = left < room ? left : room, n = payload_of(op, offset, all);

    if (op->type == RK_UCX_OP_ORPHAN || op->copied) /* the peer is dead, and the buffer belongs to its owner again */
        memset(to, 0, n);
    else if (n)
        op->copied = rk_copy_out(to, &op->view, offset, n);
    op->status = op->copied;
    if (n < all)
        memcpy((char *)to + n, (const char *)&op->status + (offset + n - op->total), all - n);
    return all;
}

static ucs_status_t view_unpack(void *state, size_t offset, const void *from, size_t all)
{
    struct rk_ucx_op *op = state;
    size_t n = payload_of(op, offset, all), keep;

    if (op->type == RK_UCX_OP_ORPHAN)
        return UCS_OK;
    if (n < all && op->with_status)
        memcpy((char *)&op->status + (offset + n - op->total), (const char *)from + n, all - n);
    keep = offset >= op->view.bytes ? 0 : op->view.bytes - offset < n ? op->view.bytes - offset : n;
    if (keep && !op->copied)
        op->copied = rk_copy_in(&op->view, offset, from, keep);
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

/* Pass the op's view to UCP: its memory, or the op itself for callbacks that move the first bytes. */
static void *view_for_ucp(struct rk_ucx_op *op, bool in_one_piece, size_t bytes, ucp_request_param_t *param)
{
    if (in_one_piece && op->view.ops) {
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param->memory_type = UCS_MEMORY_TYPE_CUDA;
    }
    if (in_one_piece)
        return op->view.base;
    rk_view_stage_open(&op->view, bytes);
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param->datatype = op->ucx->view_type;
    return op;
}

/*
 * Send a few long pieces in place, in segments as long as those of contiguous data; callbacks would fill UCX's
 * short segments (8 KiB over tcp), with a system call each. Returns the number of pieces; 0: too many or too
 * short.
 */
static size_t list_pieces(struct rk_ucx_op *op)
{
    struct iovec v[RK_UCX_PIECES_MAX];
    uint64_t sum = 0;
    int n;

    if (!op->view.ops || !op->view.ops->list || op->total < 2 * RK_UCX_PIECE_MIN)
        return 0;
    n = op->view.ops->list(op->view.base, 0, op->total, v, RK_UCX_PIECES_MAX);
    for (int i = 0; i < n; i++) {
        op->pieces[i] = (ucp_dt_iov_t){v[i].iov_base, v[i].iov_len};
        sum += v[i].iov_len;
    }
    return n > 0 && sum == op->total && op->total / (uint64_t)n >= RK_UCX_PIECE_MIN ? (size_t)n : 0;
}

/* -------------------------------------------------------------------- sender */

static rank_status_t send_by_ucp(struct rk_ucx_op *op, const struct rk_hdr *hdr)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_RNDV,
        .cb.send = rk_ucx_ucp_done,
        .user_data = op,
    };
    bool in_one_piece = ucp_takes(op->ucx, &op->view) && !op->with_status;
    struct rk_ucx_link *l = op->of;
    size_t head_len, pieces = in_one_piece ? 0 : list_pieces(op), count = pieces ? pieces : in_one_piece ? op->total : 1;
    void *buffer;
    ucs_status_ptr_t p;

    if (pieces) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = ucp_dt_make_iov();
        buffer = op->pieces;
    } else {
        buffer = view_for_ucp(op, in_one_piece, op->total, &param);
    }
    rk_ucx_flush_open(l);
    if (!l->ep || l->failed)
        return RANK_ERR_PEER_DEAD;
    head_len = rk_ucx_write_head(l, op->head, hdr);
    l->last_tick = l->ucx->tick;
    l->ucx->sent++;
    p = ucp_am_send_nbx(l->ep, RK_UCX_AM, op->head, head_len, buffer, count, &param);
    if (UCS_PTR_IS_ERR(p)) {
        rk_ucx_link_ended(l, UCS_PTR_STATUS(p));
        return RANK_ERR_PEER_DEAD;
    }
    if (p == NULL)
        ucx_op_end(op, RANK_OK);
    return RANK_OK;
}

/* Before UCP accesses device memory: make the program's own copies to it complete. No-op for other payload. */
static rank_status_t settle_memory(const struct rk_ucx *ucx, const struct rk_view *view)
{
    const struct rk_kind *kind = view->ops && ucp_takes(ucx, view) ? view->ops->kind : NULL;
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
    if (l->ucx->inside)
        return RK_AGAIN;
    op = rk_ucx_op_new(l, RK_UCX_OP_UCP);
    if (!op)
        return RANK_ERR_NO_MEMORY;
    op->req = req;
    op->view = *view;
    op->total = view->bytes;
    op->announced = true;
    op->with_status = view->bytes == 0 || (rk_view_may_fail(view) && !ucp_takes(l->ucx, view));
    h.kind = RK_KIND_RNDV;
    h.flags |= op->with_status ? RK_UCX_STATUS : 0;
    h.len = 0;
    st = send_by_ucp(op, &h);
    if (st)
        rk_ucx_op_free(op);
    return st;
}

/* ------------------------------------------------------------------ receiver */

bool rk_ucx_announced(struct rk_ucx_link *l, const struct rk_hdr *hdr, void *desc, uint64_t total)
{
    struct rk_rndv rndv = {.peer = l->peer};
    struct rk_ctx *ctx = l->ucx->ctx;
    bool with_status = hdr->flags & RK_UCX_STATUS;
    struct rk_hdr h = *hdr;
    struct rk_ucx_op *op;

    if (total > INT64_MAX || (with_status && total < sizeof(op->status))) {
        rk_engine_refused(l->ucx->ctx, &l->ucx->bad_frames);
        return false;
    }
    h.flags &= (uint8_t)~RK_UCX_STATUS;
    if (!rk_ucx_is_valid(l, &h))
        return false;
    /* Fetching needs a connection back. */
    if (!l->ep && (rk_peer_try_connect(l->peer) != RANK_OK || !l->ep)) {
        rk_error("rank %u sends through ucx, but ucx does not lead back to it", l->peer->id.rank);
        rk_ucx_link_broken(l);
        return false;
    }
    op = rk_ucx_op_new(l, RK_UCX_OP_HERE);
    if (!op) {
        rk_ucx_link_broken(l); /* a message is lost, and so is the order */
        return false;
    }
    op->desc = desc;
    op->with_status = with_status;
    op->total = total - (with_status ? sizeof(op->status) : 0);
    rndv.total = op->total;
    rndv.priv[P_OURS] = rk_id_pack(op->id);
    if (l->ucx->fast_recv)
        rk_ucx_fast_recv_frame(l->ucx->fast_recv, l, &h, NULL); /* not the wanted message */
    ctx->engine->handler[RK_KIND_RNDV](ctx, l->peer, &h, NULL, &rndv);
    return true;
}

static void start_receive(struct rk_ucx_op *op)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am = received,
        .user_data = op,
    };
    bool in_one_piece = ucp_takes(op->ucx, &op->view) && op->view.bytes >= op->total && !op->with_status;
    rank_status_t settled = in_one_piece ? settle_memory(op->ucx, &op->view) : RANK_OK;
    size_t want = op->view.bytes < op->total ? op->view.bytes : op->total;
    void *buffer = view_for_ucp(op, in_one_piece, want, &param), *desc = op->desc;
    ucs_status_ptr_t p;

    op->type = RK_UCX_OP_UCP;
    op->desc = NULL;
    op->copied = settled;
    p = ucp_am_recv_data_nbx(op->ucx->worker, desc, buffer, in_one_piece ? op->total : 1, &param);
    if (UCS_PTR_IS_ERR(p)) {
        rk_debug("UCX does not fetch a message: %s", ucs_status_string(UCS_PTR_STATUS(p)));
        ucx_op_end(op, rk_ucx_status(UCS_PTR_STATUS(p)));
    } else if (p == NULL) {
        ucx_op_end(op, RANK_OK);
    }
}

/* Free an op with UCP's descriptor of its data, and release that. */
static void drop_desc(struct rk_ucx_op *op)
{
    void *desc = op->desc;
    struct rk_ucx *ucx = op->ucx;

    rk_ucx_op_free(op);
    ucp_am_data_release(ucx->worker, desc);
}

int rk_ucx_todo(struct rk_ucx *ucx)
{
    int n = 0;

    while (!rk_list_empty(&ucx->todo)) {
        struct rk_ucx_op *op = rk_list_entry(ucx->todo.next, struct rk_ucx_op, todo);
        rk_list_remove(&op->todo);
        n++;
        if (op->unwanted)
            drop_desc(op);
        else
            start_receive(op);
    }
    return n;
}

/* Receive or drop the message of the op; within UCP's callbacks, which still write to it, when UCP has returned. */
static void decide_message(struct rk_ucx_op *op, bool wanted)
{
    op->wanted = wanted;
    op->unwanted = !wanted;
    rk_list_append(&op->ucx->todo, &op->todo);
    if (!op->ucx->inside)
        rk_ucx_todo(op->ucx);
}

/* NULL: it has been received or dropped, or the link has failed. */
static struct rk_ucx_op *announced_op(const struct rk_rndv *rndv)
{
    struct rk_ucx_link *l = rndv->peer->ep;
    struct rk_ucx_op *op = l ? rk_ucx_op_find(l, rk_id_unpack(rndv->priv[P_OURS])) : NULL;

    return op && op->type == RK_UCX_OP_HERE && !op->wanted && !op->unwanted ? op : NULL;
}

void rk_ucx_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                      struct rank_request *req)
{
    const struct rk_ucx_link *l = rndv->peer->ep;
    struct rk_ucx_op *op;

    if (!l || l->failed) {
        rk_req_complete(req, RANK_ERR_PEER_DEAD);
        return;
    }
    if (view->bytes == 0 || rndv->total == 0) {
        rk_ucx_rndv_drop(rndv);
        rk_req_complete(req, RANK_OK);
        return;
    }
    op = announced_op(rndv);
    if (!op) {
        rk_req_complete(req, RANK_ERR_INTERNAL);
        return;
    }
    op->req = req;
    op->view = *view;
    decide_message(op, true);
}

void rk_ucx_rndv_drop(const struct rk_rndv *rndv)
{
    struct rk_ucx_op *op = announced_op(rndv);

    if (op)
        decide_message(op, false);
}

/* Completing a request may call back into this room: remove each op from the list first. */
void rk_ucx_fail_ops(struct rk_ucx_link *l, bool orphan_ucp)
{
    struct rk_link all, *pos;

    if (rk_list_empty(&l->ops))
        return;
    rk_list_insert_before(&l->ops, &all); /* move the links, */
    rk_list_remove(&l->ops);              /* and leave an empty list */
    while ((pos = all.next) != &all) {
        struct rk_ucx_op *op = rk_list_entry(pos, struct rk_ucx_op, link);
        struct rank_request *req = op->req;

        rk_list_remove(pos);
        if (op->type == RK_UCX_OP_ORPHAN || (op->type == RK_UCX_OP_UCP && !orphan_ucp)) {
            rk_list_append(&l->ops, pos);
            continue;
        }
        op->req = NULL;
        if (op->type == RK_UCX_OP_UCP) {
            op->type = RK_UCX_OP_ORPHAN;
            rk_list_append(&l->ops, pos);
        } else {
            drop_desc(op);
        }
        if (req)
            rk_req_complete(req, RANK_ERR_PEER_DEAD);
    }
}
