/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_queries.c: which other jobs clients ask about just now, and which PMIx is to
 * forget.
 *
 * libpmix 4.2.2 frees what it knows of a question whose job is deregistered
 * meanwhile, and then reads it when the answer comes: so a job is deregistered
 * only when nobody asks about it, and until that has been done nobody may begin.
 * Questions begin and end on PMIx's thread, the wish to forget comes from the loop.
 *
 * A job that is registered while it is asked about has all such questions passed
 * on once more, with the same token; a token can be answered only once.
 *
 * An answer about a job that it does not know makes it list that job as one that is
 * about to be registered: who then asks again, or connects with it, is never passed
 * on. So the job is registered, as one without processes or data here, before such
 * an answer, and forgotten after it.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct rk_link link;
    struct xr_flights *all;
    pmix_nspace_t name;
    struct rk_link asking; /* struct xr_flight */
    bool forget;  /* when nobody asks any more */
    bool leaving; /* PMIx has been told to forget it */
};

struct xr_flight {
    struct rk_link link;
    struct job *job;
    void *token;
};

void xr_flights_open(struct xr_flights *f)
{
    pthread_mutex_init(&f->lock, NULL);
    rk_list_init(&f->jobs);
    PMIX_INFO_LOAD(&f->no_data, PMIX_REGISTER_NODATA, NULL, PMIX_BOOL);
}

static struct job *job_queries_find(struct xr_flights *f, const char *name)
{
    for (struct rk_link *l = f->jobs.next; l != &f->jobs; l = l->next) {
        struct job *j = rk_list_entry(l, struct job, link);
        if (strcmp(j->name, name) == 0)
            return j;
    }
    return NULL;
}

static struct job *find_or_make(struct xr_flights *f, const char *name)
{
    struct job *j = job_queries_find(f, name);

    if (j)
        return j;
    j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    j->all = f;
    PMIX_LOAD_NSPACE(j->name, name);
    rk_list_init(&j->asking);
    rk_list_append(&f->jobs, &j->link);
    return j;
}

/* On PMIx's thread. */
static void job_queries_on_forgotten(pmix_status_t status, void *arg)
{
    struct job *j = arg;
    struct xr_flights *f = j->all;

    (void)status;
    pthread_mutex_lock(&f->lock);
    rk_list_remove(&j->link);
    pthread_mutex_unlock(&f->lock);
    free(j);
}

static void job_queries_on_registered(pmix_status_t status, void *arg)
{
    (void)status;
    (void)arg;
}

static bool is_asking(const struct job *j, const void *token)
{
    for (struct rk_link *l = j->asking.next; l != &j->asking; l = l->next) {
        if (rk_list_entry(l, struct xr_flight, link)->token == token)
            return true;
    }
    return false;
}

struct xr_flight *xr_flight_begin(struct xr_flights *f, const char *name, void *token, bool *again)
{
    struct xr_flight *one = calloc(1, sizeof(*one));
    struct job *j;

    pthread_mutex_lock(&f->lock);
    j = find_or_make(f, name);
    *again = j && is_asking(j, token);
    if (one && j && !j->leaving && !*again) {
        one->job = j;
        one->token = token;
        rk_list_append(&j->asking, &one->link);
    } else {
        free(one);
        one = NULL;
    }
    pthread_mutex_unlock(&f->lock);
    return one;
}

void xr_flight_end(struct xr_flight *one)
{
    struct job *j = one->job;
    struct xr_flights *f = j->all;
    bool forget, idle;

    pthread_mutex_lock(&f->lock);
    rk_list_remove(&one->link);
    idle = rk_list_empty(&j->asking);
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

void xr_flights_forget(struct xr_flights *f, const char *name)
{
    struct job *j;
    bool now = false;

    pthread_mutex_lock(&f->lock);
    j = find_or_make(f, name);
    if (j && !j->leaving) {
        j->forget = true;
        j->leaving = now = rk_list_empty(&j->asking);
    }
    pthread_mutex_unlock(&f->lock);
    if (now)
        PMIx_server_deregister_nspace(j->name, job_queries_on_forgotten, j);
}

void xr_flights_keep(struct xr_flights *f, const char *name)
{
    struct job *j;

    pthread_mutex_lock(&f->lock);
    j = job_queries_find(f, name);
    if (j) /* what is leaving is registered anew behind that */
        j->forget = false;
    pthread_mutex_unlock(&f->lock);
}

void xr_flights_forget_unknown(struct xr_flights *f, const char *name)
{
    pmix_nspace_t nspace;

    PMIX_LOAD_NSPACE(nspace, name);
    PMIx_server_register_nspace(nspace, 0, &f->no_data, 1, job_queries_on_registered, NULL);
    xr_flights_forget(f, name);
}
