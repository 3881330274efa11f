/* SPDX-License-Identifier: BSD-3-Clause */
/* describe_rma.c: describe the waits of one-sided calls for the status board. */
#include "lib/core/describe.h"
#include "lib/rma/rma_internal.h"
#include "lib/rma/signal.h"

static const char *const call_of[RK_RMA_OP_END] = {
    [RK_RMA_PUT] = "put",       [RK_RMA_GET] = "get",     [RK_RMA_PUTV] = "put",
    [RK_RMA_GETV] = "get",      [RK_RMA_AMO] = "atomic",  [RK_RMA_SIGNAL] = "put with signal",
    [RK_RMA_FLUSH] = "flush",   [RK_RMA_KEY] = "opening of a key",
};

bool rk_rma_describe(struct rk_ctx *ctx, bool (*cond)(void *), void *arg, struct rk_wait_for *out)
{
    const struct rank_request *req = arg;
    const struct rk_rma_wait *wait = arg;
    const struct rk_origin_op *job = arg;

    (void)ctx;
    if (cond == rk_req_is_done && req->type == RK_REQ_RMA) {
        rk_describe_call(out, req->kind == RK_REQ_FLUSH ? "flush" : req->kind == RK_REQ_PUT ? "put" : "get");
        if (req->kind != RK_REQ_FLUSH)
            out->flags |= RK_WAIT_BYTES;
        out->bytes = req->view.bytes;
        rk_describe_peer(out, req->peer->number);
    } else if (cond == rk_origin_is_done) {
        rk_describe_call(out, "%s", call_of[job->ask.op]);
        rk_describe_peer(out, job->peer->number);
    } else if (cond == rk_rma_word_is_so) {
        rk_describe_call(out, "wait for a %s", wait->peer ? "signal" : "value");
        if (wait->peer)
            rk_describe_peer(out, wait->peer->number);
        else
            out->flags |= RK_WAIT_ANY_SOURCE;
    } else {
        return false;
    }
    return true;
}
