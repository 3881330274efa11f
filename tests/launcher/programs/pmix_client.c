/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_client.c: call PMIx without librank, for the tests of the launcher.
 *
 * pmix_client MODE [RANK]: the calls, and the rank that differs, if one does.
 * Prints "ok" from each rank that ended as the mode expects.
 */
#include "client_common.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void put_card(void)
{
    char text[64];
    pmix_value_t v;

    snprintf(text, sizeof(text), "card of %u", me.rank);
    memset(&v, 0, sizeof(v));
    v.type = PMIX_STRING;
    v.data.string = text;
    need("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "card", &v));
    need("PMIx_Commit", PMIx_Commit());
}

static void check_card(uint32_t rank)
{
    char want[64];
    pmix_proc_t peer;
    pmix_value_t *v;

    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    need("PMIx_Get", PMIx_Get(&peer, "card", NULL, 0, &v));
    snprintf(want, sizeof(want), "card of %u", rank);
    if (strcmp(want, v->data.string) != 0) {
        fprintf(stderr, "rank %u: %s\n", rank, v->data.string);
        exit(9);
    }
    PMIX_VALUE_RELEASE(v);
}

static void check_local(void)
{
    pmix_value_t *v;
    uint32_t n = 1;
    const char *rank = getenv("XRUN_RANK"), *jobsize = getenv("XRUN_SIZE");

    need(PMIX_LOCAL_PEERS, PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &v));
    for (const char *p = v->data.string; *p; p++)
        n += *p == ',';
    PMIX_VALUE_RELEASE(v);
    if (n != size || get_u32(&all, PMIX_LOCAL_SIZE) != size || get_u32(&all, PMIX_UNIV_SIZE) < size ||
        !rank || (uint32_t)atoi(rank) != me.rank || !jobsize || (uint32_t)atoi(jobsize) != size) {
        fprintf(stderr, "wrong: %u local peers of %u\n", n, size);
        exit(9);
    }
}

/* Of the rank itself, and of a key that PMIx has from its maps. */
static void print_app(void)
{
    pmix_value_t *v;

    need(PMIX_APPNUM, PMIx_Get(&me, PMIX_APPNUM, NULL, 0, &v));
    printf("rank %u app %u", me.rank, v->data.uint32);
    PMIX_VALUE_RELEASE(v);
    need(PMIX_APP_RANK, PMIx_Get(&me, PMIX_APP_RANK, NULL, 0, &v));
    printf(" app rank %u", v->data.rank);
    PMIX_VALUE_RELEASE(v);
    need(PMIX_LOCAL_RANK, PMIx_Get(&me, PMIX_LOCAL_RANK, NULL, 0, &v));
    printf(" local rank %u of %u apps\n", v->data.uint16, get_u32(&all, PMIX_JOB_NUM_APPS));
    PMIX_VALUE_RELEASE(v);
}

/* ---------------------------------------------------------------------- events */

static _Atomic int seen = -1;
static _Atomic int seen_code;

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)id;
    (void)source;
    (void)results;
    (void)nresults;
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC)) {
            atomic_store(&seen_code, code);
            atomic_store(&seen, (int)info[i].value.data.proc->rank);
        }
    }
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static int wait_event(uint32_t rank, pmix_status_t want)
{
    pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_TERM_WO_SYNC};
    struct timespec begin, now, pause = {0, 1000000};
    double s;

    if (PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL) < 0) {
        fprintf(stderr, "no handler\n");
        return 9;
    }
    need("PMIx_Fence", fence());
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (me.rank == rank) {
        if (want == PMIX_ERR_PROC_ABORTED)
            raise(SIGKILL);
        exit(3);
    }
    do {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        s = (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) * 1e-9;
    } while (atomic_load(&seen) < 0 && s < 5);
    if (atomic_load(&seen) != (int)rank || atomic_load(&seen_code) != want || s > 1) {
        fprintf(stderr, "event %d of rank %d after %.3f s\n", atomic_load(&seen_code),
                atomic_load(&seen), s);
        return 9;
    }
    return finish();
}

/* ----------------------------------------------------------------------- query */

/* Query the server for a process of this host; afresh, as the library keeps answers. */
static pmix_proc_info_t state_of(uint32_t rank)
{
    pmix_proc_info_t found = {.pid = 0};
    pmix_info_t *answer = NULL;
    pmix_query_t query;
    pmix_status_t rc;
    size_t n = 0;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(rc, query.keys, PMIX_QUERY_LOCAL_PROC_TABLE);
    need("PMIX_ARGV_APPEND", rc);
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 1);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_QUERY_REFRESH_CACHE, NULL, PMIX_BOOL);
    need("PMIx_Query_info", PMIx_Query_info(&query, 1, &answer, &n));
    for (size_t i = 0; i < n; i++) {
        const pmix_data_array_t *table = answer[i].value.data.darray;
        if (!PMIX_CHECK_KEY(&answer[i], PMIX_QUERY_LOCAL_PROC_TABLE) || table->type != PMIX_PROC_INFO)
            continue;
        for (size_t j = 0; j < table->size; j++) {
            const pmix_proc_info_t *p = (const pmix_proc_info_t *)table->array + j;
            if (p->proc.rank == rank && PMIX_CHECK_NSPACE(p->proc.nspace, me.nspace) && p->hostname &&
                p->executable_name && strstr(p->executable_name, "pmix_client"))
                found = (pmix_proc_info_t){.pid = p->pid, .state = p->state};
        }
    }
    PMIX_QUERY_DESTRUCT(&query);
    if (answer)
        PMIX_INFO_FREE(answer, n);
    return found;
}

