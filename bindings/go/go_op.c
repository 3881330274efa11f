/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * go_op.c: start, poll, cancel and end operations.
 *
 * An operation that can be canceled is a persistent request, which stays valid when another thread completes it.
 */
#include "go_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Polling time of a wait before its goroutine is parked, and the number of threads of a context that poll. */
enum { POLL_NS = 400 * 1000, POLLERS_MAX = 2 };

void go_op_completed(const rank_envelope_t *envelope, void *arg);

go_op *go_op_new(go_ctx *c)
{
    go_op *op = calloc(1, sizeof(*op));

    if (!op)
        return NULL;
    if (sem_init(&op->done, 0, 0) < 0) {
        free(op);
        return NULL;
    }
    op->ctx = c;
    op->older = c->ops;
    c->ops = op;
    return op;
}

static void op_free_lists(go_op *op)
{
    free(op->iov);
    free(op->blocks);
    free(op->reason);
    free((void *)(uintptr_t)op->notice.data);
    op->iov = NULL;
    op->blocks = NULL;
    op->reason = NULL;
    op->notice.data = NULL;
}

/* The caller has entered the gate, and nothing cancels the operation. */
static void op_free_request(go_op *op)
{
    rank_request_free(&op->req);
    op->req = RANK_REQUEST_NULL;
    op->persistent = 0;
}

void go_op_end(go_op *op)
{
    op_free_lists(op);
    if (op->req && go_gate_enter(&op->ctx->gate)) {
        op_free_request(op);
        go_gate_leave(&op->ctx->gate);
    }
    op->req = RANK_REQUEST_NULL;
    op->started = op->canceled = op->persistent = 0;
}

void go_op_free(go_op *op)
{
    op_free_lists(op);
    sem_destroy(&op->done);
    free(op->copy);
    free(op);
}

static rank_status_t op_start_persistent(go_op *op, const go_team *t, int kind, void *data, int64_t n, int peer, int64_t tag)
{
    rank_status_t st;

    if (kind == GO_RECV)
        st = rank_recv_init(data, n, RANK_BYTE, peer, tag, t->team, &op->req);
    else if (kind == GO_SSEND)
        st = rank_ssend_init(data, n, RANK_BYTE, peer, tag, t->team, &op->req);
    else
        st = rank_send_init(data, n, RANK_BYTE, peer, tag, t->team, &op->req);
    if (st)
        return st;
    op->persistent = 1;
    return rank_start(&op->req);
}

static rank_status_t op_start_request(go_op *op, const go_team *t, int kind, void *data, int64_t n, int peer, int64_t where,
                                      rank_mem_t mem)
{
    switch (kind) {
    case GO_SEND:
        return rank_isend(data, n, RANK_BYTE, peer, where, t->team, &op->req);
    case GO_SSEND:
        return rank_issend(data, n, RANK_BYTE, peer, where, t->team, &op->req);
    case GO_RECV:
        return rank_irecv(data, n, RANK_BYTE, peer, where, t->team, &op->req);
    case GO_SENDV:
        return rank_isendv(op->iov, n, peer, where, t->team, &op->req);
    case GO_RECVV:
        return rank_irecvv(op->iov, n, peer, where, t->team, &op->req);
    case GO_PUT:
        return rank_iput(data, n, peer, mem, where, &op->req);
    case GO_GET:
        return rank_iget(data, n, peer, mem, where, &op->req);
    case GO_WRITE:
    case GO_READ:
        return rank_xfer(kind == GO_WRITE ? RANK_XFER_WRITE : RANK_XFER_READ, op->blocks, n, peer, t->team,
                         op->notice.data ? &op->notice : NULL, &op->req);
    case GO_START:
        return rank_start(&op->req);
    default:
        return RANK_ERR_INTERNAL;
    }
}

/* Wait for at most timeout_ns. Returns GO_DONE or GO_PENDING. */
static int op_poll(go_op *op, int64_t timeout_ns)
{
    rank_status_t st = rank_wait_timed(&op->req, timeout_ns, &op->envelope);

    if (st == RANK_ERR_TIMED_OUT)
        return GO_PENDING;
    op->status = st;
    return GO_DONE;
}

/* Look once, with progress. */
static int op_test(go_op *op)
{
    int done = 1;
    rank_status_t st = rank_test(&op->req, &done, &op->envelope);

    if (!done)
        return GO_PENDING;
    op->status = st;
    return GO_DONE;
}

/* Poll, unless others do that already. */
static int op_poll_shortly(go_op *op)
{
    go_ctx *c = op->ctx;
    int rc = GO_PENDING;

    if (atomic_fetch_add(&c->polling, 1) < POLLERS_MAX)
        rc = op_poll(op, POLL_NS);
    else
        rc = op_test(op);
    atomic_fetch_sub(&c->polling, 1);
    return rc;
}

