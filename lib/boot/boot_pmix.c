/*
 * boot_pmix.c: the PMIx client behind boot.h.
 *
 * Asks only for what every server gives: rank, job size, local peers, put,
 * commit, fence, get, events, abort. Without a server the process is a world
 * of one, and PMIx is not even initialized.
 */
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/boot/parent.h"
#include "lib/boot/spaces.h"

#include <limits.h>
#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct pmix_boot {
    struct rk_boot pub; /* first: what others see */
    pmix_proc_t me;
    _Atomic int deaths;   /* reported so far: who waits in a fence looks */
    pthread_mutex_t watch; /* held while death_fn, which may be NULL, is called */
    rk_boot_death_fn death_fn;
    void *death_arg;
    struct rk_spaces *spaces; /* of other jobs */
    bool hearing_deaths, hearing_jobs;
    bool met; /* a fence is behind us: all have committed */
    struct answer *given_up; /* those that PMIx may still write to */
};

/* How long a card is asked for that the server says is not there yet. */
enum { CARD_TRIES = 5000, CARD_PAUSE_NS = 1000000 };

/* PMIx calls event handlers without a context of ours. One client a process, says PMIx. */
static _Atomic(struct pmix_boot *) watching;

static struct pmix_boot *of(struct rk_boot *boot)
{
    return (struct pmix_boot *)boot;
}

static rank_status_t failed(const char *what, pmix_status_t rc)
{
    rk_error("%s failed: %s", what, PMIx_Error_string(rc));
    return RANK_ERR_BOOT;
}

static bool server_named(void)
{
    return rk_env("PMIX_NAMESPACE") || rk_env("PMIX_SERVER_URI2") || rk_env("PMIX_SERVER_URI21") ||
           rk_env("PMIX_SERVER_URI3") || rk_env("PMIX_SERVER_URI4") || rk_env("PMIX_SERVER_URI41");
}

/* Alone; say so if the environment shows that the user meant more. */
static rank_status_t open_alone(struct rk_boot *boot)
{
    static const char *const hints[] = {"SLURM_STEP_NUM_TASKS", "PMI_SIZE",
                                        "OMPI_COMM_WORLD_SIZE"};

    for (size_t i = 0; i < RK_ARRAY_LEN(hints); i++) {
        const char *v = rk_env(hints[i]);
        if (v && atoi(v) > 1) {
            rk_warn("%s is %s, but there is no PMIx server: this process is a world of its own. "
                    "Start with xrun, srun --mpi=pmix, or Open MPI's mpirun",
                    hints[i], v);
            break;
        }
    }
    boot->alone = true;
    boot->size = boot->nlocal = 1;
    boot->local = calloc(1, sizeof(int));
    snprintf(boot->job, sizeof(boot->job), "alone-%d", (int)getpid());
    return boot->local ? RANK_OK : RANK_ERR_NO_MEMORY;
}

