/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_server.c: initialize PMIx and open the server. See pmix_server.h. */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/clock.h"
#include "lib/base/companion.h"
#include "lib/base/conf.h"

#include <hwloc.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ opening */

static pmix_server_module_t module = {
    .client_connected2 = xr_upcall_connected,
    .client_finalized = xr_upcall_finalized,
    .abort = xr_upcall_abort,
    .fence_nb = xr_upcall_fence,
    .direct_modex = xr_upcall_dmodex,
    .publish = xr_upcall_publish,
    .lookup = xr_upcall_lookup,
    .unpublish = xr_upcall_unpublish,
    .spawn = xr_upcall_spawn,
    .connect = xr_upcall_connect,
    .disconnect = xr_upcall_disconnect,
    .register_events = xr_upcall_register_events,
    .deregister_events = xr_upcall_deregister_events,
    .notify_event = xr_upcall_notify,
    .query = xr_upcall_query,
    .log = xr_upcall_log,
    .job_control = xr_upcall_job_control,
};

/*
 * Make a trivial topology. Without one libpmix discovers the machine with all plugins
 * of hwloc, X11 and OpenCL among them, which takes 14 ms of 17. It uses the topology only
 * for vendors' networks and for distances that clients request.
 */
static rank_status_t make_topology(void **out)
{
    hwloc_topology_t t;

    if (hwloc_topology_init(&t))
        return RANK_ERR_NO_MEMORY;
    if (hwloc_topology_set_synthetic(t, "pu:1") || hwloc_topology_load(t)) {
        hwloc_topology_destroy(t);
        return RANK_ERR_SYSTEM;
    }
    *out = t;
    return RANK_OK;
}

/* id: the job's name; host: this one's; known: a topology, or NULL. */
static rank_status_t pmix_server_init(const char *id, const char *host, void *known)
{
    static void *own_topology; /* libpmix may hold it: never freed */
    pmix_topology_t topology = {(char *)(uintptr_t) "hwloc", known};
    char name[PMIX_MAX_NSLEN];
    pmix_info_t info[5];
    pmix_rank_t zero = 0;
    bool off = false;
    pmix_status_t rc;
    rank_status_t st;

    /* Hash tables hold the job data, so no file can be left behind. The shared-memory store (ds21) would save 4 % of
     * the start of 128 clients. */
    setenv("PMIX_MCA_gds", "hash", 1);
    /* Report lost clients at once and not after a second, collected. */
    setenv("PMIX_MCA_pmix_event_caching_window", "0", 1);
    rk_companion_pmix_begin();
    if (!topology.topology) {
        st = make_topology(&own_topology);
        if (st)
            return st;
        topology.topology = own_topology;
    }
    snprintf(name, sizeof(name), "%.240s-agent", id);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_NSPACE, name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_RANK, &zero, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[2], PMIX_SERVER_TOOL_SUPPORT, &off, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[3], PMIX_HOSTNAME, host, PMIX_STRING);
    /* PMIX_INFO_LOAD would copy the topology. */
    memset(&info[4], 0, sizeof(info[4]));
    PMIX_LOAD_KEY(info[4].key, PMIX_TOPOLOGY2);
    info[4].value.type = PMIX_TOPO;
    info[4].value.data.topo = &topology;
    xr_server_note_abi();
    rc = PMIx_server_init(&module, info, 5);
    for (int i = 0; i < 4; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    return rc == PMIX_SUCCESS ? RANK_OK : xr_server_failed("PMIx_server_init", rc);
}

/* Initialize with all signals blocked, so that SIGCHLD does not wake libpmix's threads, and with guarded sockets. */
static rank_status_t init_apart(const char *id, const char *host, void *known, uint64_t *ns)
{
    struct xr_listen_guard before;
    uint64_t start = rk_clock_ns();
    sigset_t all, old;
    rank_status_t st;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    xr_listen_guard_note(&before);
    xr_event_priority_begin();
    st = pmix_server_init(id, host, known);
    xr_event_priority_end();
    xr_listen_guard_since(&before);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    *ns = rk_clock_ns() - start;
    return st;
}

/* The result of xr_server_begin. */
static struct {
    bool begun;
    rank_status_t st;
    uint64_t ns;
} early;

void xr_server_begin(const char *id, const char *host)
{
    early.begun = true;
    early.st = init_apart(id, host, NULL, &early.ns);
}

rank_status_t xr_server_open(struct event_base *base, const struct xr_server_job *job,
                             const struct xr_server_events *events, void *arg,
                             struct xr_server **out, uint64_t *init_ns, uint64_t *register_ns)
{
    struct xr_server *s = calloc(1, sizeof(*s));
    uint64_t start;
    rank_status_t st;

    if (!s)
        return RANK_ERR_NO_MEMORY;
    s->base = base;
    s->events = events;
    s->arg = arg;
    s->size = job->size;
    PMIX_LOAD_NSPACE(s->nspace, job->id);
    xr_job_queries_open(&s->queries);
    s->local = malloc((job->nlocal ? job->nlocal : 1) * sizeof(*s->local));
    s->clients = calloc((size_t)job->nlocal + 1, sizeof(*s->clients));
    if (!s->local || !s->clients) {
        free(s->local);
        free(s->clients);
        free(s);
        return RANK_ERR_NO_MEMORY;
    }
    s->nlocal = job->nlocal;
    memcpy(s->local, job->local, job->nlocal * sizeof(*s->local));
    st = xr_threadshift_open(base, s, &s->shift);
    if (st) {
        free(s->local);
        free(s->clients);
        free(s);
        return st;
    }
    xr_server_serve(s);
    *out = s; /* libpmix may hold it from here on: never freed */
    st = early.st;
    *init_ns = early.ns;
    if (!early.begun)
        st = init_apart(job->id, job->host, job->topology, init_ns);
    start = rk_clock_ns();
    if (!st) {
        xr_server_watch_lost();
        st = xr_server_register_job(s, job);
    }
    if (!st)
        st = xr_server_register_parent(s, job);
    if (!st && job->napps > 1)
        st = xr_server_register_apps(s, job);
    if (!st)
        st = xr_server_register_ranks(s, job);
    if (!st)
        st = xr_server_register_origin(s, job);
    *register_ns = rk_clock_ns() - start;
    return st;
}

/* -------------------------------------------------------------------- ranks */

char **xr_server_rank_env(struct xr_server *s, uint32_t rank)
{
    char **env = NULL;
    pmix_proc_t proc;
    pmix_status_t rc;

    PMIX_LOAD_PROCID(&proc, s->nspace, rank);
    rc = PMIx_server_setup_fork(&proc, &env);
    if (rc == PMIX_SUCCESS)
        return env; /* of strings from malloc() */
    xr_server_failed("PMIx_server_setup_fork", rc);
    xr_strv_free(env);
    return NULL;
}

const char *xr_server_version(void)
{
    static char version[64];
    /* "OpenPMIx 4.2.2 (PMIx Standard: 4.2, ...)", "4.2.2" or the like */
    const char *text = PMIx_Get_version();

    text += strcspn(text, "0123456789");
    snprintf(version, sizeof(version), "%.*s", (int)strspn(text, "0123456789."), text);
    return version;
}

void xr_server_ending(struct xr_server *s)
{
    if (s)
        atomic_store(&s->ending, true);
}

void xr_server_run_posts(struct xr_server *s)
{
    xr_threadshift_run(s->shift);
}
