/* SPDX-License-Identifier: BSD-3-Clause */
/* client_state.c: report clients that are in PMIx_Init or in PMIx_Finalize. */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>

struct client_post {
    struct xr_post post;
    void (*report)(void *arg, uint32_t rank);
    uint32_t rank;
};

static void run_client_post(struct xr_post *post, void *arg)
{
    struct client_post *c = (struct client_post *)post;
    struct xr_server *server = arg;

    c->report(server->arg, c->rank);
    free(c);
}

bool xr_server_post_client(struct xr_server *server, uint32_t rank, void (*report)(void *arg, uint32_t rank))
{
    struct client_post *c = malloc(sizeof(*c));

    if (!c)
        return false;
    *c = (struct client_post){{.run = run_client_post}, report, rank};
    xr_threadshift_post(server->shift, &c->post);
    return true;
}

/* Add n to the connected clients of a rank, and report that. */
static pmix_status_t count_and_post(const pmix_proc_t *proc, int n, void (*report)(void *arg, uint32_t rank))
{
    struct xr_server *server = xr_server_serving();
    uint32_t rank;

    if (!xr_server_rank_of(server, proc, &rank))
        return PMIX_OPERATION_SUCCEEDED;
    xr_server_count_client(server, rank, n);
    return xr_server_post_client(server, rank, report) ? PMIX_OPERATION_SUCCEEDED : PMIX_ERR_NOMEM;
}

/* PMIx 4.2 passes no callback here. The post is queued before the client can continue. */
pmix_status_t xr_upcall_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
    (void)object;
    (void)info;
    (void)ninfo;
    (void)done;
    (void)done_arg;
    return count_and_post(proc, 1, xr_server_serving()->events->connected);
}

/*
 * The answer is given at once: the client waits for it, so its exit comes after the
 * post, and the loop runs all posts before it handles an exit.
 */
pmix_status_t xr_upcall_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                  void *done_arg)
{
    (void)object;
    (void)done;
    (void)done_arg;
    return count_and_post(proc, -1, xr_server_serving()->events->finalized);
}
