/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_abort.c: end the job after PMIx_Abort.
 *
 * The whole job ends, even if the client named only some ranks: the others would
 * wait for those. The client blocks until the answer and is killed with the rest.
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>
#include <string.h>

struct abort_call {
    struct xr_post post;
    uint32_t rank;
    int code;
    char *text;
    pmix_op_cbfunc_t done;
    void *done_arg;
};

static void pmix_abort_run(struct xr_post *post, void *arg)
{
    struct abort_call *a = (struct abort_call *)post;
    struct xr_server *server = arg;

    server->events->aborted(server->arg, a->rank, a->code, a->text);
    if (a->done)
        a->done(PMIX_SUCCESS, a->done_arg);
    free(a->text);
    free(a);
}

pmix_status_t xr_upcall_abort(const pmix_proc_t *proc, void *object, int status, const char text[],
                              pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done,
                              void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct abort_call *a;
    uint32_t rank;

    (void)object;
    (void)procs;
    (void)nprocs;
    if (!xr_server_rank_of(server, proc, &rank))
        return PMIX_ERR_NOT_SUPPORTED;
    a = malloc(sizeof(*a));
    if (!a)
        return PMIX_ERR_NOMEM;
    *a = (struct abort_call){.post.run = pmix_abort_run,
                             .rank = rank,
                             .code = status,
                             .text = strdup(text ? text : ""),
                             .done = done,
                             .done_arg = done_arg};
    xr_threadshift_post(server->shift, &a->post);
    return PMIX_SUCCESS;
}
