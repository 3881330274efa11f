/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpm_client.c: publish, connect and spawn as a plain PMIx client.
 *
 * dpm_client MODE [NUMBER]. Prints "ok" from each rank that ended as
 * the mode expects; what a spawned job does is a mode too.
 */
#include "client_common.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define S 20 /* seconds after which a wait has failed */
#define COMPUTE_MS 2000

static const char *self;

static void want(const char *what, pmix_status_t rc, pmix_status_t wanted)
{
    if (rc == wanted)
        return;
    fprintf(stderr, "rank %u of %s: %s: %s, not %s\n", me.rank, me.nspace, what, PMIx_Error_string(rc),
            PMIx_Error_string(wanted));
    exit(9);
}

static uint32_t size_of(const char *nspace)
{
    pmix_proc_t job;

    PMIX_LOAD_PROCID(&job, nspace, PMIX_RANK_WILDCARD);
    return get_u32(&job, PMIX_JOB_SIZE);
}

/* ------------------------------------------------------------------------- names */

static pmix_status_t publish(const char *key, const char *value, pmix_data_range_t range,
                             pmix_persistence_t keep)
{
    pmix_info_t info[3];
    pmix_status_t rc;

    PMIX_INFO_LOAD(&info[0], key, value, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&info[2], PMIX_PERSISTENCE, &keep, PMIX_PERSIST);
    rc = PMIx_Publish(info, 3);
    PMIX_INFO_DESTRUCT(&info[0]);
    return rc;
}

/* wait_s: 0: not at all. value NULL: whatever it is. */
static pmix_status_t look_up(const char *key, const char *value, int wait_s)
{
    pmix_info_t info[2];
    pmix_status_t rc;
    pmix_pdata_t data;
    int every = 0;

    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, key);
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &every, PMIX_INT);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &wait_s, PMIX_INT);
    rc = PMIx_Lookup(&data, 1, info, wait_s ? 2 : 0);
    if (rc == PMIX_SUCCESS && value &&
        (data.value.type != PMIX_STRING || strcmp(data.value.data.string, value) != 0)) {
        fprintf(stderr, "rank %u: what is published as %s is wrong\n", me.rank, key);
        exit(9);
    }
    PMIX_PDATA_DESTRUCT(&data);
    return rc;
}

static void names(void)
{
    char *keys[] = {(char *)(uintptr_t) "one", NULL};
    uint32_t number = 4711;
    pmix_info_t info;
    pmix_pdata_t data[2];
    bool first = me.rank == 0;

    if (!first)
        need("a look-up that waits", look_up("one", "value of one", S));
    need("PMIx_Fence", fence()); /* a rank that still waits would never call it */
    want("nothing is there", look_up("other", NULL, 0), PMIX_ERR_NOT_FOUND);
    want("nothing comes", look_up("other", NULL, 1), PMIX_ERR_TIMEOUT);
    need("PMIx_Fence", fence());
    if (first) {
        PMIX_INFO_LOAD(&info, "number", &number, PMIX_UINT32);
        need("PMIx_Publish", PMIx_Publish(&info, 1));
        want("the same name twice", publish("one", "x", PMIX_RANGE_SESSION, PMIX_PERSIST_APP),
             PMIX_ERR_DUPLICATE_KEY);
        need("for this process", publish("mine", "m", PMIX_RANGE_PROC_LOCAL, PMIX_PERSIST_PROC));
        need("for one reader", publish("once", "o", PMIX_RANGE_NAMESPACE, PMIX_PERSIST_FIRST_READ));
    }
    need("PMIx_Fence", fence());
    want("what is for its process", look_up("mine", "m", 0), first ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND);
    if (me.rank == size - 1) {
        need("what is for one reader", look_up("once", "o", 0));
        want("a second time", look_up("once", "o", 0), PMIX_ERR_NOT_FOUND);
    }
    PMIX_PDATA_CONSTRUCT(&data[0]);
    PMIX_PDATA_CONSTRUCT(&data[1]);
    PMIX_LOAD_KEY(data[0].key, "one");
    PMIX_LOAD_KEY(data[1].key, "number");
    need("two at once", PMIx_Lookup(data, 2, NULL, 0));
    if (data[1].value.type != PMIX_UINT32 || data[1].value.data.uint32 != number ||
        data[1].proc.rank != 0 || !PMIX_CHECK_NSPACE(data[1].proc.nspace, me.nspace))
        need("a number", PMIX_ERR_TYPE_MISMATCH);
    need("PMIx_Fence", fence());
    if (first)
        need("PMIx_Unpublish", PMIx_Unpublish(keys, NULL, 0));
    need("PMIx_Fence", fence());
    want("what is no more published", look_up("one", NULL, 0), PMIX_ERR_NOT_FOUND);
    need("the other is", look_up("number", NULL, 0));
    need("PMIx_Fence", fence());
}

