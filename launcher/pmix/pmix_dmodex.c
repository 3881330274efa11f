/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_dmodex.c: fetch the committed data of single ranks between hosts.
 *
 * Clients request data of ranks of other hosts and jobs; agents of other hosts
 * request data of ranks of this host.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------- requests of this host */

struct modex {
    struct xr_post post;
    uint32_t rank, timeout_s;
    bool known;
    pmix_nspace_t job; /* another job, or empty */
    struct xr_job_query *query; /* about that job */
    pmix_modex_cbfunc_t done;
    void *done_arg;
};

/* The answer, until libpmix releases it on its thread. */
struct given {
    struct xr_job_query *query; /* or NULL */
    char data[];
};

static void on_given(void *arg)
{
    struct given *g = arg;

    if (g->query)
        xr_job_query_end(g->query);
    free(g);
}

void xr_server_dmodex_done(struct xr_server *server, void *token, enum xr_found found, const void *data,
                          size_t len)
{
    struct modex *m = token;
    size_t room = found == XR_FOUND ? len : 0;
    struct given *g = calloc(1, sizeof(*g) + room);
    pmix_status_t status = found == XR_FOUND_LATE ? PMIX_ERR_TIMEOUT : PMIX_ERR_NOT_FOUND;

    (void)server;
    if (g && room)
        memcpy(g->data, data, room);
    if (g && found == XR_FOUND)
        status = PMIX_SUCCESS;
    if (g)
        g->query = m->query; /* without memory the query never ends, and the job stays registered */
    m->done(status, g && room ? g->data : NULL, g ? room : 0, m->done_arg, g ? on_given : NULL, g);
    free(m);
}

/* ------------------------------------------------- requests about other jobs */

struct about {
    struct xr_rpc_call call;
    struct modex *modex;
};

static void on_answer(struct xr_server *server, struct xr_rpc_call *call, pmix_status_t status,
                      struct xr_unpacker *u)
{
    struct about *a = (struct about *)call;
    size_t len = 0;
    const void *data = u ? xr_unpack_bytes(u, &len) : NULL;

    /* The job first: libpmix stores the data of a rank with its job. */
    if (u && xr_unpack_u32(u) == 1 && !xr_server_add_job(server, u))
        status = PMIX_ERROR;
    if (!xr_server_has_job(server, a->modex->job))
        xr_job_queries_forget_unknown(&server->queries, a->modex->job);
    xr_server_dmodex_done(server, a->modex,
                         status == PMIX_SUCCESS       ? XR_FOUND
                         : status == PMIX_ERR_TIMEOUT ? XR_FOUND_LATE
                                                      : XR_FOUND_NEVER,
                         data, len);
}

static void modex_forward(struct xr_server *server, struct modex *m)
{
    struct about *a = calloc(1, sizeof(*a));

    if (!a) {
        xr_server_dmodex_done(server, m, XR_FOUND_NEVER, NULL, 0);
        return;
    }
    a->modex = m;
    a->call.what = XR_RPC_MODEX;
    a->call.done = on_answer;
    xr_pack_string(&a->call.payload, m->job);
    xr_pack_u32(&a->call.payload, m->rank);
    xr_pack_u32(&a->call.payload, m->timeout_s);
    server->events->rpc(server->arg, XR_RPC_MODEX, XR_ALL_RANKS, &a->call.payload, a);
}

static void pmix_dmodex_run(struct xr_post *post, void *arg)
{
    struct modex *m = (struct modex *)post;
    struct xr_server *server = arg;

    if (m->known)
        server->events->modex(server->arg, m->rank, m->timeout_s, m);
    else if (m->job[0])
        modex_forward(server, m);
    else
        xr_server_dmodex_done(server, m, XR_FOUND_NEVER, NULL, 0);
}

pmix_status_t xr_upcall_dmodex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct modex *m = calloc(1, sizeof(*m));
    bool again;

    if (!m)
        return PMIX_ERR_NOMEM;
    *m = (struct modex){.post.run = pmix_dmodex_run, .done = done, .done_arg = done_arg};
    /* libpmix does not keep the time-out for ranks of other hosts. */
    m->timeout_s = xr_infos_timeout(info, ninfo);
    m->known = xr_server_rank_of(server, proc, &m->rank);
    if (!PMIX_CHECK_NSPACE(proc->nspace, server->nspace)) {
        PMIX_LOAD_NSPACE(m->job, proc->nspace);
        m->rank = proc->rank == PMIX_RANK_WILDCARD ? XR_ALL_RANKS : proc->rank;
        m->query = xr_job_query_begin(&server->queries, m->job, done_arg, &again);
        if (!m->query) {
            free(m);
            return again ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
        }
    }
    xr_threadshift_post(server->shift, &m->post);
    return PMIX_SUCCESS;
}

/* -------------------------------------------------------- requests of other hosts */

struct lookup {
    struct xr_post post;
    uint32_t id, rank;
    bool dead; /* use the data of dead clients */
    bool found;
    char *data;
    size_t len;
};

static void pmix_dmodex_report(struct xr_post *post, void *arg)
{
    struct lookup *l = (struct lookup *)post;
    struct xr_server *server = arg;
    const void *data = l->data;
    size_t len = l->len;
    bool found = l->found;

    if (l->dead)
        xr_dead_client_data(server, l->rank, &found, &data, &len);
    server->events->looked_up(server->arg, l->id, found, data, len);
    free(l->data);
    free(l);
}

static void pmix_dmodex_on_data(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct lookup *l = arg;

    l->found = status == PMIX_SUCCESS;
    l->data = l->found && len ? malloc(len) : NULL;
    if (l->data) {
        memcpy(l->data, data, len);
        l->len = len;
    }
    l->found = l->found && (l->data || !len);
    xr_threadshift_post(xr_server_serving()->shift, &l->post);
}

static void on_round(pmix_status_t status, void *arg)
{
    struct lookup *l = arg;

    (void)status;
    xr_threadshift_post(xr_server_serving()->shift, &l->post);
}

/* Report the data when all earlier requests are answered, or never will be. */
static void pmix_dmodex_settle(struct xr_server *server, uint32_t rank, uint32_t id, bool dead)
{
    struct lookup *l = calloc(1, sizeof(*l));
    pmix_status_t rc = PMIX_ERR_NOMEM;

    if (l) {
        l->post.run = pmix_dmodex_report;
        l->id = id;
        l->rank = rank;
        l->dead = dead;
        rc = xr_pending_dmodex_flush(server, on_round, l);
    }
    if (rc == PMIX_SUCCESS)
        return;
    free(l);
    server->events->looked_up(server->arg, id, false, NULL, 0);
}

void xr_server_settle(struct xr_server *server, uint32_t id)
{
    pmix_dmodex_settle(server, 0, id, false);
}

void xr_server_lookup(struct xr_server *server, uint32_t rank, uint32_t id)
{
    struct lookup *l;
    pmix_proc_t proc;
    const void *data;
    size_t len;
    bool found;

    if (xr_dead_client_data(server, rank, &found, &data, &len)) {
        pmix_dmodex_settle(server, rank, id, true);
        return;
    }
    l = calloc(1, sizeof(*l));
    if (!l) {
        server->events->looked_up(server->arg, id, false, NULL, 0);
        return;
    }
    l->post.run = pmix_dmodex_report;
    l->id = id;
    PMIX_LOAD_PROCID(&proc, server->nspace, rank);
    if (PMIx_server_dmodex_request(&proc, pmix_dmodex_on_data, l) != PMIX_SUCCESS)
        xr_threadshift_post(server->shift, &l->post);
}
