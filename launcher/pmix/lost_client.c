/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost_client.c: a client is gone without having finalized.
 *
 * The library sees its connection end, which is also how it learns of one that
 * died behind a wrapper script: the rank, which is the script, lives on then.
 *
 * Is no other client of the rank there, the library is told at once to count on the
 * rank no more (pmix_internal.h says why).
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdlib.h>

struct lost {
    struct xr_post post;
    uint32_t rank;
};

static void lost_client_run(struct xr_post *post, void *arg)
{
    struct lost *l = (struct lost *)post;
    struct xr_server *server = arg;

    server->events->lost(server->arg, l->rank);
    free(l);
}

void xr_server_count_client(struct xr_server *server, uint32_t rank, int n)
{
    uint32_t i = xr_server_local(server, rank);

    if (i < server->nlocal)
        server->clients[i] += n;
}

static void post_one(struct xr_server *server, const pmix_proc_t *proc)
{
    struct lost *l;
    uint32_t rank, i;

    if (!xr_server_rank_of(server, proc, &rank))
        return;
    xr_server_count_client(server, rank, -1);
    i = xr_server_local(server, rank);
    if (i < server->nlocal && server->clients[i] <= 0 && !atomic_load(&server->ending))
        xr_server_forget_rank(server, rank);
    l = malloc(sizeof(*l));
    if (!l)
        return;
    l->post.run = lost_client_run;
    l->rank = rank;
    xr_mailbox_post(server->mailbox, &l->post);
}

/* One event for all that went at a time: the first is the source, the others are among the infos. */
static void lost_client_on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();

    (void)id;
    (void)code;
    (void)results;
    (void)nresults;
    post_one(server, source);
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_PROCID) && info[i].value.type == PMIX_PROC)
            post_one(server, info[i].value.data.proc);
    }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

static void lost_client_on_registered(pmix_status_t status, size_t id, void *arg)
{
    (void)status;
    (void)id;
    (void)arg;
}

void xr_server_watch_lost(void)
{
    static pmix_status_t code = PMIX_ERR_LOST_CONNECTION;

    PMIx_Register_event_handler(&code, 1, NULL, 0, lost_client_on_event, lost_client_on_registered, NULL);
}
