/* SPDX-License-Identifier: BSD-3-Clause */
/* finalized.c: a client is in PMIx_Finalize. */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>

struct finalized {
    struct xr_post post;
    uint32_t rank;
};

static void finalized_run(struct xr_post *post, void *arg)
{
    struct finalized *f = (struct finalized *)post;
    struct xr_server *server = arg;

    server->events->finalized(server->arg, f->rank);
    free(f);
}

/*
 * The client waits for the answer, so whatever it does next, its exit above
 * all, comes after the post: the loop reads the mailbox before it judges an
 * exit. That is why the answer can be given at once.
 */
pmix_status_t xr_upcall_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                  void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct finalized *f;
    uint32_t rank;

    (void)object;
    (void)done;
    (void)done_arg;
    if (!xr_server_rank_of(server, proc, &rank))
        return PMIX_OPERATION_SUCCEEDED;
    xr_server_count_client(server, rank, -1);
    f = malloc(sizeof(*f));
    if (!f)
        return PMIX_ERR_NOMEM;
    f->post.run = finalized_run;
    f->rank = rank;
    xr_mailbox_post(server->mailbox, &f->post);
    return PMIX_OPERATION_SUCCEEDED;
}
