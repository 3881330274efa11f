/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unsupported_client.c: request what the PMIx server does not support.
 * Each request is refused soon, and the server continues.
 *
 * unsupported_client             groups, queries, allocations, output of others, credentials; all ranks at once
 * unsupported_client show        prints the address of the server, and stays
 * unsupported_client tool URI    a tool, not a rank of the job, that has that address
 * unsupported_client tool-of PID or that searches a server of process PID
 */
#include "client_common.h"

#include <pmix_tool.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SOON_S 1.0  /* a machine may be busy, and the call is repeated */
#define TRIES 5
#define LATE_S 15.0 /* a request that is not answered waits for ever */

static bool failed;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void expect(const char *what, double took, double limit, pmix_status_t rc, pmix_status_t wanted)
{
    if (rc == wanted && took < limit)
        return;
    fprintf(stderr, "rank %u: %s: %s, not %s, after %.3f s\n", me.rank, what, PMIx_Error_string(rc),
            PMIx_Error_string(wanted), took);
    failed = true;
}

#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        pmix_status_t answer;                                                                                          \
        int tries = TRIES;                                                                                             \
        double took;                                                                                                   \
        do {                                                                                                           \
            took = now();                                                                                              \
            answer = call;                                                                                             \
            took = now() - took;                                                                                       \
        } while (answer == PMIX_ERR_NOT_SUPPORTED && took >= SOON_S && --tries > 0);                                   \
        expect(#call, took, SOON_S, answer, PMIX_ERR_NOT_SUPPORTED);                                                   \
    } while (0)

static void forget(pmix_info_t **info, size_t *n)
{
    if (*info)
        PMIX_INFO_FREE(*info, *n);
    *info = NULL;
    *n = 0;
}

static void groups(void)
{
    pmix_info_t *results = NULL;
    size_t n = 0;

    REFUSED(PMIx_Group_construct("some", &all, 1, NULL, 0, &results, &n));
    forget(&results, &n);
    REFUSED(PMIx_Group_destruct("some", NULL, 0));
    REFUSED(PMIx_Group_leave("some", NULL, 0));
}

static pmix_status_t ask(const char *key, const char *other)
{
    pmix_info_t *answer = NULL;
    pmix_query_t query;
    pmix_status_t rc;
    size_t n = 0;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(rc, query.keys, key);
    if (other)
        PMIX_ARGV_APPEND(rc, query.keys, other);
    rc = PMIx_Query_info(&query, 1, &answer, &n);
    PMIX_QUERY_DESTRUCT(&query);
    forget(&answer, &n);
    return rc;
}

static void queries(void)
{
    REFUSED(ask("an.unknown.key", NULL));
    REFUSED(ask(PMIX_QUERY_NAMESPACES, NULL));
    REFUSED(ask(PMIX_QUERY_JOB_STATUS, NULL));
    REFUSED(ask(PMIX_QUERY_QUEUE_LIST, NULL));
    REFUSED(ask(PMIX_QUERY_PROC_TABLE, NULL));
    REFUSED(ask(PMIX_QUERY_MEMORY_USAGE, NULL));
    REFUSED(ask(PMIX_QUERY_DEBUG_SUPPORT, NULL));
    REFUSED(ask(PMIX_QUERY_ALLOC_STATUS, NULL));
}

/* Also with an info that was left empty, and without any. */
static void allocations(void)
{
    static const pmix_alloc_directive_t directives[] = {PMIX_ALLOC_NEW, PMIX_ALLOC_EXTEND, PMIX_ALLOC_RELEASE,
                                                        PMIX_ALLOC_REAQUIRE, PMIX_ALLOC_EXTERNAL};
    pmix_info_t info[2], *results = NULL;
    uint64_t nodes = 12;
    size_t n = 0;

    memset(info, 0, sizeof(info));
    PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_NUM_NODES, &nodes, PMIX_UINT64);
    for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
        for (size_t ninfo = 0; ninfo <= 2; ninfo++) {
            REFUSED(PMIx_Allocation_request(directives[i], ninfo ? info : NULL, ninfo, &results, &n));
            forget(&results, &n);
        }
    }
}

