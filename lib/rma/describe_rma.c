/* SPDX-License-Identifier: BSD-3-Clause */
/* describe_rma.c: describe the waits of one-sided calls for the status board. */
#include "lib/core/describe.h"
#include "lib/rma/rma_internal.h"

static const char *const call_of[RK_RMA_OP_END] = {
    [RK_RMA_PUT] = "put",       [RK_RMA_GET] = "get",     [RK_RMA_PUTV] = "put",
    [RK_RMA_GETV] = "get",      [RK_RMA_AMO] = "atomic",  [RK_RMA_SIGNAL] = "put with signal",
    [RK_RMA_FLUSH] = "flush",   [RK_RMA_KEY] = "opening of a key",
};

void rk_rma_describe(const struct rank_request *req, struct rk_wait_for *out)
{
    rk_describe_call(out, req->kind == RK_REQ_FLUSH ? "flush" : req->kind == RK_REQ_PUT ? "put" : "get");
    if (req->kind != RK_REQ_FLUSH)
        out->flags |= RK_WAIT_BYTES;
    out->bytes = req->view.bytes;
}

void rk_origin_describe(const struct rk_wait *w, struct rk_wait_for *out)
{
    rk_describe_call(out, "%s", call_of[((const struct rk_origin_wait *)w)->job->ask.op]);
}

void rk_word_describe(const struct rk_wait *w, struct rk_wait_for *out)
{
    rk_describe_call(out, "wait for a %s", w->peer ? "signal" : "value");
    if (!w->peer)
        out->flags |= RK_WAIT_ANY_SOURCE;
}
