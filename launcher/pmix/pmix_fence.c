/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_fence.c: forward fences that span several hosts.
 *
 * Fences among ranks of one host complete inside libpmix. This upcall carries the data
 * of all local participants.
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>
#include <string.h>

struct xr_fence_call {
    struct xr_post post;
    uint32_t *ranks, nranks; /* 0: all of the job */
    bool foreign;            /* it names ranks that the job does not have */
    bool broken;             /* a local participant was lost before it called */
    char *data;              /* owned */
    size_t len;
    uint32_t timeout_s;      /* or 0 */
    struct event *late;      /* or NULL */
    pmix_modex_cbfunc_t done;
    void *done_arg;
};

static void pmix_fence_destroy(void *arg)
{
    struct xr_fence_call *f = arg;

    free(f->ranks);
    free(f->data);
    free(f);
}

/* Answer and pass ownership of the call to libpmix. */
static void pmix_fence_answer(struct xr_fence_call *f, pmix_status_t status)
{
    bool good = status == PMIX_SUCCESS && f->data;

    if (f->late)
        event_free(f->late);
    f->late = NULL;
    f->done(status, good ? f->data : NULL, good ? f->len : 0, f->done_arg, pmix_fence_destroy, f);
}

void xr_server_fence_done(struct xr_server *server, void *token, int status, const void *data,
                          size_t len)
{
    struct xr_fence_call *f = token;

    (void)server;
    /* libpmix uses the data until it calls pmix_fence_destroy. */
    free(f->data);
    f->data = len ? malloc(len) : NULL;
    f->len = len;
    if (f->data)
        memcpy(f->data, data, len);
    else if (len)
        status = PMIX_ERR_NOMEM;
    pmix_fence_answer(f, status ? PMIX_ERROR : PMIX_SUCCESS);
}

/* libpmix's own time-out ends when all local participants have called. */
static void pmix_fence_on_late(evutil_socket_t fd, short what, void *arg)
{
    struct xr_fence_call *f = arg;
    struct xr_server *server = xr_server_serving();

    (void)fd;
    (void)what;
    server->events->fence_late(server->arg, f);
    pmix_fence_answer(f, PMIX_ERR_TIMEOUT);
}

static void pmix_fence_run(struct xr_post *post, void *arg)
{
    struct xr_fence_call *f = (struct xr_fence_call *)post;
    struct xr_server *server = arg;
    const struct timeval late = {(time_t)f->timeout_s, 0};

    if (f->foreign) {
        pmix_fence_answer(f, PMIX_ERR_NOT_SUPPORTED);
        return;
    }
    if (f->timeout_s) {
        f->late = evtimer_new(server->base, pmix_fence_on_late, f);
        if (!f->late || event_add(f->late, &late)) {
            pmix_fence_answer(f, PMIX_ERR_NOMEM);
            return;
        }
    }
    server->events->fence(server->arg, f->ranks, f->nranks, f->broken, f->data, f->len, f);
}

static bool list_ranks(const struct xr_server *server, const pmix_proc_t procs[], size_t n,
                       struct xr_fence_call *f)
{
    f->ranks = calloc(n ? n : 1, sizeof(*f->ranks));
    for (size_t i = 0; f->ranks && i < n; i++) {
        if (procs[i].rank == PMIX_RANK_WILDCARD) {
            f->nranks = 0;
            return true;
        } else if (procs[i].rank >= server->size) {
            f->foreign = true;
        } else {
            f->ranks[f->nranks++] = procs[i].rank;
        }
    }
    return f->ranks != NULL;
}

pmix_status_t xr_upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                              void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct xr_fence_call *f = calloc(1, sizeof(*f));

    for (size_t i = 0; i < nprocs; i++) {
        if (!PMIX_CHECK_NSPACE(procs[i].nspace, server->nspace)) {
            free(f);
            return xr_upcall_fence_jobs(procs, nprocs, info, ninfo, data, ndata, done, done_arg);
        }
    }
    if (!f || !list_ranks(server, procs, nprocs, f)) {
        free(data);
        free(f);
        return PMIX_ERR_NOMEM;
    }
    f->post.run = pmix_fence_run;
    f->data = data;
    f->len = ndata;
    f->broken = xr_infos_lost_client(info, ninfo);
    f->timeout_s = xr_infos_timeout(info, ninfo);
    f->done = done;
    f->done_arg = done_arg;
    xr_threadshift_post(server->shift, &f->post);
    return PMIX_SUCCESS;
}