static rank_status_t query_size(struct pmix_boot *b)
{
    pmix_proc_t all;
    pmix_value_t *v = NULL;
    pmix_status_t rc;

    PMIX_LOAD_PROCID(&all, b->me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &v);
    if (rc != PMIX_SUCCESS)
        return failed("asking the PMIx server for the job's size", rc);
    b->pub.size = v->type == PMIX_UINT32 ? (int)v->data.uint32 : 0;
    PMIX_VALUE_RELEASE(v);
    if (b->pub.size < 1 || b->pub.rank >= b->pub.size) {
        rk_error("the PMIx server says rank %d of %d", b->pub.rank, b->pub.size);
        return RANK_ERR_BOOT;
    }
    return RANK_OK;
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* "0,1,5" or "0-3,7" */
static rank_status_t parse_local(struct rk_boot *boot, const char *text)
{
    boot->local = malloc((size_t)boot->size * sizeof(int));
    if (!boot->local)
        return RANK_ERR_NO_MEMORY;
    boot->nlocal = 0;
    for (const char *p = text; *p;) {
        char *end;
        long lo = strtol(p, &end, 10), hi = lo;
        if (end == p)
            break;
        if (*end == '-') {
            p = end + 1;
            hi = strtol(p, &end, 10);
            if (end == p)
                break;
        }
        for (long r = lo; r <= hi && r >= 0 && r < boot->size && boot->nlocal < boot->size; r++)
            boot->local[boot->nlocal++] = (int)r;
        p = *end ? end + 1 : end;
    }
    qsort(boot->local, (size_t)boot->nlocal, sizeof(int), by_value);
    boot->local_index = -1;
    for (int i = 0; i < boot->nlocal; i++) {
        if (boot->local[i] == boot->rank)
            boot->local_index = i;
    }
    return boot->local_index < 0 ? RANK_ERR_BOOT : RANK_OK;
}

static rank_status_t query_local(struct pmix_boot *b)
{
    pmix_proc_t all;
    pmix_value_t *v = NULL;
    pmix_status_t rc;
    rank_status_t st;
    char self[16];

    PMIX_LOAD_PROCID(&all, b->me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &v);
    if (rc == PMIX_SUCCESS && v->type == PMIX_STRING && v->data.string) {
        st = parse_local(&b->pub, v->data.string);
        PMIX_VALUE_RELEASE(v);
        if (st == RANK_ERR_BOOT)
            rk_error("the PMIx server's list of local peers lacks this rank");
        return st;
    }
    if (rc == PMIX_SUCCESS)
        PMIX_VALUE_RELEASE(v);
    /* Not told: nobody is known to be local. */
    snprintf(self, sizeof(self), "%d", b->pub.rank);
    return parse_local(&b->pub, self);
}

/* What stands before the daemon's number in "name.number;where": the same for all hosts of a launcher. */
static void name_server(struct rk_boot *boot)
{
    static const char *const uris[] = {"PMIX_SERVER_URI2", "PMIX_SERVER_URI21", "PMIX_SERVER_URI3",
                                       "PMIX_SERVER_URI4", "PMIX_SERVER_URI41"};
    const char *uri = NULL;
    size_t len;

    for (size_t i = 0; i < RK_ARRAY_LEN(uris) && !uri; i++)
        uri = rk_env(uris[i]);
    len = uri ? strcspn(uri, ";") : 0;
    while (len > 0 && uri[len] != '.')
        len--;
    snprintf(boot->server, sizeof(boot->server), "%.*s", (int)len, uri ? uri : "");
}

/*
 * Were we started by rank_spawn? A variable says so, and is inherited by all that we start, other
 * jobs among them: so it counts only if the server names the same parent, or names none (as Open
 * MPI 4 does) and is of the same launcher.
 */
static rank_status_t find_parent(struct pmix_boot *b)
{
    const char *text = rk_env(RK_PARENT_VARIABLE);
    struct rk_boot_parent *parent;
    pmix_value_t *v = NULL;
    pmix_proc_t all;
    pmix_status_t rc;
    bool same;

    name_server(&b->pub);
    if (!text)
        return RANK_OK;
    parent = malloc(sizeof(*parent));
    if (!parent)
        return RANK_ERR_NO_MEMORY;
    PMIX_LOAD_PROCID(&all, b->me.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&all, PMIX_PARENT_ID, NULL, 0, &v);
    if (rc != PMIX_SUCCESS)
        rc = PMIx_Get(&b->me, PMIX_PARENT_ID, NULL, 0, &v);
    if (rc != PMIX_SUCCESS)
        v = NULL;
    same = rk_parent_parse(text, parent);
    if (same && v)
        same = v->type == PMIX_PROC &&
               PMIX_CHECK_NSPACE(v->data.proc->nspace, parent->root_space) &&
               v->data.proc->rank == (pmix_rank_t)parent->root_rank;
    else if (same)
        same = parent->server[0] && strcmp(parent->server, b->pub.server) == 0 &&
               !PMIX_CHECK_NSPACE(b->me.nspace, parent->root_space);
    if (v)
        PMIX_VALUE_RELEASE(v);
    if (same) {
        b->pub.parent = parent;
        return RANK_OK;
    }
    rk_debug("%s is of another job (the server's word for its parent: %s)", RK_PARENT_VARIABLE,
             PMIx_Error_string(rc));
    free(parent);
    return RANK_OK;
}

static void listen_for_deaths(struct pmix_boot *b);
static void free_given_up(struct pmix_boot *b);

rank_status_t rk_boot_open(struct rk_boot **out)
{
    struct pmix_boot *b = calloc(1, sizeof(*b));
    pmix_status_t rc;
    rank_status_t st;

    if (!b)
        return RANK_ERR_NO_MEMORY;
    pthread_mutex_init(&b->watch, NULL);
    if (gethostname(b->pub.host, sizeof(b->pub.host) - 1) < 0)
        snprintf(b->pub.host, sizeof(b->pub.host), "unknown");
    b->pub.host[strcspn(b->pub.host, ".")] = '\0';
    *out = &b->pub;
    b->spaces = rk_spaces_new();
    if (!b->spaces) {
        b->pub.alone = true; /* nothing to finalize */
        return RANK_ERR_NO_MEMORY;
    }
    if (!server_named())
        return open_alone(&b->pub);
    rc = PMIx_Init(&b->me, NULL, 0);
    if (rc == PMIX_ERR_UNREACH)
        return open_alone(&b->pub);
    if (rc != PMIX_SUCCESS) {
        b->pub.alone = true; /* nothing to finalize */
        return failed("PMIx_Init", rc);
    }
    b->pub.rank = (int)b->me.rank;
    snprintf(b->pub.job, sizeof(b->pub.job), "%s", b->me.nspace);
    st = query_size(b);
    if (!st && b->pub.size > 1)
        listen_for_deaths(b);
    if (!st)
        st = query_local(b);
    return st ? st : find_parent(b);
}

void rk_boot_close(struct rk_boot *boot)
{
    struct pmix_boot *b = of(boot);

    if (!b)
        return;
    atomic_store(&watching, NULL);
    if (!b->pub.alone) {
        pmix_status_t rc = PMIx_Finalize(NULL, 0);
        if (rc != PMIX_SUCCESS)
            rk_info("PMIx_Finalize: %s", PMIx_Error_string(rc));
        if (!PMIx_Initialized()) /* else the program uses it, too, and its thread goes on */
            free_given_up(b);
    }
    pthread_mutex_destroy(&b->watch);
    rk_spaces_free(b->spaces);
    free(b->pub.parent);
    free(b->pub.local);
    free(b);
}

/* ------------------------------------------------------------------- deaths */

static void pass_on(int number, void *arg)
{
    struct pmix_boot *b = arg;

    pthread_mutex_lock(&b->watch);
    if (b->death_fn)
        b->death_fn(number, b->death_arg);
    pthread_mutex_unlock(&b->watch);
}

/* Whom an event is about. */
static const pmix_proc_t *affected(const pmix_proc_t *source, const pmix_info_t info[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC)
            return info[i].value.data.proc;
    }
    return source;
}

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    struct pmix_boot *b = atomic_load(&watching);
    const pmix_proc_t *who = affected(source, info, ninfo);

    (void)id;
    (void)code;
    (void)results;
    (void)nresults;
    if (b && who && PMIX_CHECK_NSPACE(who->nspace, b->me.nspace)) {
        atomic_fetch_add(&b->deaths, 1);
        pass_on(who->rank < (pmix_rank_t)b->pub.size ? (int)who->rank : -1, b);
    } else if (b && who) {
        rk_spaces_ended(b->spaces, who->nspace, who->rank > INT_MAX ? RK_SPACE_ALL : (int)who->rank,
                        pass_on, b);
    }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

