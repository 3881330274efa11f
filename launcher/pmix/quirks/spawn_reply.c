/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_reply.c: register the hosts of a spawned job behind the reply.
 *
 * libpmix:  4.2.2.
 * Symptom:  the reply of PMIx_Spawn carries all that is registered of the new job, and only the spawning client gets it.
 *           With the hosts in it Open MPI 5 takes the new ranks for local ones there and for remote ones in all other
 *           processes. Its collectives then compute wrong sums.
 * Upstream: none known; open-mpi/ompi#13059 is about the same locality.
 * Retire:   when tests/foreign/ompi5.sh passes with the hosts registered before the reply.
 *
 * The hosts are registered after the reply and before any query about them.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdlib.h>

struct spawn_reply {
    pmix_nspace_t nspace;
    pmix_spawn_cbfunc_t done;
    void *done_arg;
    pmix_info_t *info; /* the new job's hosts */
    size_t n, room;
};

static void spawn_reply_free(pmix_status_t status, void *arg)
{
    struct spawn_reply *r = arg;

    (void)status;
    PMIX_INFO_FREE(r->info, r->room);
    free(r);
}

/* Runs on PMIx's thread: both calls queue an event there, and the client gets the state of the first. */
static void spawn_reply_send(pmix_status_t status, void *arg)
{
    struct spawn_reply *r = arg;
    pmix_status_t rc;

    r->done(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status, r->nspace, r->done_arg);
    rc = PMIx_server_register_nspace(r->nspace, 0, r->info, r->n, spawn_reply_free, r);
    if (rc != PMIX_SUCCESS)
        spawn_reply_free(rc, r);
}

bool xr_spawn_reply(const char *id, pmix_info_t *hosts, size_t n, size_t room, pmix_spawn_cbfunc_t done, void *done_arg)
{
    struct spawn_reply *r = calloc(1, sizeof(*r));

    if (!r) {
        PMIX_INFO_FREE(hosts, room);
        return false;
    }
    *r = (struct spawn_reply){.done = done, .done_arg = done_arg, .info = hosts, .n = n, .room = room};
    PMIX_LOAD_NSPACE(r->nspace, id);
    if (PMIx_server_register_nspace(r->nspace, 0, NULL, 0, spawn_reply_send, r) != PMIX_SUCCESS) {
        spawn_reply_free(PMIX_ERROR, r);
        return false;
    }
    return true;
}
