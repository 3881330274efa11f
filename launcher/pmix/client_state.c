/* SPDX-License-Identifier: BSD-3-Clause */
/* client_state.c: a client has connected, that is, a rank is in PMIx_Init. */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>

struct connected {
    struct xr_post post;
    uint32_t rank;
};

static void client_state_run(struct xr_post *post, void *arg)
{
    struct connected *c = (struct connected *)post;
    struct xr_server *server = arg;

    server->events->connected(server->arg, c->rank);
    free(c);
}

/* PMIx 4.2 gives no callback here. The post is in the mailbox before the client can go on. */
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
    c->post.run = client_state_run;
    c->rank = rank;
    xr_mailbox_post(server->mailbox, &c->post);
    return PMIX_OPERATION_SUCCEEDED;
}