/* A job has ended, in whatever way; our own is no news. */
static void on_job_event(size_t id, pmix_status_t code, const pmix_proc_t *source,
                         pmix_info_t info[], size_t ninfo, pmix_info_t results[], size_t nresults,
                         pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    struct pmix_boot *b = atomic_load(&watching);
    const pmix_proc_t *who = affected(source, info, ninfo);

    (void)id;
    (void)code;
    (void)results;
    (void)nresults;
    if (b && who && !PMIX_CHECK_NSPACE(who->nspace, b->me.nspace))
        rk_spaces_ended(b->spaces, who->nspace, RK_SPACE_ALL, pass_on, b);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

static pmix_status_t death_codes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_TERM_WO_SYNC,
                                      PMIX_ERR_PROC_ABORTING};

/* Hear of deaths from before the first fence on: a rank that dies in it must not hold the others. */
static void listen_for_deaths(struct pmix_boot *b)
{
    pmix_status_t rc;

    atomic_store(&watching, b);
    b->hearing_deaths = true;
    rc = PMIx_Register_event_handler(death_codes, RK_ARRAY_LEN(death_codes), NULL, 0, on_event,
                                     NULL, NULL);
    /* Without a callback the call blocks and returns the handler's number. */
    if (rc < 0)
        rk_info("the PMIx server reports no deaths (%s)", PMIx_Error_string(rc));
}

rank_status_t rk_boot_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg)
{
    struct pmix_boot *b = of(boot);

    pthread_mutex_lock(&b->watch);
    b->death_fn = fn;
    b->death_arg = arg;
    pthread_mutex_unlock(&b->watch);
    return RANK_OK;
}

