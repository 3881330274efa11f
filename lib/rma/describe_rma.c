/* SPDX-License-Identifier: BSD-3-Clause */
/* describe_rma.c: describe the waits of one-sided calls for the status board. */
#include "lib/core/describe.h"
#include "lib/rma/rma_internal.h"

void rk_rma_describe(const struct rank_request *req, struct rk_wait_for *out)
{
    static const char *const calls[] = {[RK_REQ_GET] = "get",    [RK_REQ_PUT] = "put",
                                        [RK_REQ_FLUSH] = "flush", [RK_REQ_AMO] = "atomic",
                                        [RK_REQ_SIGNAL] = "put with signal", [RK_REQ_KEY] = "opening of a key",
                                        [RK_REQ_LIST] = "transfer of a list"};

    rk_describe_call(out, "%s", calls[req->kind]);
    if (req->view.bytes)
        out->flags |= RK_WAIT_BYTES;
    out->bytes = req->view.bytes;
}

void rk_word_describe(const struct rk_wait *w, struct rk_wait_for *out)
{
    rk_describe_call(out, "wait for a %s", w->peer ? "signal" : "value");
    if (!w->peer)
        out->flags |= RK_WAIT_ANY_SOURCE;
}
