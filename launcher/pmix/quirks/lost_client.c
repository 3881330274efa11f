/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost_client.c: report clients that end without PMIx_Finalize.
 *
 * libpmix:  4.2.2.
 * Symptom:  libpmix reports a lost connection, but keeps the rank as an expected participant of later fences. The rank
 *           itself may live on, if it is a script that has started the client.
 * Upstream: none known; openpmix/openpmix#3934, merged in July 2026, is related.
 * Retire:   the deregistration here and dead_clients.c go together. The report to the agent stays.
 *
 * A rank without another client is deregistered at once, on PMIx's thread; pmix_internal.h gives the reason.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>

void xr_server_count_client(struct xr_server *server, uint32_t rank, int n)
{
    uint32_t i = xr_server_local(server, rank);

    if (i < server->nlocal)
        server->clients[i] += n;
}

static void lost_client_post(struct xr_server *server, const pmix_proc_t *proc)
{
    uint32_t rank, i;

    if (!xr_server_rank_of(server, proc, &rank))
        return;
    xr_server_count_client(server, rank, -1);
    i = xr_server_local(server, rank);
    if (i < server->nlocal && server->clients[i] <= 0 && !atomic_load(&server->ending))
        xr_dead_client_add(server, rank);
    xr_server_post_client(server, rank, server->events->lost);
}

/* libpmix sends one event for all clients lost at a time: the source is the first, the infos list the others. */
static void lost_client_on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();

    (void)id;
    (void)code;
    (void)results;
    (void)nresults;
    lost_client_post(server, source);
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_PROCID) && info[i].value.type == PMIX_PROC)
            lost_client_post(server, info[i].value.data.proc);
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