static void registered(pmix_status_t rc, size_t id, void *what)
{
    (void)id;
    if (rc != PMIX_SUCCESS)
        rk_info("the PMIx server reports no %s (%s)", (const char *)what, PMIx_Error_string(rc));
}

rank_status_t rk_boot_hear_jobs(struct rk_boot *boot)
{
    static pmix_status_t job_codes[] = {PMIX_EVENT_JOB_END,        PMIX_ERR_JOB_ABORTED,
                                        PMIX_ERR_JOB_ABORTED_BY_SIG, PMIX_ERR_JOB_TERM_WO_SYNC,
                                        PMIX_ERR_JOB_NON_ZERO_TERM, PMIX_ERR_JOB_KILLED_BY_CMD};
    static char deaths[] = "deaths", ends[] = "ends of jobs";
    struct pmix_boot *b = of(boot);

    atomic_store(&watching, b);
    if (!b->hearing_deaths)
        PMIx_Register_event_handler(death_codes, RK_ARRAY_LEN(death_codes), NULL, 0, on_event,
                                    registered, deaths);
    b->hearing_deaths = true;
    if (!b->hearing_jobs)
        PMIx_Register_event_handler(job_codes, RK_ARRAY_LEN(job_codes), NULL, 0, on_job_event,
                                    registered, ends);
    b->hearing_jobs = true;
    return RANK_OK;
}

rank_status_t rk_boot_name_job(struct rk_boot *boot, const char *space, int first, int size)
{
    return rk_spaces_name(of(boot)->spaces, space, first, size, pass_on, of(boot));
}

/* ------------------------------------------------------------------- answers */

/*
 * How long an answer may still come once a member is known to have died. A
 * server need not answer then: a fence stays open (4.2.2), a card of one who
 * never committed is waited for (4.1.2). Before all have met a death ends the
 * start of them all anyway; later it may be of no concern for what is asked.
 */
enum { GRACE_MS = 300, GRACE_MET_MS = 5000, LOOK_MS = 20 };

/* Belongs to the one who waits. One that did not come in time is kept until PMIx is gone, which
 * drops open requests without a word. */
struct answer {
    struct answer *next;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    pmix_status_t rc;
    void *bytes; /* of a card; NULL if it is none of ours */
    size_t size;
};

static struct answer *answer_new(void)
{
    struct answer *a = calloc(1, sizeof(*a));

    if (a) {
        pthread_mutex_init(&a->lock, NULL);
        pthread_cond_init(&a->over, NULL);
    }
    return a;
}

static void answer_free(struct answer *a)
{
    pthread_cond_destroy(&a->over);
    pthread_mutex_destroy(&a->lock);
    free(a->bytes);
    free(a);
}

static void free_given_up(struct pmix_boot *b)
{
    while (b->given_up) {
        struct answer *a = b->given_up;
        b->given_up = a->next;
        answer_free(a);
    }
}

static void answered(pmix_status_t rc, void *arg)
{
    struct answer *a = arg;

    pthread_mutex_lock(&a->lock);
    a->rc = rc;
    a->done = true;
    pthread_cond_signal(&a->over);
    pthread_mutex_unlock(&a->lock);
}

static void card_answered(pmix_status_t rc, pmix_value_t *v, void *arg)
{
    struct answer *a = arg;

    if (rc == PMIX_SUCCESS && v && v->type == PMIX_BYTE_OBJECT) {
        a->bytes = malloc(v->data.bo.size + 1);
        if (a->bytes)
            memcpy(a->bytes, v->data.bo.bytes, v->data.bo.size);
        else
            rc = PMIX_ERR_NOMEM;
        a->size = v->data.bo.size;
    }
    answered(rc, a);
}

/* Wait for it: true if it came, and then it is the caller's to free. */
static bool answer_wait(struct pmix_boot *b, struct answer *a, int grace)
{
    int since_death = 0;
    struct timespec until;
    bool came;

    pthread_mutex_lock(&a->lock);
    while (!a->done && since_death < grace) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&a->over, &a->lock, &until) && atomic_load(&b->deaths))
            since_death += LOOK_MS;
    }
    came = a->done;
    pthread_mutex_unlock(&a->lock);
    if (!came) {
        a->next = b->given_up;
        b->given_up = a;
    }
    return came;
}

/* -------------------------------------------------------------------- cards */

