/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_server.c: open the PMIx server, register the job, tell of deaths. See pmix_server.h.
 *
 * What is registered is as little as clients can do with: node map and process
 * map, from which PMIx derives the local peers, and the sizes. Data for single
 * ranks would have to be complete to be of use, and is not needed.
 */
#include "launcher/util/pack.h"
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <hwloc.h>
#include <pmix.h>
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_S 60
#define LOCAL_PROCS_MAX 256 /* each client of a host gets one entry for each */

static struct xr_server *serving;

struct xr_server *xr_server_serving(void)
{
    return serving;
}

bool xr_server_rank_of(const struct xr_server *server, const pmix_proc_t *proc, uint32_t *rank)
{
    *rank = proc->rank;
    return PMIX_CHECK_NSPACE(proc->nspace, server->nspace) && proc->rank < server->size;
}

uint32_t xr_server_local(const struct xr_server *server, uint32_t rank)
{
    uint32_t low = 0, high = server->nlocal;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (server->local[mid] < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low < server->nlocal && server->local[low] == rank ? low : server->nlocal;
}

static rank_status_t failed(const char *what, pmix_status_t rc)
{
    rk_error("%s failed: %s", what, PMIx_Error_string(rc));
    return RANK_ERR_BOOT;
}

/* ------------------------------------------------- calls that answer later */

void xr_answer_init(struct xr_answer *a)
{
    a->status = a->failed = PMIX_SUCCESS;
    sem_init(&a->come, 0, 0);
}

void xr_answer_come(pmix_status_t status, void *arg)
{
    struct xr_answer *a = arg;

    a->status = status;
    sem_post(&a->come);
}

static void on_answer_to_none(pmix_status_t status, void *arg)
{
    struct xr_answer *a = arg;

    if (status != PMIX_SUCCESS)
        a->failed = status;
}

/* It comes in milliseconds, for a very large job in seconds. If PMIx's thread is stuck no client can go on either, and
 * what it may still write to lies on our stack: then the agent's end, which its keeper sees to, is the only good one. */
static void wait_bounded(struct xr_answer *a)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ANSWER_S;
    while (sem_timedwait(&a->come, &end)) {
        if (errno == EINTR)
            continue;
        rk_error("PMIx's server has not answered for %d s; ending the ranks of this host", ANSWER_S);
        _exit(1);
    }
}

pmix_status_t xr_answer_wait(struct xr_answer *a, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS) {
        wait_bounded(a);
        rc = a->failed ? a->failed : a->status;
    }
    sem_destroy(&a->come);
    return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}

/* ------------------------------------------------------------------ opening */

