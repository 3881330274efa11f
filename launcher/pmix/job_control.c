/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_control.c: signal ranks for clients, and end the job at PMIx.
 *
 * libpmix itself removes the files that a client has registered for removal, but
 * only if the host has this upcall. Open MPI registers its segments in /dev/shm.
 * Files of the job go when the job is deregistered. The rest comes here: signals
 * for ranks of the client's own job.
 */
#include "launcher/pmix/pmix_internal.h"

#include <signal.h>
#include <stdlib.h>

#define FORGET_MS 500

struct control {
    struct xr_post post;
    int sig;
    uint32_t n; /* 0: all */
    pmix_info_cbfunc_t done;
    void *done_arg;
    uint32_t rank[];
};

static void job_control_run(struct xr_post *post, void *arg)
{
    struct control *c = (struct control *)post;
    struct xr_server *server = arg;

    server->events->control(server->arg, c->sig, c->rank, c->n);
    if (c->done)
        c->done(PMIX_SUCCESS, NULL, 0, c->done_arg, NULL, NULL);
    free(c);
}

/* Is it a directive that libpmix handles, or the name of the request? */
static bool needs_nothing(const pmix_info_t *info)
{
    static const char *const keys[] = {PMIX_REGISTER_CLEANUP, PMIX_REGISTER_CLEANUP_DIR, PMIX_CLEANUP_RECURSIVE,
                                       PMIX_CLEANUP_EMPTY,    PMIX_CLEANUP_IGNORE,       PMIX_CLEANUP_LEAVE_TOPDIR,
                                       PMIX_JOB_CTRL_ID};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        if (PMIX_CHECK_KEY(info, keys[i]))
            return true;
    }
    return false;
}

/* The signal of the directives. Other directives, or two signals, are refused. */
static pmix_status_t signal_of(const pmix_info_t directives[], size_t n, int *sig)
{
    *sig = 0;
    for (size_t i = 0; i < n; i++) {
        const pmix_info_t *info = &directives[i];
        int one;
        if (needs_nothing(info))
            continue;
        if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_SIGNAL) && info->value.type == PMIX_INT)
            one = info->value.data.integer;
        else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_KILL) && PMIX_INFO_TRUE(info))
            one = SIGKILL;
        else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_TERMINATE) && PMIX_INFO_TRUE(info))
            one = SIGTERM;
        else
            return PMIX_ERR_NOT_SUPPORTED;
        if (*sig || one < 1 || one > 64)
            return PMIX_ERR_BAD_PARAM;
        *sig = one;
    }
    return *sig ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED;
}

pmix_status_t xr_upcall_job_control(const pmix_proc_t *client, const pmix_proc_t targets[],
                                    size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                                    pmix_info_cbfunc_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct control *c;
    pmix_status_t rc;
    int sig;

    (void)client;
    rc = signal_of(directives, ndirs, &sig);
    if (rc != PMIX_SUCCESS)
        return rc;
    if (!targets)
        ntargets = 0;
    c = malloc(sizeof(*c) + ntargets * sizeof(*c->rank));
    if (!c)
        return PMIX_ERR_NOMEM;
    c->n = (uint32_t)ntargets;
    for (size_t i = 0; i < ntargets; i++) {
        if (PMIX_CHECK_NSPACE(targets[i].nspace, server->nspace) && targets[i].rank == PMIX_RANK_WILDCARD) {
            c->n = 0;
            break;
        }
        if (!xr_server_rank_of(server, &targets[i], &c->rank[i])) { /* a rank of another job, or none */
            free(c);
            return PMIX_CHECK_NSPACE(targets[i].nspace, server->nspace) ? PMIX_ERR_NOT_FOUND : PMIX_ERR_NOT_SUPPORTED;
        }
    }
    c->post.run = job_control_run;
    c->sig = sig;
    c->done = done;
    c->done_arg = done_arg;
    xr_threadshift_post(server->shift, &c->post);
    return PMIX_SUCCESS;
}

/* The wait is bounded: a client that was killed within a message can block PMIx's thread. The answer may come later. */
void xr_server_end_job(struct xr_server *server)
{
    static struct xr_answer answer;

    if (!server)
        return;
    xr_answer_init(&answer);
    PMIx_server_deregister_nspace(server->nspace, xr_answer_come, &answer);
    xr_answer_await(&answer, FORGET_MS);
}