rank_status_t rk_boot_put(struct rk_boot *boot, const char *key, const void *data, size_t len)
{
    pmix_value_t v;
    pmix_status_t rc;

    if (boot->alone)
        return RANK_OK;
    memset(&v, 0, sizeof(v));
    v.type = PMIX_BYTE_OBJECT;
    v.data.bo.bytes = (char *)(uintptr_t)data; /* PMIx copies */
    v.data.bo.size = len;
    rc = PMIx_Put(PMIX_GLOBAL, key, &v);
    return rc == PMIX_SUCCESS ? RANK_OK : failed("PMIx_Put", rc);
}

rank_status_t rk_boot_commit(struct rk_boot *boot)
{
    pmix_status_t rc;

    if (boot->alone)
        return RANK_OK;
    rc = PMIx_Commit();
    return rc == PMIX_SUCCESS ? RANK_OK : failed("PMIx_Commit", rc);
}

/* Ask once. PMIX_ERR_TIMEOUT: a rank died and no answer came. Else *out is the caller's. */
static pmix_status_t ask_for_card(struct pmix_boot *b, const pmix_proc_t *who, const char *key,
                                  struct answer **out)
{
    struct answer *a = answer_new();
    pmix_status_t rc;

    if (!a)
        return PMIX_ERR_NOMEM;
    rc = PMIx_Get_nb(who, key, NULL, 0, card_answered, a);
    if (rc == PMIX_SUCCESS) {
        if (!answer_wait(b, a, b->met ? GRACE_MET_MS : GRACE_MS))
            return PMIX_ERR_TIMEOUT;
        rc = a->rc;
    }
    if (rc == PMIX_SUCCESS)
        *out = a;
    else
        answer_free(a);
    return rc;
}

/* A request that crosses with the commit of what it asks for is sometimes answered "not found" by
 * the server (4.2.2). Until all have met that can only mean "not yet". */
static pmix_status_t get_card(struct pmix_boot *b, const pmix_proc_t *who, const char *key,
                              struct answer **out)
{
    const struct timespec pause = {0, CARD_PAUSE_NS};
    pmix_status_t rc = ask_for_card(b, who, key, out);

    for (int i = 0; rc == PMIX_ERR_NOT_FOUND && !b->met && i < CARD_TRIES; i++) {
        nanosleep(&pause, NULL);
        rc = ask_for_card(b, who, key, out);
    }
    return rc;
}

rank_status_t rk_boot_get(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len)
{
    pmix_proc_t who;
    struct answer *a;
    pmix_status_t rc;
    rank_status_t st = RANK_OK;

    if (boot->alone)
        return RANK_ERR_UNREACHABLE;
    PMIX_LOAD_PROCID(&who, of(boot)->me.nspace, (pmix_rank_t)rank);
    rc = get_card(of(boot), &who, key, &a);
    if (rc == PMIX_ERR_TIMEOUT) {
        rk_error("a rank died, and the PMIx server does not tell how to reach rank %d", rank);
        return RANK_ERR_PEER_DEAD;
    }
    if (rc != PMIX_SUCCESS) {
        rk_debug("no card %s of rank %d: %s", key, rank, PMIx_Error_string(rc));
        return RANK_ERR_UNREACHABLE;
    }
    if (!a->bytes || a->size > *len) {
        rk_error("the card %s of rank %d is not of this version", key, rank);
        st = RANK_ERR_BOOT;
    } else {
        memcpy(data, a->bytes, a->size);
        *len = a->size;
    }
    answer_free(a);
    return st;
}

/* ------------------------------------------------------------------- fences */

rank_status_t rk_boot_fence(struct rk_boot *boot)
{
    struct answer *a;
    pmix_status_t rc;

    if (boot->alone)
        return RANK_OK;
    a = answer_new();
    if (!a)
        return RANK_ERR_NO_MEMORY;
    rc = PMIx_Fence_nb(NULL, 0, NULL, 0, answered, a);
    if (rc == PMIX_SUCCESS) {
        if (!answer_wait(of(boot), a, GRACE_MS)) {
            rk_error("a rank died before all had met");
            return RANK_ERR_PEER_DEAD;
        }
        rc = a->rc;
    } else if (rc == PMIX_OPERATION_SUCCEEDED) {
        rc = PMIX_SUCCESS;
    }
    answer_free(a);
    if (rc != PMIX_SUCCESS)
        return failed("the PMIx fence", rc);
    of(boot)->met = true;
    return RANK_OK;
}

void rk_boot_abort(struct rk_boot *boot, int code, const char *text)
{
    if (!boot->alone)
        PMIx_Abort(code, text, NULL, 0);
}
