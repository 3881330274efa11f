/*
 * gather.c: connect and disconnect, and a fence of processes of several jobs.
 *
 * PMIx calls once all processes of this host that take part have come, or are
 * gone.
 */
#include "launcher/pmix/upcalls.h"

#include <stdlib.h>
#include <string.h>

struct gather {
    struct rk_errand_call call;
    pmix_op_cbfunc_t done;
    pmix_modex_cbfunc_t fenced; /* of a fence */
    void *done_arg;
};

static void finish(struct rk_server *server, struct rk_errand_call *call, pmix_status_t status,
                   struct rk_unpacker *u)
{
    struct gather *g = (struct gather *)call;
    size_t len = 0;
    const void *data = u ? rk_unpack_bytes(u, &len) : NULL;
    uint32_t others = u ? rk_unpack_u32(u) : 0;
    char *copy = NULL;

    if (status == PMIX_SUCCESS && u->failed)
        status = PMIX_ERROR;
    /* PMIx must know a job before it may tell its clients that they are connected with it. */
    for (uint32_t i = 0; i < others && status == PMIX_SUCCESS; i++) {
        if (!rk_server_take_outline(server, u, NULL))
            status = PMIX_ERROR;
    }
    if (!g->fenced) {
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

static bool here(const struct rk_server *server, uint32_t rank)
{
    for (uint32_t i = 0; i < server->nlocal; i++) {
        if (server->local[i] == rank)
            return true;
    }
    return false;
}

/* Only the agent knows which have ended, so that this is for its loop; called before the errand leaves. */
struct gather_post {
    struct rk_post post;
    struct gather *g;
    pmix_proc_t *procs;
    size_t n;
    bool broken; /* clients are gone that the library has counted out */
    char *data; /* or NULL */
    size_t len;
};

static void leave(struct rk_post *post, void *arg)
{
    struct gather_post *gp = (struct gather_post *)post;
    struct rk_server *server = arg;
    struct rk_packer *p = &gp->g->call.payload;
    uint32_t count = 0;
    bool lost = gp->broken;

    for (size_t i = 0; i < gp->n; i++) {
        bool all = gp->procs[i].rank == PMIX_RANK_WILDCARD;
        if (!PMIX_CHECK_NSPACE(gp->procs[i].nspace, server->nspace))
            continue;
        for (uint32_t k = 0; k < server->nlocal && all; k++)
            lost = lost || server->events->ended(server->arg, server->local[k]);
        if (!all && here(server, gp->procs[i].rank))
            lost = lost || server->events->ended(server->arg, gp->procs[i].rank);
        count += all ? server->nlocal : here(server, gp->procs[i].rank);
    }
    rk_pack_u32(p, lost);
    rk_pack_u32(p, count);
    rk_pack_u32(p, (uint32_t)gp->n);
    for (size_t i = 0; i < gp->n; i++) {
        char nspace[PMIX_MAX_NSLEN + 1];
        PMIX_LOAD_NSPACE(nspace, gp->procs[i].nspace);
        rk_pack_string(p, nspace);
        rk_pack_u32(p, gp->procs[i].rank == PMIX_RANK_WILDCARD ? RK_ALL_RANKS : gp->procs[i].rank);
    }
    rk_pack_bytes(p, gp->data, gp->len);
    server->events->errand(server->arg, gp->g->call.what, RK_ALL_RANKS, p, gp->g);
    free(gp->procs);
    free(gp->data);
    free(gp);
}

/* Takes g and data over. */
static pmix_status_t post(enum rk_errand what, const pmix_proc_t procs[], size_t n, bool broken,
                          struct gather *g, char *data, size_t len)
{
    struct gather_post *gp = calloc(1, sizeof(*gp));

    if (!gp || !g || !(gp->procs = malloc((n ? n : 1) * sizeof(*procs)))) {
        free(gp);
        free(g);
        free(data);
        return PMIX_ERR_NOMEM;
    }
    memcpy(gp->procs, procs, n * sizeof(*procs));
    g->call.what = what;
    g->call.done = finish;
    gp->post.run = leave;
    gp->g = g;
    gp->n = n;
    gp->broken = broken;
    gp->data = data;
    gp->len = len;
    rk_mailbox_post(rk_server_serving()->mailbox, &gp->post);
    return PMIX_SUCCESS;
}

static struct gather *make(pmix_op_cbfunc_t done, pmix_modex_cbfunc_t fenced, void *done_arg)
{
    struct gather *g = calloc(1, sizeof(*g));

    if (g) {
        g->done = done;
        g->fenced = fenced;
        g->done_arg = done_arg;
    }
    return g;
}

pmix_status_t rk_upcall_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
    return post(RK_ERRAND_CONNECT, procs, nprocs, rk_infos_say_broken(info, ninfo), make(done, NULL, done_arg), NULL, 0);
}

pmix_status_t rk_upcall_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                   size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
    return post(RK_ERRAND_DISCONNECT, procs, nprocs, rk_infos_say_broken(info, ninfo), make(done, NULL, done_arg), NULL, 0);
}

pmix_status_t rk_upcall_fence_jobs(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                   size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                                   void *done_arg)
{
    return post(RK_ERRAND_FENCE, procs, nprocs, rk_infos_say_broken(info, ninfo), make(NULL, done, done_arg), data, ndata);
}