static pmix_server_module_t module = {
    .client_connected2 = xr_upcall_connected,
    .client_finalized = xr_upcall_finalized,
    .abort = xr_upcall_abort,
    .fence_nb = xr_upcall_fence,
    .direct_modex = xr_upcall_modex,
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
 * PMIx looks at the machine for itself if it is given no topology, with all of
 * hwloc's plugins (X11 and OpenCL among them: 14 ms of 17), and then uses it
 * only for jobs of vendors' networks and for distances that clients ask for.
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

/* id, host: the job's and this one's; known: a topology, or NULL. */
static rank_status_t pmix_server_init(const char *id, const char *host, void *known)
{
    static void *own_topology; /* PMIx may hold it: it lives as long as the process */
    pmix_topology_t topology = {(char *)(uintptr_t) "hwloc", known};
    char name[PMIX_MAX_NSLEN];
    pmix_info_t info[5];
    pmix_rank_t zero = 0;
    bool off = false;
    pmix_status_t rc;
    rank_status_t st;

    /* Job data in hash tables: nothing is put into files, so nothing can be left. The shared-memory
     * store (ds21) saves 4 % of the time that 128 clients take. */
    setenv("PMIX_MCA_gds", "hash", 1);
    /* Clients that were lost are told of at once, and not a second later with others. */
    setenv("PMIX_MCA_pmix_event_caching_window", "0", 1);
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
    return rc == PMIX_SUCCESS ? RANK_OK : failed("PMIx_server_init", rc);
}

/* On threads that are not woken for each child that ends, and with a door that is fit for strangers. */
static rank_status_t init_apart(const char *id, const char *host, void *known, uint64_t *ns)
{
    struct xr_listeners before;
    uint64_t start = rk_clock_ns();
    sigset_t all, old;
    rank_status_t st;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    xr_listeners_note(&before);
    xr_order_begin();
    st = pmix_server_init(id, host, known);
    xr_order_end();
    xr_listeners_guard(&before);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    *ns = rk_clock_ns() - start;
    return st;
}

/* What xr_server_begin has done. */
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

/* The texts with sep between them. */
static char *pmix_server_join(const char *const *texts, uint32_t n, char sep)
{
    size_t len = 1;
    char *all, *at;

    for (uint32_t i = 0; i < n; i++)
        len += strlen(texts[i]) + 1;
    all = at = malloc(len);
    for (uint32_t i = 0; all && i < n; i++) {
        if (i)
            *at++ = sep;
        at = stpcpy(at, texts[i]);
    }
    return all;
}

/* The map of ranks as PMIx packs it. Of ranks that do not follow each other it makes the same plain list, but takes
 * a time for it that is quadratic: 22 s for 128 on each of 1,000 hosts. */
static pmix_status_t pack_ranks(const struct xr_server_job *job, const char *ranks, char **out)
{
    if (job->runs)
        return PMIx_generate_ppn(ranks, out);
    return asprintf(out, "raw:%s", ranks) < 0 ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}

/*
 * PMIx_generate_regex of libpmix 4.2.2 (preg_native.c) writes the letters that a name
 * begins with into 50 bytes, without a check, and reads its digits into an int.
 */
#define NAME_LETTERS 49
#define NAME_DIGITS 9

static bool fits_regex(const char *name)
{
    size_t letters = 0, digits;

    while (isalpha((unsigned char)name[letters]))
        letters++;
    digits = strspn(name + letters, "0123456789");
    return letters <= NAME_LETTERS && digits <= NAME_DIGITS;
}

/* The map of hosts as PMIx packs it, or as it stands. */
static pmix_status_t pack_hosts(const struct xr_server_job *job, const char *hosts, char **out)
{
    for (uint32_t i = 0; i < job->nhosts; i++) {
        if (!fits_regex(job->hosts[i]))
            return asprintf(out, "raw:%s", hosts) < 0 ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
    }
    return PMIx_generate_regex(hosts, out);
}

/* PMIX_LOCAL_PROCS of this host. The rest of what PMIx knows of hosts it takes from the maps. */
static void about_local(pmix_info_t *info, const struct xr_server_job *job)
{
    pmix_data_array_t array, procs;
    pmix_info_t *item;

    PMIX_DATA_ARRAY_CONSTRUCT(&array, 2, PMIX_INFO);
    PMIX_DATA_ARRAY_CONSTRUCT(&procs, job->nlocal, PMIX_PROC);
    for (uint32_t i = 0; i < job->nlocal; i++)
        PMIX_LOAD_PROCID((pmix_proc_t *)procs.array + i, job->id, job->local[i]);
    item = array.array;
    PMIX_INFO_LOAD(&item[0], PMIX_HOSTNAME, job->host, PMIX_STRING);
    PMIX_INFO_LOAD(&item[1], PMIX_LOCAL_PROCS, &procs, PMIX_DATA_ARRAY);
    PMIX_INFO_LOAD(info, PMIX_NODE_INFO_ARRAY, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&procs);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

static rank_status_t pmix_server_register_job(struct xr_server *s, const struct xr_server_job *job)
{
    char *ranks = pmix_server_join(job->ranks_of, job->nhosts, ';'), *nodes = NULL, *procs = NULL;
    char *hosts = pmix_server_join(job->hosts, job->nhosts, ',');
    bool oversubscribed = job->oversubscribed;
    struct xr_answer a;
    uint32_t size = job->size, universe = job->universe > size ? job->universe : size;
    pmix_info_t info[10];
    pmix_proc_t parent;
    size_t ninfo = 6;
    pmix_status_t rc;

    if (!ranks || !hosts) {
        free(ranks);
        free(hosts);
        return RANK_ERR_NO_MEMORY;
    }
    rc = pack_hosts(job, hosts, &nodes);
    if (rc == PMIX_SUCCESS)
        rc = pack_ranks(job, ranks, &procs);
    free(ranks);
    free(hosts);
    if (rc == PMIX_SUCCESS) {
        PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, nodes, PMIX_REGEX);
        PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, procs, PMIX_REGEX);
        PMIX_INFO_LOAD(&info[2], PMIX_JOB_SIZE, &size, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[3], PMIX_UNIV_SIZE, &universe, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[4], PMIX_MAX_PROCS, &size, PMIX_UINT32);
        PMIX_INFO_LOAD(&info[5], PMIX_NODE_OVERSUBSCRIBED, &oversubscribed, PMIX_BOOL);
        if (job->folder) {
            PMIX_INFO_LOAD(&info[ninfo], PMIX_TMPDIR, job->folder, PMIX_STRING);
            ninfo++;
            PMIX_INFO_LOAD(&info[ninfo], PMIX_NSDIR, job->folder, PMIX_STRING);
            ninfo++;
        }
        if (job->nlocal && job->nlocal <= LOCAL_PROCS_MAX)
            about_local(&info[ninfo++], job);
        if (job->origin && job->origin->job) {
            PMIX_LOAD_PROCID(&parent, job->origin->job, job->origin->rank);
            PMIX_INFO_LOAD(&info[ninfo], PMIX_PARENT_ID, &parent, PMIX_PROC);
            ninfo++;
        }
        xr_answer_init(&a);
        rc = xr_answer_wait(&a, PMIx_server_register_nspace(s->nspace, (int)job->nlocal, info, ninfo,
                                                            xr_answer_come, &a));
        for (size_t i = 0; i < ninfo; i++)
            PMIX_INFO_DESTRUCT(&info[i]);
    }
    free(nodes);
    free(procs);
    return rc == PMIX_SUCCESS ? RANK_OK : failed("registering the job with PMIx", rc);
}

