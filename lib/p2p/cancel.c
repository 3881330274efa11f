/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cancel.c: cancel operations that have not begun (rank_cancel).
 *
 * Cancel is local: it sends nothing and makes no progress, so a message that lies unread in a fifo is not matched.
 */
#include "lib/p2p/api_request.h"

rank_status_t rank_cancel(rank_request_t *handle)
{
    struct rank_request *req;
    rank_status_t st;

    if (!handle)
        return rk_arg_null(__func__, "req");
    req = *handle;
    if (!req)
        return rk_arg_handle(__func__, "request", req);
    RK_ENTER_REQUEST(req);
    st = rk_check_request(__func__, req);
    if (st)
        return st;
    if (req->type == RK_REQ_COLL)
        return RANK_ERR_NOT_SUPPORTED;
    if (req->type == RK_REQ_RMA)
        return RANK_OK; /* begun or complete */
    /* Neither affects a request that is complete or in progress. */
    if (!rk_p2p_cancel_recv(req, RANK_ERR_CANCELED))
        rk_p2p_cancel_send(req, RANK_ERR_CANCELED);
    return RANK_OK;
}

RK_PUBLIC(rank_cancel);
