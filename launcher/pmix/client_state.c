/* SPDX-License-Identifier: BSD-3-Clause */
/* client_state.c: report clients that are in PMIx_Init or in PMIx_Finalize. */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>

struct connected {
    struct xr_post post;
    uint32_t rank;
};

static void client_on_connected(struct xr_post *post, void *arg)
{
    struct connected *c = (struct connected *)post;
    struct xr_server *server = arg;

    server->events->connected(server->arg, c->rank);
    free(c);
}

/* PMIx 4.2 passes no callback here. The post is queued before the client can continue. */
pmix_status_t xr_upcall_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct connected *c;
    uint32_t rank;

    (void)object;
    (void)info;
    (void)ninfo;
    (void)done;
    (void)done_arg;
    if (!xr_server_rank_of(server, proc, &rank))
        return PMIX_OPERATION_SUCCEEDED;
    xr_server_count_client(server, rank, 1);
    c = malloc(sizeof(*c));
    if (!c)
        return PMIX_ERR_NOMEM;
    c->post.run = client_on_connected;
    c->rank = rank;
    xr_threadshift_post(server->shift, &c->post);
    return PMIX_OPERATION_SUCCEEDED;
}

struct finalized {
    struct xr_post post;
    uint32_t rank;
};

static void client_on_finalized(struct xr_post *post, void *arg)
{
    struct finalized *f = (struct finalized *)post;
    struct xr_server *server = arg;

    server->events->finalized(server->arg, f->rank);
    free(f);
}

/*
 * The answer is given at once: the client waits for it, so its exit comes after the
 * post, and the loop runs all posts before it handles an exit.
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
    f->post.run = client_on_finalized;
    f->rank = rank;
    xr_threadshift_post(server->shift, &f->post);
    return PMIX_OPERATION_SUCCEEDED;
}