/* Names of a process that has died are gone; a process that died waiting is no harm. */
static void names_of_dead(uint32_t owner)
{
    if (me.rank == owner) {
        need("PMIx_Publish", publish("name of the dead", "x", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
        need("PMIx_Publish", publish("ready", "x", PMIX_RANGE_SESSION, PMIX_PERSIST_INDEF));
        if (fork() == 0) { /* kills its parent, most likely while that waits */
            usleep(100000);
            kill(getppid(), SIGKILL);
            _exit(0);
        }
        look_up("what never comes", NULL, S);
    }
    if (look_up("ready", NULL, S) == PMIX_SUCCESS)
        while (look_up("ready", NULL, 0) == PMIX_SUCCESS)
            ;
    want("the name of a dead process", look_up("name of the dead", NULL, 0), PMIX_ERR_NOT_FOUND);
}

/* ----------------------------------------------------------------------- connect */

static void connect_one_job(void)
{
    pmix_proc_t two[2];

    need("PMIx_Connect", PMIx_Connect(&all, 1, NULL, 0));
    need("PMIx_Disconnect", PMIx_Disconnect(&all, 1, NULL, 0));
    if (size < 2 || me.rank > 1)
        return;
    PMIX_LOAD_PROCID(&two[0], me.nspace, 1);
    PMIX_LOAD_PROCID(&two[1], me.nspace, 0);
    for (int i = 0; i < 3; i++) {
        need("PMIx_Connect of two", PMIx_Connect(two, 2, NULL, 0));
        need("PMIx_Disconnect of two", PMIx_Disconnect(two, 2, NULL, 0));
    }
}

static void connect_without(uint32_t owner)
{
    if (me.rank == owner)
        kill(getpid(), SIGKILL);
    /* Its death may not be reported yet, but will be soon. */
    while (PMIx_Connect(&all, 1, NULL, 0) == PMIX_SUCCESS)
        ;
}

/* ------------------------------------------------------------------------- spawn */

static void put_card(void)
{
    char text[400];
    pmix_value_t v;

    snprintf(text, sizeof(text), "card of %u of %s", me.rank, me.nspace);
    memset(&v, 0, sizeof(v));
    v.type = PMIX_STRING;
    v.data.string = text;
    need("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "card", &v));
    need("PMIx_Commit", PMIx_Commit());
}

static void check_cards(const char *nspace, uint32_t n)
{
    char text[400];
    pmix_value_t *v;
    pmix_proc_t p;

    for (uint32_t i = 0; i < n; i++) {
        PMIX_LOAD_PROCID(&p, nspace, i);
        need("a card of another job", PMIx_Get(&p, "card", NULL, 0, &v));
        snprintf(text, sizeof(text), "card of %u of %s", i, nspace);
        if (v->type != PMIX_STRING || strcmp(v->data.string, text) != 0)
            need("a wrong card of another job", PMIX_ERROR);
        PMIX_VALUE_RELEASE(v);
    }
}

/* RK_MAPBY: the policy for where its ranks run. */
static pmix_status_t spawn(const char *program, const char *mode, int n, char *nspace)
{
    const char *policy = getenv("RK_MAPBY");
    pmix_app_t app;
    pmix_info_t info;
    pmix_status_t rc;
    char dir[4096];

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = strdup(program);
    app.argv = calloc(3, sizeof(*app.argv));
    app.argv[0] = strdup(program);
    app.argv[1] = strdup(mode);
    app.env = calloc(2, sizeof(*app.env));
    app.env[0] = strdup("RK_TOLD=by the parent");
    app.cwd = strdup(getcwd(dir, sizeof(dir)) ? dir : "/");
    app.maxprocs = n;
    PMIX_INFO_LOAD(&info, PMIX_MAPBY, policy ? policy : "", PMIX_STRING);
    rc = PMIx_Spawn(policy ? &info : NULL, policy ? 1 : 0, &app, 1, nspace);
    PMIX_INFO_DESTRUCT(&info);
    PMIX_APP_DESTRUCT(&app);
    return rc;
}

/* On these hosts, as many ranks as there are. */
static pmix_status_t spawn_on(char *hosts, int n, char *nspace)
{
    char *argv[] = {(char *)(uintptr_t)self, (char *)(uintptr_t) "child-alone", NULL};
    pmix_app_t app;
    pmix_info_t info;
    pmix_status_t rc;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = argv[0];
    app.argv = argv;
    app.maxprocs = n;
    PMIX_INFO_LOAD(&info, PMIX_HOST, hosts, PMIX_STRING);
    rc = PMIx_Spawn(&info, 1, &app, 1, nspace);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

/* Parents and children, all of both. */
static void meet(const char *other, uint32_t n, bool parent)
{
    pmix_proc_t both[2];

    PMIX_LOAD_PROCID(&both[parent ? 0 : 1], me.nspace, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&both[parent ? 1 : 0], other, PMIX_RANK_WILDCARD);
    need("PMIx_Connect of two jobs", PMIx_Connect(both, 2, NULL, 0));
    if (size_of(other) != n && n)
        need("the size of the other job", PMIX_ERROR);
    check_cards(other, size_of(other));
    need("PMIx_Fence of two jobs", PMIx_Fence(both, 2, NULL, 0));
    need("PMIx_Disconnect of two jobs", PMIx_Disconnect(both, 2, NULL, 0));
}

/* Rank 0 spawns and publishes that for the others. */
static void parent_of(const char *mode, int n, char *child)
{
    pmix_info_t info;
    pmix_pdata_t data;
    pmix_status_t rc;
    int wait_s = S;

    put_card();
    if (me.rank == 0) {
        need("PMIx_Spawn", spawn(self, mode, n, child));
        PMIX_INFO_LOAD(&info, "the child", child, PMIX_STRING);
        need("PMIx_Publish", PMIx_Publish(&info, 1));
        PMIX_INFO_DESTRUCT(&info);
        return;
    }
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, "the child");
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &wait_s, PMIX_INT);
    rc = PMIx_Lookup(&data, 1, &info, 1);
    need("the child's name", rc);
    PMIX_LOAD_NSPACE(child, data.value.data.string);
    PMIX_PDATA_DESTRUCT(&data);
}

static void parent_nspace(char *out)
{
    pmix_value_t *v;

    need("PMIX_PARENT_ID", PMIx_Get(&me, PMIX_PARENT_ID, NULL, 0, &v));
    if (v->data.proc->rank != 0)
        need("the parent's rank", PMIX_ERROR);
    PMIX_LOAD_NSPACE(out, v->data.proc->nspace);
    PMIX_VALUE_RELEASE(v);
}

static void child(void)
{
    const char *reported = getenv("RK_TOLD");
    pmix_nspace_t parent;

    if (!reported || strcmp(reported, "by the parent") != 0)
        need("the variable from the parent", PMIX_ERROR);
    put_card();
    parent_nspace(parent);
    size_of(parent); /* known before they are connected */
    meet(parent, 0, false);
}

/* ------------------------------------------------------------------- time-outs */

enum { CONNECT, FENCE, DISCONNECT };

/* s: 0 for none */
static pmix_status_t together(int what, const pmix_proc_t *procs, int s)
{
    pmix_info_t info;
    size_t n = s ? 1 : 0;

    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &s, PMIX_INT);
    return what == CONNECT ? PMIx_Connect(procs, 2, &info, n)
           : what == FENCE ? PMIx_Fence(procs, 2, &info, n)
                           : PMIx_Disconnect(procs, 2, &info, n);
}

/* The other job comes when the parent's time is over, and gets that by a name; then the parent comes again. */
static void come_late(bool parent)
{
    static const char *const go[] = {"go connect", "go fence", "go disconnect"};
    pmix_proc_t both[2];
    pmix_nspace_t other = "";

    if (parent)
        parent_of("late", 1, other);
    else
        parent_nspace(other);
    PMIX_LOAD_PROCID(&both[0], me.nspace, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&both[1], other, PMIX_RANK_WILDCARD);
    for (int what = CONNECT; what <= DISCONNECT; what++) {
        if (!parent) {
            need("to be told", look_up(go[what], "x", S));
        } else if (what == CONNECT && size > 1) {
            want("with two clients of a host", together(what, both, 1), PMIX_ERR_NOT_SUPPORTED);
            usleep(1500000); /* libpmix's server would be stuck then */
            fence();
        } else {
            for (int i = 0; i < 2; i++)
                want("no other rank comes", together(what, both, 1), PMIX_ERR_TIMEOUT);
        }
        if (parent && me.rank == 0)
            need("PMIx_Publish", publish(go[what], "x", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
        need("once more", together(what, both, what == CONNECT && size > 1 ? 0 : S));
    }
}

/* A job that is not there is no job, however often and by how many it is queried, and whatever else is wanted of it. */
static void ask_unknown(void)
{
    pmix_proc_t both[2], no_rank;
    pmix_value_t *v;
    pmix_info_t info;
    int s = S;

    PMIX_LOAD_PROCID(&no_rank, "no-such-job", 0);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &s, PMIX_INT);
    for (int i = 0; i < 100; i++) {
        no_rank.rank = (pmix_rank_t)i % 3;
        want("a card of no job", PMIx_Get(&no_rank, "card", &info, 1, &v), PMIX_ERR_NOT_FOUND);
    }
    need("PMIx_Fence", fence());
    if (me.rank == 0) {
        both[0] = me;
        PMIX_LOAD_PROCID(&both[1], "no-such-job", 0);
        want("to connect with it", together(CONNECT, both, S), PMIX_ERR_NOT_FOUND);
        want("to fence with it", together(FENCE, both, S), PMIX_ERR_NOT_FOUND);
    }
    need("PMIx_Fence", fence());
}

/* ------------------------------------------------------------------------- ends */

static volatile int heard;
static pmix_nspace_t ended_proc;

static void on_end(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                   pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    (void)id;
    (void)code;
    (void)info;
    (void)ninfo;
    (void)results;
    (void)nresults;
    if (PMIX_CHECK_NSPACE(source->nspace, ended_proc))
        heard = 1;
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

/* A client that registers for an event after its arrival may miss it in libpmix; so the parent waits for the registration. */
static void ready_for_events(uint32_t n, bool parent)
{
    char key[32];

    for (uint32_t i = parent ? 0 : n; i < n + !parent; i++) {
        snprintf(key, sizeof(key), "ready to hear %u", i);
        if (parent)
            need("a child that is ready", look_up(key, "x", S));
        else
            need("PMIx_Publish", publish(key, "x", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
    }
}

/* The parent's job ends, as any other. */
static void wait_for_end_event(void)
{
    pmix_status_t code = PMIX_EVENT_JOB_END;
    pmix_status_t rc;

    parent_nspace(ended_proc);
    rc = PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, NULL, NULL);
    if (rc < 0)
        need("PMIx_Register_event_handler", rc);
    ready_for_events(me.rank, false);
    for (int i = 0; i < S * 1000 && !heard; i++)
        usleep(1000);
    want("the end of the parent's job", heard ? PMIX_SUCCESS : PMIX_ERR_TIMEOUT, PMIX_SUCCESS);
}

/* ------------------------------------------------------------------------ events */

#define OUR_EVENT (PMIX_EXTERNAL_ERR_BASE - 42)

/* What is raised, in this order: 1 to 7 by rank 0 of the first job, the last by that of job a, which has got 7. SOME: the last of
 * job a and the first of job b. */
enum { NAMESPACE = 1, LOCAL, CUSTOM_A, SESSION, CUSTOM_B0, SOME, GLOBAL, BACK };

static pmix_nspace_t first_job, job_a;
static char heard_all[32]; /* digits */
static _Atomic int nheard;

static void on_raised(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                      pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    int n = nheard;

    (void)id;
    (void)code;
    (void)results;
    (void)nresults;
    for (size_t i = 0; i < ninfo; i++) {
        bool from_a = source->rank == 0 && PMIX_CHECK_NSPACE(source->nspace, job_a);
        bool from_first = source->rank == 0 && PMIX_CHECK_NSPACE(source->nspace, first_job);
        uint32_t number = info[i].value.data.uint32;
        bool own = source->rank == me.rank && PMIX_CHECK_NSPACE(source->nspace, me.nspace); /* libpmix may deliver it */
        if (own || !PMIX_CHECK_KEY(&info[i], "our.number") || n + 1 >= (int)sizeof(heard_all))
            continue;
        heard_all[n] = (char)((number == BACK ? from_a : from_first) ? '0' + (int)number : '?');
        nheard = n + 1;
    }
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

/* to: for PMIX_RANGE_CUSTOM, one process or several. */
static void raise_event(uint32_t number, pmix_data_range_t range, const pmix_proc_t *to, size_t n)
{
    pmix_data_array_t array = {.type = PMIX_PROC, .size = n, .array = (void *)(uintptr_t)to};
    pmix_info_t info[2];
    pmix_status_t rc;

    PMIX_INFO_LOAD(&info[0], "our.number", &number, PMIX_UINT32);
    if (n == 1)
        PMIX_INFO_LOAD(&info[1], PMIX_EVENT_CUSTOM_RANGE, to, PMIX_PROC);
    else if (n > 1)
        PMIX_INFO_LOAD(&info[1], PMIX_EVENT_CUSTOM_RANGE, &array, PMIX_DATA_ARRAY);
    rc = PMIx_Notify_event(OUR_EVENT, &me, range, info, n ? 2 : 1, NULL, NULL);
    if (rc != PMIX_OPERATION_SUCCEEDED)
        need("PMIx_Notify_event", rc);
}

static void wait_for_event(char last)
{
    for (int i = 0; i < S * 1000 && (!nheard || heard_all[nheard - 1] != last); i++)
        usleep(1000);
}

static void look_up_name(const char *key, char *nspace)
{
    int wait_s = S;
    pmix_info_t info;
    pmix_pdata_t data;

    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, key);
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &wait_s, PMIX_INT);
    need(key, PMIx_Lookup(&data, 1, &info, 1));
    PMIX_LOAD_NSPACE(nspace, data.value.data.string);
    PMIX_PDATA_DESTRUCT(&data);
}

/* Check which events three jobs get; the first spawned the two others with n ranks each. The last event ends the wait. */
static void events(char which, uint32_t n)
{
    static const char *const of[] = {"p", "a", "b"};
    char key[48], wanted[16];
    pmix_nspace_t job_b = "";
    pmix_proc_t all_of_a, some[2];
    pmix_status_t code = OUR_EVENT, rc;

    if (which == 'p' && me.rank == 0) {
        need("PMIx_Spawn", spawn(self, "events-a", (int)n, job_a));
        need("PMIx_Spawn", spawn(self, "events-b", (int)n, job_b));
        need("PMIx_Publish", publish("the first", me.nspace, PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
        need("PMIx_Publish", publish("job a", job_a, PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
    }
    look_up_name("the first", first_job);
    look_up_name("job a", job_a);
    rc = PMIx_Register_event_handler(&code, 1, NULL, 0, on_raised, NULL, NULL);
    if (rc < 0)
        need("PMIx_Register_event_handler", rc);
    snprintf(key, sizeof(key), "%c%u hears", which, me.rank);
    need("PMIx_Publish", publish(key, "x", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
    if (which == 'p' && me.rank == 0) {
        for (int job = 0; job < 3; job++) {
            for (uint32_t i = 0; i < (job ? n : size); i++) {
                snprintf(key, sizeof(key), "%s%u hears", of[job], i);
                need(key, look_up(key, "x", S));
            }
        }
        PMIX_LOAD_PROCID(&all_of_a, job_a, PMIX_RANK_WILDCARD);
        PMIX_LOAD_PROCID(&some[0], job_a, n - 1);
        PMIX_LOAD_PROCID(&some[1], job_b, 0);
        raise_event(NAMESPACE, PMIX_RANGE_NAMESPACE, NULL, 0);
        raise_event(LOCAL, PMIX_RANGE_LOCAL, NULL, 0);
        raise_event(CUSTOM_A, PMIX_RANGE_CUSTOM, &all_of_a, 1);
        raise_event(SESSION, PMIX_RANGE_SESSION, NULL, 0);
        raise_event(CUSTOM_B0, PMIX_RANGE_CUSTOM, &some[1], 1);
        raise_event(SOME, PMIX_RANGE_CUSTOM, some, 2);
        raise_event(GLOBAL, PMIX_RANGE_GLOBAL, NULL, 0);
    }
    if (which == 'a' && me.rank == 0) {
        wait_for_event('0' + GLOBAL);
        raise_event(BACK, PMIX_RANGE_SESSION, NULL, 0);
        strcpy(wanted, size == 1 ? "3467" : "347");
    } else {
        wait_for_event('0' + BACK);
        strcpy(wanted, which == 'a' ? (me.rank == size - 1 ? "34678" : "3478")
                       : which == 'b' ? (me.rank == 0 ? "45678" : "478")
                                      : (me.rank == 0 ? "8" : "1478"));
    }
    /* Whether one of the first job gets what is for its host depends on where it is. */
    if (which == 'p' && me.rank != 0 && strcmp(heard_all, "12478") == 0)
        strcpy(wanted, "12478");
    if (strcmp(heard_all, wanted) != 0) {
        fprintf(stderr, "rank %u of job %c has got '%s', not '%s'\n", me.rank, which, heard_all, wanted);
        exit(9);
    }
    need("PMIx_Fence", fence());
}

static void wait_for_end(void)
{
    for (;;)
        pause();
}

static void compute(unsigned ms)
{
    struct timespec from, now;

    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < (long)ms);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    uint32_t number = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    pmix_nspace_t other = "";

    self = argv[0];
    start();
    if (strcmp(mode, "names") == 0) {
        if (me.rank == 0 && size > 1)
            usleep(100000); /* so that the others do wait; nothing depends on it */
        if (me.rank == 0)
            need("PMIx_Publish", publish("one", "value of one", PMIX_RANGE_SESSION, PMIX_PERSIST_APP));
        names();
    } else if (strcmp(mode, "names-of-dead") == 0) {
        names_of_dead(number);
    } else if (strcmp(mode, "connect") == 0) {
        connect_one_job();
    } else if (strcmp(mode, "unknown") == 0) {
        ask_unknown();
    } else if (strcmp(mode, "connect-without") == 0) {
        connect_without(number);
    } else if (strcmp(mode, "spawn") == 0) {
        parent_of("child", (int)number, other);
        meet(other, number, true);
    } else if (strcmp(mode, "spawn-computing") == 0) { /* the others wait to be connected with */
        parent_of("child-computes", (int)number, other);
        meet(other, number, true);
    } else if (strcmp(mode, "child-computes") == 0) {
        compute(COMPUTE_MS);
        child();
    } else if (strcmp(mode, "spawn-compute") == 0) {
        parent_of("child", (int)number, other);
        compute(COMPUTE_MS);
        meet(other, number, true);
    } else if (strcmp(mode, "spawn-leave") == 0) {
        parent_of("wait", (int)number, other);
    } else if (strcmp(mode, "spawn-twice") == 0) {
        pmix_nspace_t second = "";
        if (me.rank == 0) {
            put_card();
            need("PMIx_Spawn", spawn(self, "child-alone", (int)number, other));
            need("PMIx_Spawn", spawn(self, "child-alone", (int)number, second));
            if (strcmp(other, second) == 0)
                need("two names", PMIX_ERROR);
        }
    } else if (strcmp(mode, "grandparent") == 0) {
        parent_of("middle", (int)number, other);
        meet(other, number, true);
    } else if (strcmp(mode, "middle") == 0) {
        put_card();
        parent_nspace(other);
        meet(other, 0, false);
        if (me.rank == 0)
            need("PMIx_Spawn by a child", spawn(self, "child-alone", 2, other));
    } else if (strcmp(mode, "spawn-nothing") == 0) {
        want("a program that is not there", spawn("/nowhere/nothing", "x", 2, other), PMIX_ERR_JOB_EXE_NOT_FOUND);
        need("PMIx_Fence", fence());
    } else if (strcmp(mode, "spawn-dies") == 0) {
        pmix_proc_t both[2];
        parent_of("child-dies", (int)number, other);
        PMIX_LOAD_PROCID(&both[0], me.nspace, PMIX_RANK_WILDCARD);
        PMIX_LOAD_PROCID(&both[1], other, PMIX_RANK_WILDCARD);
        if (PMIx_Connect(both, 2, NULL, 0) == PMIX_SUCCESS)
            want("connected with dead processes", PMIX_SUCCESS, PMIX_ERR_LOST_CONNECTION);
    } else if (strcmp(mode, "spawn-wait") == 0 || strcmp(mode, "spawn-fail") == 0) {
        parent_of(strcmp(mode, "spawn-wait") == 0 ? "wait" : "child-fails", (int)number, other);
        printf("ready\n");
        fflush(stdout);
        wait_for_end();
    } else if (strcmp(mode, "spawn-go") == 0) {
        parent_of("child-late", (int)number, other);
    } else if (strcmp(mode, "child-late") == 0) {
        /* Until the parents have ended, and what they published has gone with them: xrun has not. */
        while (look_up("the child", NULL, 0) == PMIX_SUCCESS)
            ;
        printf("late\n");
    } else if (strcmp(mode, "spawn-late") == 0) {
        come_late(true);
    } else if (strcmp(mode, "late") == 0) {
        come_late(false);
    } else if (strcmp(mode, "spawn-orphan") == 0) {
        parent_of("orphan", (int)number, other);
        ready_for_events(number, true);
    } else if (strcmp(mode, "orphan") == 0) {
        wait_for_end_event();
    } else if (strcmp(mode, "events") == 0) {
        events('p', number);
    } else if (strcmp(mode, "events-a") == 0 || strcmp(mode, "events-b") == 0) {
        events(mode[7], 0);
    } else if (strcmp(mode, "spawn-on") == 0 && argc > 3) {
        need("PMIx_Spawn", spawn_on(argv[3], (int)number, other));
        printf("spawned\n");
        fflush(stdout);
    } else if (strcmp(mode, "spawn-many") == 0) {
        for (uint32_t i = 0; i < number; i++)
            need("PMIx_Spawn", spawn("true", "x", 1, other));
    } else if (strcmp(mode, "spawn-crowd") == 0) {
        parent_of("crowd", 1, other);
    } else if (strcmp(mode, "crowd") == 0) {
        printf("yield: %s\n", getenv("OMPI_MCA_mpi_yield_when_idle") ? "yes" : "no");
    } else if (strcmp(mode, "spawn-lines") == 0 || strcmp(mode, "lines") == 0) {
        bool parent = strcmp(mode, "lines") != 0;
        if (parent)
            parent_of("lines", (int)number, other);
        for (int i = 0; i < 5000; i++)
            printf("<%s %u says that this is line number %d of its own, and that it is whole>\n",
                   parent ? "parent" : "child", me.rank, i);
    } else if (strcmp(mode, "child") == 0) {
        child();
    } else if (strcmp(mode, "child-alone") == 0) {
        parent_nspace(other);
        size_of(other);
    } else if (strcmp(mode, "child-dies") == 0) {
        if (me.rank == 0)
            kill(getpid(), SIGKILL);
        wait_for_end();
    } else if (strcmp(mode, "child-fails") == 0) {
        PMIx_Finalize(NULL, 0);
        return me.rank == 0 ? 7 : 0;
    } else if (strcmp(mode, "wait") == 0) {
        printf("ready\n");
        fflush(stdout);
        wait_for_end();
    } else {
        return 8;
    }
    return finish();
}