static void control(void)
{
    pmix_info_t info, *results = NULL;
    pmix_status_t rc;
    double since;
    size_t n = 0;

    PMIX_INFO_LOAD(&info, "an.unknown.directive", NULL, PMIX_BOOL);
    REFUSED(PMIx_Job_control(NULL, 0, &info, 1, &results, &n));
    forget(&results, &n);
    /* The library has monitors of its own, and accepts all unknown ones. */
    PMIX_INFO_LOAD(&info, "an.unknown.monitor", "text", PMIX_STRING);
    since = now();
    rc = PMIx_Process_monitor(&info, PMIX_MONITOR_HEARTBEAT_ALERT, NULL, 0, &results, &n);
    expect("PMIx_Process_monitor", now() - since, LATE_S, rc, rc);
    PMIX_INFO_DESTRUCT(&info);
    forget(&results, &n);
}

static void on_output(size_t handler, pmix_iof_channel_t channel, pmix_proc_t *source, pmix_byte_object_t *payload,
                      pmix_info_t info[], size_t ninfo)
{
    (void)handler;
    (void)channel;
    (void)source;
    (void)payload;
    (void)info;
    (void)ninfo;
}

static _Atomic int pushed = PMIX_SUCCESS;

static void on_pushed(pmix_status_t status, void *arg)
{
    (void)arg;
    atomic_store(&pushed, status);
}

/* Without a callback the library may wait for an answer that it has had. */
static pmix_status_t push(void)
{
    const struct timespec ms = {0, 1000000};
    static pmix_byte_object_t bytes = {.bytes = (char *)(uintptr_t) "input\n", .size = 6};
    double since = now();

    atomic_store(&pushed, PMIX_SUCCESS);
    need("PMIx_IOF_push", PMIx_IOF_push(&all, 1, &bytes, NULL, 0, on_pushed, NULL));
    while (atomic_load(&pushed) == PMIX_SUCCESS && now() - since < LATE_S)
        nanosleep(&ms, NULL);
    return atomic_load(&pushed);
}

static void output(void)
{
    REFUSED(PMIx_IOF_pull(&all, 1, NULL, 0, PMIX_FWD_STDOUT_CHANNEL, on_output, NULL, NULL));
    REFUSED(push());
}

static void credentials(void)
{
    pmix_byte_object_t credential = {.bytes = NULL}, none = {.bytes = (char *)(uintptr_t) "none", .size = 4};
    pmix_info_t *results = NULL;
    size_t n = 0;

    REFUSED(PMIx_Get_credential(NULL, 0, &credential));
    REFUSED(PMIx_Validate_credential(&none, NULL, 0, &results, &n));
    forget(&results, &n);
}

static int ranks(void)
{
    start();
    need("PMIx_Fence", fence());
    groups();
    queries();
    allocations();
    control();
    output();
    credentials();
    /* It is as it was. */
    need("PMIx_Fence", fence());
    return failed ? 9 : finish();
}

static int show(void)
{
    const char *uri = getenv("PMIX_SERVER_URI41");

    start();
    need("PMIx_Fence", fence());
    if (!uri)
        return 9;
    printf("ready %s\n", uri);
    fflush(stdout);
    for (;;)
        pause();
}

/* It is refused by a server that lives on. */
static int tool(const char *key, const void *value, pmix_data_type_t type)
{
    double since = now();
    pmix_status_t rc;
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, key, value, type);
    rc = PMIx_tool_init(&me, &info, 1);
    expect("PMIx_tool_init", now() - since, LATE_S, rc, PMIX_ERR_UNREACH);
    PMIX_INFO_DESTRUCT(&info);
    return failed ? 9 : 0;
}

int main(int argc, char **argv)
{
    pid_t pid = argc > 2 ? (pid_t)atoi(argv[2]) : 0;

    if (argc > 2 && strcmp(argv[1], "tool") == 0)
        return tool(PMIX_SERVER_URI, argv[2], PMIX_STRING);
    if (argc > 2 && strcmp(argv[1], "tool-of") == 0)
        return tool(PMIX_SERVER_PIDINFO, &pid, PMIX_PID);
    if (argc > 1 && strcmp(argv[1], "show") == 0)
        return show();
    return ranks();
}