/* One has gone without ever being a client, and without any message. libpmix 4.2 leaves its exit code out. */
static int ask_table(uint32_t gone, pmix_proc_state_t state)
{
    struct timespec pause = {0, 1000000};
    pmix_proc_info_t p = {.pid = 0};
    pmix_info_t *answer = NULL;
    pmix_query_t query;
    pmix_status_t rc;
    size_t n = 0;

    p = state_of(me.rank);
    if (p.pid != getpid() || p.state != PMIX_PROC_STATE_CONNECTED) {
        fprintf(stderr, "the table has pid %d, state %d for me, %d\n", (int)p.pid, p.state, (int)getpid());
        return 9;
    }
    for (int i = 0; i < 5000 && p.state != state; i++) {
        nanosleep(&pause, NULL);
        p = state_of(gone);
    }
    if (p.state != state) {
        fprintf(stderr, "the table has state %d for rank %u\n", p.state, gone);
        return 9;
    }
    /* What is not served is refused at once. */
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(rc, query.keys, PMIX_QUERY_NAMESPACES);
    need("PMIX_ARGV_APPEND", rc);
    rc = PMIx_Query_info(&query, 1, &answer, &n);
    if (rc == PMIX_SUCCESS) {
        fprintf(stderr, "the server lists namespaces?\n");
        return 9;
    }
    PMIX_QUERY_DESTRUCT(&query);
    return finish();
}

/* ----------------------------------------------------------------------- modes */

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "basic", *self = getenv("PMIX_RANK");
    uint32_t special = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;

    if (!self)
        return 8;
    if (strcmp(mode, "absent") == 0 && (uint32_t)atoi(self) == special)
        return 0; /* never becomes a client */
    if ((strcmp(mode, "absent-fail") == 0 || strcmp(mode, "table-fail") == 0) && (uint32_t)atoi(self) == special)
        return 7;
    if (strcmp(mode, "table-kill") == 0 && (uint32_t)atoi(self) == special)
        raise(SIGKILL);
    start();
    if (strcmp(mode, "init") == 0)
        return finish();
    if (strcmp(mode, "fence") == 0) {
        need("PMIx_Fence", fence());
        return finish();
    }
    if (strcmp(mode, "app") == 0) {
        print_app();
        return finish();
    }
    if (strcmp(mode, "universe") == 0) {
        printf("%u\n", get_u32(&all, PMIX_UNIV_SIZE));
        return finish();
    }
    if (strcmp(mode, "basic") == 0) {
        check_local();
        put_card();
        need("PMIx_Fence", fence());
        check_card((me.rank + 1) % size);
        check_card(me.rank / 2);
        need("PMIx_Fence", fence());
        return finish();
    }
    if (strncmp(mode, "absent", 6) == 0 || strncmp(mode, "die-in-fence", 12) == 0) {
        struct timespec late = {0, 200000000};
        if (mode[0] == 'd' && me.rank == special) {
            /* The child inherits the connection. */
            if (strcmp(mode, "die-in-fence-forked") == 0 && fork() == 0) {
                for (;;)
                    pause();
            }
            nanosleep(&late, NULL); /* the others are in it by now, or will be soon */
            raise(SIGKILL);
        }
        if (fence() == PMIX_SUCCESS) {
            fprintf(stderr, "the fence came to an end without rank %u\n", special);
            return 9;
        }
        return finish();
    }
    if (strcmp(mode, "table-fail") == 0)
        return ask_table(special, PMIX_PROC_STATE_TERM_NON_ZERO);
    if (strcmp(mode, "table-kill") == 0)
        return ask_table(special, PMIX_PROC_STATE_ABORTED_BY_SIG);
    if (strcmp(mode, "event-kill") == 0)
        return wait_event(special, PMIX_ERR_PROC_ABORTED);
    if (strcmp(mode, "event-exit") == 0)
        return wait_event(special, PMIX_ERR_PROC_TERM_WO_SYNC);
    if (strcmp(mode, "unfinished") == 0) {
        need("PMIx_Fence", fence());
        if (me.rank == special)
            _exit(0);
        pause();
    }
    if (strcmp(mode, "abort") == 0) {
        need("PMIx_Fence", fence());
        if (me.rank == special)
            PMIx_Abort(42, "the sky is falling", NULL, 0);
        pause();
    }
    if (strcmp(mode, "log") == 0) {
        pmix_info_t info;
        PMIX_INFO_LOAD(&info, PMIX_LOG_STDERR, "a word to the log\n", PMIX_STRING);
        if (me.rank == special)
            need("PMIx_Log", PMIx_Log(&info, 1, NULL, 0));
        return finish();
    }
    if (strcmp(mode, "crowded") == 0) {
        pmix_value_t *v;
        need("PMIx_Get", PMIx_Get(&all, PMIX_NODE_OVERSUBSCRIBED, NULL, 0, &v));
        puts(v->data.flag ? "more ranks than cores" : "a core for each");
        return finish();
    }
    if (strcmp(mode, "stay") == 0) {
        need("PMIx_Fence", fence());
        puts("staying");
        fflush(stdout);
        for (;;)
            pause();
    }
    fprintf(stderr, "unknown mode %s\n", mode);
    return 2;
}
