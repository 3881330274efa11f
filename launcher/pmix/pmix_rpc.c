/*
 * pmix_rpc.c: calls of clients that are answered from outside this host, by the
 * first xrun. Each has a file of its own that packs it and unpacks the answer.
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>

static pmix_status_t status_of(uint32_t status)
{
    switch (status) {
    case RK_DONE:
        return PMIX_SUCCESS;
    case RK_DONE_PARTLY:
        return PMIX_ERR_PARTIAL_SUCCESS;
    case RK_NOT_FOUND:
        return PMIX_ERR_NOT_FOUND;
    case RK_TOO_LATE:
        return PMIX_ERR_TIMEOUT;
    case RK_THERE_ALREADY:
        return PMIX_ERR_DUPLICATE_KEY;
    case RK_NO_ROOM:
        return PMIX_ERR_OUT_OF_RESOURCE;
    case RK_SOMEBODY_LOST:
        return PMIX_ERR_LOST_CONNECTION;
    case RK_NO_PROGRAM:
        return PMIX_ERR_JOB_EXE_NOT_FOUND;
    case RK_CANNOT_START:
        return PMIX_ERR_JOB_FAILED_TO_LAUNCH;
    default:
        return PMIX_ERR_BAD_PARAM;
    }
}

static void run(struct rk_post *post, void *arg)
{
    struct rk_errand_call *call = (struct rk_errand_call *)post;
    struct rk_server *server = arg;

    if (call->refused) {
        rk_packer_free(&call->payload);
        call->done(server, call, call->refused, NULL);
        free(call);
        return;
    }
    server->events->errand(server->arg, call->what, call->rank, &call->payload, call);
}

void rk_errand_post(struct rk_errand_call *call)
{
    call->post.run = run;
    rk_mailbox_post(rk_server_serving()->mailbox, &call->post);
}

void rk_server_errand_done(struct rk_server *server, void *token, struct rk_unpacker *answer)
{
    struct rk_errand_call *call = token;
    pmix_status_t status = PMIX_ERR_UNREACH;

    if (answer) {
        status = status_of(rk_unpack_u32(answer));
        if (answer->failed)
            status = PMIX_ERROR;
    }
    call->done(server, call, status, answer);
    free(call);
}
