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

/* PMIx passes event handlers no context, and a process is one client of PMIx. */
static pthread_mutex_t handling = PTHREAD_MUTEX_INITIALIZER; /* held by a handler while it uses the clients */
static struct rk_client *watching;                           /* chained through next_watching */
static _Atomic bool *dead_ranks;                             /* of the own job, also before a later context */
static bool hearing_deaths, subscribed_jobs;                 /* the handlers are registered */

/* Call with the lock held; idempotent. */
static void deaths_watch(struct rk_client *c)
{
    struct rk_client *at = watching;

    while (at && at != c)
        at = at->next_watching;
    if (at)
        return;
    c->next_watching = watching;
    watching = c;
}

/* Set *flag; returns its value before. */
static bool deaths_set(bool *flag)
{
    bool before;

    pthread_mutex_lock(&handling);
    before = *flag;
    *flag = true;
    pthread_mutex_unlock(&handling);
    return before;
}

static void pass_on(int number, void *arg)
{
    struct rk_client *c = arg;

    pthread_mutex_lock(&c->watch);
    if (c->death_fn)
        c->death_fn(number, c->death_arg);
    pthread_mutex_unlock(&c->watch);
}

/* Of any job. */
static void deaths_deliver(struct rk_client *c, const pmix_proc_t *ended)
{
    bool known = c->dead && ended->rank < (pmix_rank_t)c->pub.size; /* a world of one has no table */

    if (!PMIX_CHECK_NSPACE(ended->nspace, c->me.nspace)) {
        rk_nspaces_ended(c->spaces, ended->nspace, ended->rank > INT_MAX ? RK_NSPACE_ALL : (int)ended->rank,
                         pass_on, c);
        return;
    }
    if (known)
        atomic_store(&c->dead[ended->rank], true);
    atomic_fetch_add(&c->deaths, 1);
    pass_on(known ? (int)ended->rank : -1, c);
}

void rk_client_record_death(const pmix_proc_t *ended)
{
    struct rk_client *c;
    bool known = true;

    pthread_mutex_lock(&handling);
    for (c = watching; c && known; c = c->next_watching)
        known = !c->dead || !PMIX_CHECK_NSPACE(ended->nspace, c->me.nspace) || ended->rank >= (pmix_rank_t)c->pub.size ||
                atomic_load(&c->dead[ended->rank]);
    if (!known)
        rk_debug("rank %u was gone before this one could receive its report", (unsigned)ended->rank);
    for (c = known ? NULL : watching; c; c = c->next_watching)
        deaths_deliver(c, ended);
    pthread_mutex_unlock(&handling);
}

void rk_client_no_census(void)
{
    pthread_mutex_lock(&handling);
    for (struct rk_client *c = watching; c; c = c->next_watching)
        atomic_store(&c->no_census, true);
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

static pmix_status_t death_codes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_TERM_WO_SYNC,
                                      PMIX_ERR_PROC_ABORTING};
static pmix_status_t job_codes[] = {PMIX_EVENT_JOB_END,        PMIX_ERR_JOB_ABORTED,
                                    PMIX_ERR_JOB_ABORTED_BY_SIG, PMIX_ERR_JOB_TERM_WO_SYNC,
                                    PMIX_ERR_JOB_NON_ZERO_TERM, PMIX_ERR_JOB_KILLED_BY_CMD};

static bool is_of_job(pmix_status_t code)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(job_codes); i++) {
        if (code == job_codes[i])
            return true;
    }
    return false;
}

/* A process or a job has ended, normally or not; the end of the own job is ignored. */
static void deaths_on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                            size_t ninfo, pmix_info_t results[], size_t nresults,
                            pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    const pmix_proc_t *ended = affected(source, info, ninfo);

    (void)id;
    (void)results;
    (void)nresults;
    pthread_mutex_lock(&handling);
    for (struct rk_client *c = ended ? watching : NULL; c; c = c->next_watching) {
        if (!is_of_job(code))
            deaths_deliver(c, ended);
        else if (!PMIX_CHECK_NSPACE(ended->nspace, c->me.nspace))
            rk_nspaces_ended(c->spaces, ended->nspace, RK_NSPACE_ALL, pass_on, c);
    }
    pthread_mutex_unlock(&handling);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

rank_status_t rk_client_subscribe_deaths(struct rk_client *c)
{
    pmix_status_t rc;

    pthread_mutex_lock(&handling);
    if (!dead_ranks)
        dead_ranks = calloc((size_t)c->pub.size, sizeof(*dead_ranks));
    c->dead = dead_ranks;
    for (int r = 0; c->dead && r < c->pub.size; r++)
        atomic_fetch_add(&c->deaths, atomic_load(&c->dead[r]));
    deaths_watch(c);
    pthread_mutex_unlock(&handling);
    if (!c->dead)
        return RANK_ERR_NO_MEMORY;
    if (deaths_set(&hearing_deaths))
        return RANK_OK;
    rc = PMIx_Register_event_handler(death_codes, RK_ARRAY_LEN(death_codes), NULL, 0, deaths_on_event,
                                     NULL, NULL);
    /* Without a callback the call blocks and returns the handler's id. */
    if (rc < 0)
        rk_info("the PMIx server reports no deaths (%s)", PMIx_Error_string(rc));
    return RANK_OK;
}

rank_status_t rk_client_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg)
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

rank_status_t rk_client_subscribe_jobs(struct rk_boot *boot)
{
    static char deaths[] = "deaths", ends[] = "ends of jobs";

    pthread_mutex_lock(&handling);
    deaths_watch(rk_client_of(boot));
    pthread_mutex_unlock(&handling);
    if (!deaths_set(&hearing_deaths))
        PMIx_Register_event_handler(death_codes, RK_ARRAY_LEN(death_codes), NULL, 0, deaths_on_event,
                                    registered, deaths);
    if (!deaths_set(&subscribed_jobs))
        PMIx_Register_event_handler(job_codes, RK_ARRAY_LEN(job_codes), NULL, 0, deaths_on_event,
                                    registered, ends);
    return RANK_OK;
}

void rk_client_remove_job(struct rk_boot *boot, int first)
{
    rk_nspaces_unregister(rk_client_of(boot)->spaces, first);
}

rank_status_t rk_client_name_job(struct rk_boot *boot, const char *space, int first, int size)
{
    return rk_nspaces_register(rk_client_of(boot)->spaces, space, first, size, pass_on, rk_client_of(boot));
}

void rk_client_unsubscribe(struct rk_client *c)
{
    pthread_mutex_lock(&handling);
    for (struct rk_client **at = &watching; *at; at = &(*at)->next_watching) {
        if (*at != c)
            continue;
        *at = c->next_watching;
        break;
    }
    c->dead = NULL;
    pthread_mutex_unlock(&handling);
}

void rk_client_events_over(void)
{
    pthread_mutex_lock(&handling);
    hearing_deaths = subscribed_jobs = false;
    free(dead_ranks);
    dead_ranks = NULL;
    pthread_mutex_unlock(&handling);
}
