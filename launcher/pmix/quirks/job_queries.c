/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_queries.c: deregister another job only when no query about it is in flight.
 *
 * libpmix:  4.2.2.
 * Symptom:  three defects of queries about another job (direct modex):
 *           - Deregistration frees the state of a query that is in flight; its answer then reads freed memory.
 *           - Registration passes queries in flight to the host once more, with the same token, which takes one answer.
 *           - After "not found" for an unknown job libpmix lists the job as one that will be registered. Later
 *             queries and connects with it never reach the host.
 * Upstream: none known; openpmix/openpmix#4099, merged in August 2026, reworks the lifetimes of requests.
 * Retire:   when tests/launcher/dpm.sh passes under valgrind without this file on the oldest supported libpmix.
 *
 * Queries begin and end on PMIx's thread; the agent's loop requests deregistration. A job is deregistered when the
 * last query has ended, and no query begins until that is done. An unknown job is registered empty before the
 * answer and deregistered after it.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct rk_link link;
    struct xr_job_queries *all;
    pmix_nspace_t name;
    struct rk_link queries; /* struct xr_job_query */
    bool forget;  /* deregister after the last query */
    bool leaving; /* being deregistered */
};

struct xr_job_query {
    struct rk_link link;
    struct job *job;
    void *token;
};

void xr_job_queries_open(struct xr_job_queries *f)
{
    pthread_mutex_init(&f->lock, NULL);
    rk_list_init(&f->jobs);
    PMIX_INFO_LOAD(&f->no_data, PMIX_REGISTER_NODATA, NULL, PMIX_BOOL);
}

static struct job *job_queries_find(struct xr_job_queries *f, const char *name)
{
    for (struct rk_link *l = f->jobs.next; l != &f->jobs; l = l->next) {
        struct job *j = rk_list_entry(l, struct job, link);
        if (strcmp(j->name, name) == 0)
            return j;
    }
    return NULL;
}

static struct job *find_or_make(struct xr_job_queries *f, const char *name)
{
    struct job *j = job_queries_find(f, name);

    if (j)
        return j;
    j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    j->all = f;
    PMIX_LOAD_NSPACE(j->name, name);
    rk_list_init(&j->queries);
    rk_list_append(&f->jobs, &j->link);
    return j;
}

/* On PMIx's thread. */
static void job_queries_on_forgotten(pmix_status_t status, void *arg)
{
    struct job *j = arg;
    struct xr_job_queries *f = j->all;

    (void)status;
    pthread_mutex_lock(&f->lock);
    rk_list_remove(&j->link);
    pthread_mutex_unlock(&f->lock);
    free(j);
}

static void on_registered(pmix_status_t status, void *arg)
{
    (void)status;
    (void)arg;
}

static bool is_pending(const struct job *j, const void *token)
{
    for (struct rk_link *l = j->queries.next; l != &j->queries; l = l->next) {
        if (rk_list_entry(l, struct xr_job_query, link)->token == token)
            return true;
    }
    return false;
}

struct xr_job_query *xr_job_query_begin(struct xr_job_queries *f, const char *name, void *token, bool *again)
{
    struct xr_job_query *one = calloc(1, sizeof(*one));
    struct job *j;

    pthread_mutex_lock(&f->lock);
    j = find_or_make(f, name);
    *again = j && is_pending(j, token);
    if (one && j && !j->leaving && !*again) {
        one->job = j;
        one->token = token;
        rk_list_append(&j->queries, &one->link);
    } else {
        free(one);
        one = NULL;
    }
    pthread_mutex_unlock(&f->lock);
    return one;
}

void xr_job_query_end(struct xr_job_query *one)
{
    struct job *j = one->job;
    struct xr_job_queries *f = j->all;
    bool forget, idle;

    pthread_mutex_lock(&f->lock);
    rk_list_remove(&one->link);
    idle = rk_list_empty(&j->queries);
    forget = idle && j->forget;
    j->leaving = forget;
    if (idle && !forget)
        rk_list_remove(&j->link);
    pthread_mutex_unlock(&f->lock);
    free(one);
    if (forget)
        PMIx_server_deregister_nspace(j->name, job_queries_on_forgotten, j);
    else if (idle)
        free(j);
}

void xr_job_queries_forget(struct xr_job_queries *f, const char *name)
{
    struct job *j;
    bool now = false;

    pthread_mutex_lock(&f->lock);
    j = find_or_make(f, name);
    if (j && !j->leaving) {
        j->forget = true;
        j->leaving = now = rk_list_empty(&j->queries);
    }
    pthread_mutex_unlock(&f->lock);
    if (now)
        PMIx_server_deregister_nspace(j->name, job_queries_on_forgotten, j);
}

void xr_job_queries_keep(struct xr_job_queries *f, const char *name)
{
    struct job *j;

    pthread_mutex_lock(&f->lock);
    j = job_queries_find(f, name);
    if (j) /* a job that is being deregistered is registered again after that */
        j->forget = false;
    pthread_mutex_unlock(&f->lock);
}

void xr_job_queries_forget_unknown(struct xr_job_queries *f, const char *name)
{
    pmix_nspace_t nspace;

    PMIX_LOAD_NSPACE(nspace, name);
    PMIx_server_register_nspace(nspace, 0, &f->no_data, 1, on_registered, NULL);
    xr_job_queries_forget(f, name);
}
