/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_rpc.c: forward calls of clients to the first xrun.
 *
 * Each call has a file of its own that packs it and unpacks the answer.
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>

static pmix_status_t status_of(uint32_t status)
{
    switch (status) {
    case XR_DONE:
        return PMIX_SUCCESS;
    case XR_DONE_PARTLY:
        return PMIX_ERR_PARTIAL_SUCCESS;
    case XR_NOT_FOUND:
        return PMIX_ERR_NOT_FOUND;
    case XR_TOO_LATE:
        return PMIX_ERR_TIMEOUT;
    case XR_EXISTS_ALREADY:
        return PMIX_ERR_DUPLICATE_KEY;
    case XR_NO_ROOM:
        return PMIX_ERR_OUT_OF_RESOURCE;
    case XR_PARTICIPANT_LOST:
        return PMIX_ERR_LOST_CONNECTION;
    case XR_NO_PROGRAM:
        return PMIX_ERR_JOB_EXE_NOT_FOUND;
    case XR_CANNOT_START:
        return PMIX_ERR_JOB_FAILED_TO_LAUNCH;
    default:
        return PMIX_ERR_BAD_PARAM;
    }
}

static void pmix_rpc_run(struct xr_post *post, void *arg)
{
    struct xr_rpc_call *call = (struct xr_rpc_call *)post;
    struct xr_server *server = arg;

    if (call->refused) {
        xr_packer_free(&call->payload);
        call->done(server, call, call->refused, NULL);
        free(call);
        return;
    }
    server->events->rpc(server->arg, call->what, call->rank, &call->payload, call);
}

void xr_rpc_post(struct xr_rpc_call *call)
{
    call->post.run = pmix_rpc_run;
    xr_threadshift_post(xr_server_serving()->shift, &call->post);
}

void xr_server_rpc_done(struct xr_server *server, void *token, struct xr_unpacker *answer)
{
    struct xr_rpc_call *call = token;
    pmix_status_t status = PMIX_ERR_UNREACH;

    if (answer) {
        status = status_of(xr_unpack_u32(answer));
        if (answer->failed)
            status = PMIX_ERROR;
    }
    call->done(server, call, status, answer);
    free(call);
}