/* Leave it to go_op_completed. */
static void op_report(go_op *op)
{
    rank_status_t st = rank_on_done(&op->req, go_op_completed, op);
    rank_envelope_t envelope = {.status = st};

    if (st) /* no memory */
        go_op_completed(&envelope, op);
}

static void op_cancel_here(go_op *op)
{
    if (op->persistent)
        rank_cancel(&op->req);
}

/* Wait as op->how requires, after a first look. */
static int op_wait_started(go_op *op)
{
    go_ctx *c = op->ctx;

    if (op->how == GO_STAY)
        return op_poll(op, -1);
    __atomic_store_n(&op->started, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&op->canceled, __ATOMIC_SEQ_CST))
        op_cancel_here(op);
    if (op->how == GO_LATER)
        return GO_PENDING;
    if (op_poll_shortly(op) == GO_DONE)
        return GO_DONE;
    if (op->how == GO_PARK) {
        atomic_fetch_add(&c->parked, 1);
        op_report(op);
        return GO_PENDING;
    }
    op_report(op);
    while (sem_wait(&op->done) < 0 && errno == EINTR)
        ;
    return GO_DONE;
}

rank_status_t go_op_prepare(go_op *op, go_team *t, int kind, int64_t n, int peer)
{
    rank_status_t st;

    if (!go_team_enter(t))
        return RANK_ERR_CLOSED;
    st = rank_xfer_init(kind == GO_WRITE ? RANK_XFER_WRITE : RANK_XFER_READ, op->blocks, n, peer, t->team,
                        op->notice.data ? &op->notice : NULL, &op->req);
    op->persistent = !st;
    go_team_leave(t);
    return st;
}

int go_op_start(go_handle op_handle, go_handle team, int kind, void *data, int64_t n, int peer, int64_t where, go_handle mem,
                int how, int cancels)
{
    go_op *op = (go_op *)op_handle;
    go_team *t = (go_team *)team;
    go_ctx *c = op->ctx;
    int rc = GO_DONE;

    op->how = how;
    free(op->reason);
    op->reason = NULL;
    op->envelope = (rank_envelope_t){.source = peer};
    op->status = RANK_ERR_CLOSED;
    if (!go_gate_enter(&c->gate))
        return GO_DONE;
    if (go_gate_enter(&t->starts)) {
        op->status = cancels && kind <= GO_RECV ? op_start_persistent(op, t, kind, data, n, peer, where)
                                                : op_start_request(op, t, kind, data, n, peer, where, (rank_mem_t)mem);
        op->started = !op->status;
        if (op->status)
            op->reason = strdup(rank_status_reason(op->status)); /* this thread has it */
        if (op->started)
            rc = how == GO_STAY ? GO_PENDING : op_test(op);
        if (rc == GO_PENDING)
            atomic_fetch_add(&t->blocked, 1);
        go_gate_leave(&t->starts);
    }
    if (rc == GO_PENDING) {
        rc = op_wait_started(op);
        atomic_fetch_sub(&t->blocked, 1);
    }
    if (rc == GO_DONE && op->persistent && how == GO_PARK)
        op_free_request(op);
    go_gate_leave(&c->gate);
    return rc;
}

int go_op_wait(go_op *op)
{
    int rc;

    if (!go_gate_enter(&op->ctx->gate))
        return GO_PENDING; /* the close of the context completes it */
    rc = op_poll_shortly(op);
    go_gate_leave(&op->ctx->gate);
    return rc;
}

int go_op_test(go_op *op)
{
    int rc;

    if (!go_gate_enter(&op->ctx->gate))
        return GO_PENDING;
    rc = op_test(op);
    go_gate_leave(&op->ctx->gate);
    return rc;
}

int go_op_park(go_op *op)
{
    go_ctx *c = op->ctx;

    if (!go_gate_enter(&c->gate))
        return GO_PENDING;
    if (op_test(op) == GO_DONE) {
        go_gate_leave(&c->gate);
        return GO_DONE;
    }
    op->how = GO_PARK;
    atomic_fetch_add(&c->parked, 1);
    op_report(op);
    go_gate_leave(&c->gate);
    return GO_PENDING;
}

void go_op_cancel(go_op *op)
{
    if (!go_gate_enter(&op->ctx->gate))
        return;
    __atomic_store_n(&op->canceled, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&op->started, __ATOMIC_SEQ_CST))
        op_cancel_here(op);
    go_gate_leave(&op->ctx->gate);
}
