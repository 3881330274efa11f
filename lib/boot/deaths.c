/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deaths.c: receive PMIx events about processes and jobs that have ended.
 *
 * Handlers run on the PMIx thread: they map the process to its number and call the death handler.
 */
#include "lib/base/compiler.h"
#include "lib/base/log.h"
#include "lib/boot/boot_client.h"

#include <limits.h>
#include <stdlib.h>

/* PMIx passes event handlers no context. PMIx allows one client a process. */
static struct rk_client *watching;
static pthread_mutex_t handling = PTHREAD_MUTEX_INITIALIZER; /* held by a handler while it uses the client */

static void deaths_watch(struct rk_client *c)
{
    pthread_mutex_lock(&handling);
    watching = c;
    pthread_mutex_unlock(&handling);
}

static void pass_on(int number, void *arg)
{
    struct rk_client *c = arg;

    pthread_mutex_lock(&c->watch);
    if (c->death_fn)
        c->death_fn(number, c->death_arg);
    pthread_mutex_unlock(&c->watch);
}

void rk_client_record_death(const pmix_proc_t *ended)
{
    struct rk_client *c;

    pthread_mutex_lock(&handling);
    c = watching;
    if (c && c->dead && PMIX_CHECK_NSPACE(ended->nspace, c->me.nspace) && ended->rank < (pmix_rank_t)c->pub.size &&
        !atomic_exchange(&c->dead[ended->rank], true)) {
        rk_debug("rank %u was gone before this one could hear of it", (unsigned)ended->rank);
        atomic_fetch_add(&c->deaths, 1);
        pass_on((int)ended->rank, c);
    }
    pthread_mutex_unlock(&handling);
}

void rk_client_no_census(void)
{
    pthread_mutex_lock(&handling);
    if (watching)
        atomic_store(&watching->no_census, true);
    pthread_mutex_unlock(&handling);
}

/* The process that an event is about. */
static const pmix_proc_t *affected(const pmix_proc_t *source, const pmix_info_t info[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC)
            return info[i].value.data.proc;
    }
    return source;
}

static void deaths_on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    const pmix_proc_t *ended = affected(source, info, ninfo);
    struct rk_client *c;

    (void)id;
    (void)code;
    (void)results;
    (void)nresults;
    pthread_mutex_lock(&handling);
    c = watching;
    if (c && ended && PMIX_CHECK_NSPACE(ended->nspace, c->me.nspace)) {
        /* a world of one subscribes for other jobs only */
        bool known = c->dead && ended->rank < (pmix_rank_t)c->pub.size;
        if (known)
            atomic_store(&c->dead[ended->rank], true);
        atomic_fetch_add(&c->deaths, 1);
        pass_on(known ? (int)ended->rank : -1, c);
    } else if (c && ended) {
        rk_nspaces_ended(c->spaces, ended->nspace, ended->rank > INT_MAX ? RK_NSPACE_ALL : (int)ended->rank,
                         pass_on, c);
    }
    pthread_mutex_unlock(&handling);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

/* A job has ended, normally or not; the own job is ignored. */
static void on_job_event(size_t id, pmix_status_t code, const pmix_proc_t *source,
                         pmix_info_t info[], size_t ninfo, pmix_info_t results[], size_t nresults,
                         pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    const pmix_proc_t *ended = affected(source, info, ninfo);
    struct rk_client *c;

    (void)id;
    (void)code;
    (void)results;
    (void)nresults;
    pthread_mutex_lock(&handling);
    c = watching;
    if (c && ended && !PMIX_CHECK_NSPACE(ended->nspace, c->me.nspace))
        rk_nspaces_ended(c->spaces, ended->nspace, RK_NSPACE_ALL, pass_on, c);
    pthread_mutex_unlock(&handling);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

static pmix_status_t death_codes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_TERM_WO_SYNC,
                                      PMIX_ERR_PROC_ABORTING};

rank_status_t rk_client_subscribe_deaths(struct rk_client *c)
{
    pmix_status_t rc;

    c->dead = calloc((size_t)c->pub.size, sizeof(*c->dead));
    if (!c->dead)
        return RANK_ERR_NO_MEMORY;
    deaths_watch(c);
    c->hearing_deaths = true;
    rc = PMIx_Register_event_handler(death_codes, RK_ARRAY_LEN(death_codes), NULL, 0, deaths_on_event,
                                     NULL, NULL);
    /* Without a callback the call blocks and returns the handler's id. */
    if (rc < 0)
        rk_info("the PMIx server reports no deaths (%s)", PMIx_Error_string(rc));
    return RANK_OK;
}

rank_status_t rk_boot_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg)
{
    struct rk_client *c = rk_client_of(boot);

    pthread_mutex_lock(&c->watch);
    c->death_fn = fn;
    c->death_arg = arg;
    /* Deliver deaths that were reported before. */
    for (int r = 0; fn && c->dead && r < c->pub.size; r++) {
        if (atomic_load(&c->dead[r]))
            fn(r, arg);
    }
    pthread_mutex_unlock(&c->watch);
    return RANK_OK;
}

static void registered(pmix_status_t rc, size_t id, void *what)
{
    (void)id;
    if (rc != PMIX_SUCCESS)
        rk_info("the PMIx server reports no %s (%s)", (const char *)what, PMIx_Error_string(rc));
}

rank_status_t rk_boot_subscribe_jobs(struct rk_boot *boot)
{
    static pmix_status_t job_codes[] = {PMIX_EVENT_JOB_END,        PMIX_ERR_JOB_ABORTED,
                                        PMIX_ERR_JOB_ABORTED_BY_SIG, PMIX_ERR_JOB_TERM_WO_SYNC,
                                        PMIX_ERR_JOB_NON_ZERO_TERM, PMIX_ERR_JOB_KILLED_BY_CMD};
    static char deaths[] = "deaths", ends[] = "ends of jobs";
    struct rk_client *c = rk_client_of(boot);

    deaths_watch(c);
    if (!c->hearing_deaths)
        PMIx_Register_event_handler(death_codes, RK_ARRAY_LEN(death_codes), NULL, 0, deaths_on_event,
                                    registered, deaths);
    c->hearing_deaths = true;
    if (!c->subscribed_jobs)
        PMIx_Register_event_handler(job_codes, RK_ARRAY_LEN(job_codes), NULL, 0, on_job_event,
                                    registered, ends);
    c->subscribed_jobs = true;
    return RANK_OK;
}

void rk_boot_remove_job(struct rk_boot *boot, int first)
{
    if (!boot->alone)
        rk_nspaces_unregister(rk_client_of(boot)->spaces, first);
}

rank_status_t rk_boot_name_job(struct rk_boot *boot, const char *space, int first, int size)
{
    return rk_nspaces_register(rk_client_of(boot)->spaces, space, first, size, pass_on, rk_client_of(boot));
}

void rk_client_unsubscribe(void)
{
    deaths_watch(NULL);
}
