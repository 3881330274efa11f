/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_pmix.c: start and end the PMIx client, the provider under a PMIx server.
 *
 * Needs only what every server provides: rank, job size, local peers, put, commit, fence, get, events, abort.
 * Without a server PMIx is not initialized.
 */
#include "lib/base/companion.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/kept_fds.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/boot/boot_client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool server_named(void)
{
    return rk_env("PMIX_NAMESPACE") || rk_env("PMIX_SERVER_URI2") || rk_env("PMIX_SERVER_URI21") ||
           rk_env("PMIX_SERVER_URI3") || rk_env("PMIX_SERVER_URI4") || rk_env("PMIX_SERVER_URI41");
}

/* PMIx is kept until the process exits; not in a forked child. */
static pid_t pmix_owner;

static void pmix_end(void)
{
    if (getpid() == pmix_owner && !rk_kept_fds_pmix_closed())
        PMIx_Finalize(NULL, 0);
}

/*
 * PMIx counts its opens. Each first open of libpmix 4.2.2 leaks 150 KiB: a process that opens a second context, at
 * once or after the first, keeps PMIx until it exits.
 */
static pmix_status_t pmix_begin(pmix_proc_t *me)
{
    static _Atomic int opened;
    bool first = !PMIx_Initialized();
    int lowest = first ? rk_kept_fds_lowest() : -1;
    bool plugins = first && rk_companion_pmix_begin();
    pmix_status_t rc = PMIx_Init(me, NULL, 0);

    if (plugins)
        rk_companion_pmix_end();
    if (first)
        rk_kept_fds_note_pmix(lowest);
    if (rc == PMIX_SUCCESS && atomic_fetch_add(&opened, 1) == 1 && PMIx_Init(me, NULL, 0) == PMIX_SUCCESS) {
        pmix_owner = getpid();
        atexit(pmix_end);
    }
    return rc;
}

static rank_status_t pmix_query(struct rk_client *c)
{
    rank_status_t st;

    c->pub.rank = (int)c->me.rank;
    snprintf(c->pub.job, sizeof(c->pub.job), "%s", c->me.nspace);
    st = rk_client_query_size(c);
    if (!st && c->pub.size > 1)
        st = rk_client_subscribe_deaths(c);
    if (!st)
        st = rk_client_query_local(c);
    return st ? st : rk_client_query_parent(c);
}

static void pmix_leave(struct rk_boot *boot)
{
    struct rk_client *c = rk_client_of(boot);
    pmix_status_t rc;

    if (c->left)
        return;
    c->left = true;
    rk_client_unsubscribe(c);
    rk_debug("asked for %u card%s", c->pub.fetched, c->pub.fetched == 1 ? "" : "s");
    rc = PMIx_Finalize(NULL, 0);
    if (rc != PMIX_SUCCESS)
        rk_info("PMIx_Finalize: %s", PMIx_Error_string(rc));
    if (!PMIx_Initialized()) { /* else its thread goes on, for another context or the program */
        rk_pending_free_all();
        rk_client_census_over();
        rk_client_events_over();
    }
}

static void pmix_close(struct rk_boot *boot)
{
    struct rk_client *c = rk_client_of(boot);

    pmix_leave(boot);
    pthread_mutex_destroy(&c->watch);
    rk_nspaces_free(c->spaces);
    free(c->pub.parent);
    free(c->pub.local);
    free(c->pub.node_of);
    free(c);
}

static rank_status_t pmix_open(struct rk_boot **out)
{
    struct rk_client *c;
    pmix_status_t rc;
    rank_status_t st;

    if (!server_named())
        return RANK_ERR_UNREACHABLE;
    c = calloc(1, sizeof(*c));
    if (!c || !(c->spaces = rk_nspaces_new())) {
        free(c);
        return RANK_ERR_NO_MEMORY;
    }
    c->pub.ops = &rk_boot_pmix;
    pthread_mutex_init(&c->watch, NULL);
    rc = pmix_begin(&c->me);
    if (rc != PMIX_SUCCESS) {
        c->left = true;
        st = rc == PMIX_ERR_UNREACH ? RANK_ERR_UNREACHABLE : rk_client_failed("PMIx_Init", rc);
    } else {
        st = pmix_query(c);
    }
    if (st)
        pmix_close(&c->pub);
    else
        *out = &c->pub;
    return st;
}

static void pmix_abort(struct rk_boot *boot, int code, const char *text)
{
    (void)boot;
    if (!rk_kept_fds_closed("rank_abort"))
        PMIx_Abort(code, text, NULL, 0);
}

const struct rk_boot_provider rk_boot_pmix = {
    .name = "pmix",
    .open = pmix_open,
    .leave = pmix_leave,
    .close = pmix_close,
    .watch_deaths = rk_client_watch_deaths,
    .put = rk_client_put,
    .commit = rk_client_commit,
    .get = rk_client_get,
    .fence = rk_client_fence,
    .abort = pmix_abort,
    .spawn_begin = rk_client_spawn_begin,
    .spawn_end = rk_client_spawn_end,
    .name_job = rk_client_name_job,
    .remove_job = rk_client_remove_job,
    .subscribe_jobs = rk_client_subscribe_jobs,
    .disconnect_begin = rk_client_disconnect_begin,
    .disconnect_end = rk_client_disconnect_end,
};