/* PMIx's thread takes them in order, so that it is enough to wait for the last. */
static rank_status_t register_ranks(struct xr_server *s, const struct xr_server_job *job)
{
    struct xr_answer a;
    pmix_status_t rc = PMIX_SUCCESS;

    if (job->nlocal == 0)
        return RANK_OK;
    xr_answer_init(&a);
    for (uint32_t i = 0; i < job->nlocal && rc == PMIX_SUCCESS; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, s->nspace, job->local[i]);
        rc = PMIx_server_register_client(&proc, geteuid(), getegid(), NULL,
                                         i + 1 < job->nlocal ? on_answer_to_none : xr_answer_come, &a);
    }
    rc = xr_answer_wait(&a, rc);
    return rc == PMIX_SUCCESS ? RANK_OK : failed("registering the ranks with PMIx", rc);
}

/* What a spawned job's clients may ask about the job that they come from. */
static rank_status_t register_origin(struct xr_server *s, const struct xr_server_job *job)
{
    struct xr_unpacker u;

    if (!job->origin || !job->origin->job)
        return RANK_OK;
    u = (struct xr_unpacker){job->origin->outline, job->origin->len, false};
    return xr_server_take_outline(s, &u) ? RANK_OK : RANK_ERR_BOOT;
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
    xr_flights_open(&s->flights);
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
    st = xr_mailbox_open(base, s, &s->mailbox);
    if (st) {
        free(s->local);
        free(s->clients);
        free(s);
        return st;
    }
    serving = s;
    *out = s; /* from here on PMIx may hold it: it lives as long as the process */
    st = early.st;
    *init_ns = early.ns;
    if (!early.begun)
        st = init_apart(job->id, job->host, job->topology, init_ns);
    start = rk_clock_ns();
    if (!st) {
        xr_server_watch_lost();
        st = pmix_server_register_job(s, job);
    }
    if (!st)
        st = xr_server_register_parent(s, job);
    if (!st && job->napps > 1)
        st = xr_server_register_apps(s, job);
    if (!st)
        st = register_ranks(s, job);
    if (!st)
        st = register_origin(s, job);
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
        return env; /* PMIx makes it of malloc'ed strings */
    failed("PMIx_server_setup_fork", rc);
    xr_strings_free(env);
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

void xr_server_catch_up(struct xr_server *s)
{
    xr_mailbox_run(s->mailbox);
}

/* -------------------------------------------------------------------- deaths */

struct notice {
    pmix_proc_t source, affected;
    pmix_info_t info[3];
};

static void pmix_server_on_told(pmix_status_t status, void *arg)
{
    struct notice *n = arg;

    (void)status;
    for (size_t i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&n->info[i]);
    free(n);
}

void xr_server_tell_death(struct xr_server *s, uint32_t rank, bool by_signal)
{
    xr_server_tell_other(s, s->nspace, rank, by_signal);
}

void xr_server_tell_other(struct xr_server *s, const char *job, uint32_t rank, bool by_signal)
{
    struct notice *n = calloc(1, sizeof(*n));
    bool over = rank == XR_ALL_RANKS;
    pmix_proc_t all;
    pmix_status_t rc;

    if (!n)
        return;
    PMIX_LOAD_PROCID(&n->source, job, over ? PMIX_RANK_WILDCARD : rank);
    PMIX_LOAD_PROCID(&n->affected, job, over ? PMIX_RANK_WILDCARD : rank);
    PMIX_LOAD_PROCID(&all, s->nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&n->info[0], PMIX_EVENT_AFFECTED_PROC, &n->affected, PMIX_PROC);
    PMIX_INFO_LOAD(&n->info[1], PMIX_EVENT_CUSTOM_RANGE, &all, PMIX_PROC);
    PMIX_INFO_LOAD(&n->info[2], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    rc = PMIx_Notify_event(over        ? PMIX_EVENT_JOB_END
                           : by_signal ? PMIX_ERR_PROC_ABORTED
                                       : PMIX_ERR_PROC_TERM_WO_SYNC,
                           &n->source, PMIX_RANGE_CUSTOM, n->info, 3, pmix_server_on_told, n);
    if (rc != PMIX_SUCCESS)
        pmix_server_on_told(rc, n);
    if (over)
        xr_server_forget_past(s, job);
}
