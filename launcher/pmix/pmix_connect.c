/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_connect.c: forward connect, disconnect and fences across jobs.
 *
 * libpmix calls when all local participants have called or are lost. The first xrun
 * completes the operation and keeps the time-out (group_op.h).
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>
#include <string.h>

struct connect_call {
    struct xr_rpc_call call;
    uint32_t timeout_ms; /* or 0 */
    uint64_t late_ns;    /* connect_timeout.c; or 0 */
    pmix_op_cbfunc_t done;
    pmix_modex_cbfunc_t fenced; /* of a fence */
    void *done_arg;
};

static void pmix_connect_finish(struct xr_server *server, struct xr_rpc_call *call, pmix_status_t status,
                   struct xr_unpacker *u)
{
    struct connect_call *g = (struct connect_call *)call;
    size_t len = 0;
    const void *data = u ? xr_unpack_bytes(u, &len) : NULL;
    uint32_t others = u ? xr_unpack_u32(u) : 0;
    char *copy = NULL;

    if (status == PMIX_SUCCESS && u->failed)
        status = PMIX_ERROR;
    /* A job must be registered before clients learn that they are connected with it. */
    for (uint32_t i = 0; i < others && status == PMIX_SUCCESS && !u->failed; i++) {
        if (xr_unpack_u32(u) == 1 && !xr_server_add_job(server, u))
            status = PMIX_ERROR;
    }
    if (!g->fenced) {
        if (!xr_connect_timeout_over(g->late_ns))
            g->done(status, g->done_arg);
        return;
    }
    if (status == PMIX_SUCCESS && len) {
        copy = malloc(len);
        if (copy)
            memcpy(copy, data, len);
        else
            status = PMIX_ERR_NOMEM;
    }
    g->fenced(status, copy, copy ? len : 0, g->done_arg, free, copy);
}

static bool is_local_rank(const struct xr_server *server, uint32_t rank)
{
    return xr_server_local(server, rank) < server->nlocal;
}

/* The number of participants on this host. */
static uint32_t count_local(const struct xr_server *server, const pmix_proc_t procs[], size_t n)
{
    uint32_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_NSPACE(procs[i].nspace, server->nspace))
            count += procs[i].rank == PMIX_RANK_WILDCARD ? server->nlocal : is_local_rank(server, procs[i].rank);
    }
    return count;
}

/* The request as it is sent in the agent's loop, which has the ended ranks. */
struct connect_post {
    struct xr_post post;
    struct connect_call *g;
    pmix_proc_t *procs;
    size_t n;
    bool broken; /* libpmix has counted out lost clients */
    char *data; /* or NULL */
    size_t len;
};

static void pmix_connect_leave(struct xr_post *post, void *arg)
{
    struct connect_post *gp = (struct connect_post *)post;
    struct xr_server *server = arg;
    struct xr_packer *p = &gp->g->call.payload;
    bool lost = gp->broken;

    for (size_t i = 0; i < gp->n; i++) {
        bool all = gp->procs[i].rank == PMIX_RANK_WILDCARD;
        if (!PMIX_CHECK_NSPACE(gp->procs[i].nspace, server->nspace))
            continue;
        for (uint32_t k = 0; k < server->nlocal && all; k++)
            lost = lost || server->events->ended(server->arg, server->local[k]);
        if (!all && is_local_rank(server, gp->procs[i].rank))
            lost = lost || server->events->ended(server->arg, gp->procs[i].rank);
    }
    xr_pack_u32(p, lost);
    xr_pack_u32(p, count_local(server, gp->procs, gp->n));
    xr_pack_u32(p, gp->g->timeout_ms);
    xr_pack_u32(p, (uint32_t)gp->n);
    for (size_t i = 0; i < gp->n; i++) {
        char nspace[PMIX_MAX_NSLEN + 1];
        PMIX_LOAD_NSPACE(nspace, gp->procs[i].nspace);
        xr_pack_string(p, nspace);
        xr_pack_u32(p, gp->procs[i].rank == PMIX_RANK_WILDCARD ? XR_ALL_RANKS : gp->procs[i].rank);
    }
    xr_pack_bytes(p, gp->data, gp->len);
    server->events->rpc(server->arg, gp->g->call.what, XR_ALL_RANKS, p, gp->g);
    free(gp->procs);
    free(gp->data);
    free(gp);
}

/* Takes ownership of g and data. */
static pmix_status_t pmix_connect_post(enum xr_rpc what, const pmix_proc_t procs[], size_t n, const pmix_info_t info[],
                          size_t ninfo, struct connect_call *g, char *data, size_t len)
{
    struct connect_post *gp = calloc(1, sizeof(*gp));

    if (!gp || !g || !(gp->procs = malloc((n ? n : 1) * sizeof(*procs)))) {
        free(gp);
        free(g);
        free(data);
        return PMIX_ERR_NOMEM;
    }
    memcpy(gp->procs, procs, n * sizeof(*procs));
    g->call.what = what;
    g->call.done = pmix_connect_finish;
    gp->post.run = pmix_connect_leave;
    gp->g = g;
    gp->n = n;
    gp->broken = xr_infos_lost_client(info, ninfo);
    gp->data = data;
    gp->len = len;
    xr_threadshift_post(xr_server_serving()->shift, &gp->post);
    return PMIX_SUCCESS;
}

static struct connect_call *pmix_connect_make(pmix_op_cbfunc_t done, pmix_modex_cbfunc_t fenced, void *done_arg,
                                              uint32_t timeout_s)
{
    struct connect_call *g = calloc(1, sizeof(*g));

    if (g) {
        g->done = done;
        g->fenced = fenced;
        g->done_arg = done_arg;
        g->timeout_ms = timeout_s > UINT32_MAX / 1000 ? 0 : timeout_s * 1000; /* 49 days count as no time-out */
    }
    return g;
}

pmix_status_t xr_upcall_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
    uint32_t timeout_s = xr_infos_timeout(info, ninfo);
    struct connect_call *g;

    if (xr_connect_timeout_refused(timeout_s, count_local(xr_server_serving(), procs, nprocs)))
        return PMIX_ERR_NOT_SUPPORTED;
    g = pmix_connect_make(done, NULL, done_arg, timeout_s);
    if (g)
        g->late_ns = xr_connect_timeout_shorten(&g->timeout_ms);
    return pmix_connect_post(XR_RPC_CONNECT, procs, nprocs, info, ninfo, g, NULL, 0);
}

pmix_status_t xr_upcall_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                   size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
    return pmix_connect_post(XR_RPC_DISCONNECT, procs, nprocs, info, ninfo,
                pmix_connect_make(done, NULL, done_arg, xr_infos_timeout(info, ninfo)), NULL, 0);
}

pmix_status_t xr_upcall_fence_jobs(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                   size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                                   void *done_arg)
{
    return pmix_connect_post(XR_RPC_FENCE, procs, nprocs, info, ninfo,
                pmix_connect_make(NULL, done, done_arg, xr_infos_timeout(info, ninfo)), data, ndata);
}
