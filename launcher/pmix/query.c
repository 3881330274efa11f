/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * query.c: answer queries of clients: the processes of this host, and versions.
 *
 * Ranks use the table of processes so as not to wait for a rank that is gone: a client
 * that connects at that moment may miss the event.
 *
 * A query of known and unknown keys gets the known ones and
 * PMIX_ERR_PARTIAL_SUCCESS. Clients of libpmix 4.2.2 keep the status and drop
 * the values (openpmix/openpmix#3499).
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/compiler.h"

#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct query {
    struct xr_post post;
    pmix_info_cbfunc_t done;
    void *done_arg;
    bool partial; /* there were unknown keys, too */
    size_t n;
    pmix_info_t *answer; /* [n] */
    size_t *which;       /* [n] rows of known[] */
};

static void query_release(void *arg)
{
    struct query *q = arg;

    if (q->answer)
        PMIX_INFO_FREE(q->answer, q->n);
    free(q->which);
    free(q);
}

static pmix_proc_state_t query_state_of(const struct xr_server_process *p)
{
    if (!p->pid)
        return PMIX_PROC_STATE_PREPPED;
    if (!p->ended)
        return p->connected ? PMIX_PROC_STATE_CONNECTED : PMIX_PROC_STATE_RUNNING;
    if (WIFSIGNALED(p->status))
        return PMIX_PROC_STATE_ABORTED_BY_SIG;
    if (p->unfinished)
        return PMIX_PROC_STATE_TERM_WO_SYNC;
    return WEXITSTATUS(p->status) ? PMIX_PROC_STATE_TERM_NON_ZERO : PMIX_PROC_STATE_TERMINATED;
}

static char *query_copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void query_fill(struct xr_server *server, uint32_t rank, pmix_proc_info_t *to)
{
    struct xr_server_process p = {0};

    server->events->process(server->arg, rank, &p);
    PMIX_LOAD_PROCID(&to->proc, server->nspace, rank);
    to->hostname = query_copy(p.host);
    to->executable_name = query_copy(p.program);
    to->pid = p.pid;
    to->exit_code = WIFSIGNALED(p.status) ? WTERMSIG(p.status) : WEXITSTATUS(p.status);
    to->state = query_state_of(&p);
}

static bool put_table(struct xr_server *server, pmix_value_t *to)
{
    pmix_data_array_t *table = NULL;

    PMIX_DATA_ARRAY_CREATE(table, server->nlocal, PMIX_PROC_INFO);
    if (!table || (server->nlocal && !table->array)) {
        free(table);
        return false;
    }
    for (uint32_t i = 0; i < server->nlocal; i++)
        query_fill(server, server->local[i], (pmix_proc_info_t *)table->array + i);
    to->type = PMIX_DATA_ARRAY;
    to->data.darray = table;
    return true;
}

static bool put_text(pmix_value_t *to, const char *text)
{
    to->type = PMIX_STRING;
    to->data.string = strdup(text);
    return to->data.string != NULL;
}

static bool put_version(struct xr_server *server, pmix_value_t *to)
{
    (void)server;
    return put_text(to, PMIx_Get_version());
}

/* libpmix reports these only before it is initialized. */
static char stable_abi[32], provisional_abi[32];

static bool put_stable(struct xr_server *server, pmix_value_t *to)
{
    (void)server;
    return put_text(to, stable_abi);
}

static bool put_provisional(struct xr_server *server, pmix_value_t *to)
{
    (void)server;
    return put_text(to, provisional_abi);
}

static bool put_keys(struct xr_server *server, pmix_value_t *to);

static const struct {
    const char *key;
    bool (*put)(struct xr_server *server, pmix_value_t *to);
    bool of_job;      /* for the own job only */
    const char *text; /* unknown if this is empty; NULL: known */
} known[] = {
    {PMIX_QUERY_LOCAL_PROC_TABLE, put_table, true, NULL},
    {PMIX_QUERY_SUPPORTED_KEYS, put_keys, false, NULL},
    {PMIX_VERSION_INFO, put_version, false, NULL},
    {PMIX_QUERY_STABLE_ABI_VERSION, put_stable, false, stable_abi},
    {PMIX_QUERY_PROVISIONAL_ABI_VERSION, put_provisional, false, provisional_abi},
};

static bool put_keys(struct xr_server *server, pmix_value_t *to)
{
    char text[512] = "";

    (void)server;
    for (size_t i = 0; i < RK_ARRAY_LEN(known); i++) {
        if (known[i].text && !known[i].text[0])
            continue;
        if (text[0])
            strcat(text, ",");
        strcat(text, known[i].key);
    }
    return put_text(to, text);
}

static void note_text(const char *key, char *to, size_t len)
{
    pmix_info_t *answer = NULL;
    pmix_query_t query;
    pmix_status_t rc;
    size_t n = 0;

    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(rc, query.keys, key);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Query_info(&query, 1, &answer, &n);
    if (rc == PMIX_SUCCESS && n == 1 && answer[0].value.type == PMIX_STRING && answer[0].value.data.string)
        snprintf(to, len, "%s", answer[0].value.data.string);
    if (answer)
        PMIX_INFO_FREE(answer, n);
    PMIX_QUERY_DESTRUCT(&query);
}

void xr_server_note_abi(void)
{
    note_text(PMIX_QUERY_STABLE_ABI_VERSION, stable_abi, sizeof(stable_abi));
    note_text(PMIX_QUERY_PROVISIONAL_ABI_VERSION, provisional_abi, sizeof(provisional_abi));
}

/* Runs in the agent's loop, which owns the state of processes. */
static void query_run(struct xr_post *post, void *arg)
{
    struct query *q = (struct query *)post;
    struct xr_server *server = arg;

    for (size_t i = 0; i < q->n; i++) {
        PMIX_LOAD_KEY(q->answer[i].key, known[q->which[i]].key);
        if (!known[q->which[i]].put(server, &q->answer[i].value)) {
            q->done(PMIX_ERR_NOMEM, NULL, 0, q->done_arg, query_release, q);
            return;
        }
    }
    q->done(q->partial ? PMIX_ERR_PARTIAL_SUCCESS : PMIX_SUCCESS, q->answer, q->n, q->done_arg, query_release, q);
}

/* Is the query about the own job? So it is if it names none. */
static bool of_ours(const struct xr_server *server, const pmix_query_t *query)
{
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *q = &query->qualifiers[i];
        if (PMIX_CHECK_KEY(q, PMIX_NSPACE) && q->value.type == PMIX_STRING && q->value.data.string &&
            strcmp(q->value.data.string, server->nspace) != 0)
            return false;
    }
    return true;
}

/* The row of a key, or the number of rows if it is unknown. */
static size_t query_find(const struct xr_server *server, const pmix_query_t *query, const char *key)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(known); i++) {
        if (strcmp(key, known[i].key) != 0)
            continue;
        if ((known[i].text && !known[i].text[0]) || (known[i].of_job && !of_ours(server, query)))
            break;
        return i;
    }
    return RK_ARRAY_LEN(known);
}

pmix_status_t xr_upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                              pmix_info_cbfunc_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct query *q = calloc(1, sizeof(*q));
    size_t all = 0;

    (void)proc;
    for (size_t i = 0; i < nqueries; i++) {
        for (char **key = queries[i].keys; key && *key; key++)
            all++;
    }
    if (!q || !(q->which = calloc(all + 1, sizeof(*q->which)))) {
        free(q);
        return PMIX_ERR_NOMEM;
    }
    for (size_t i = 0; i < nqueries; i++) {
        for (char **key = queries[i].keys; key && *key; key++) {
            size_t row = query_find(server, &queries[i], *key);
            if (row < RK_ARRAY_LEN(known))
                q->which[q->n++] = row;
        }
    }
    if (q->n)
        PMIX_INFO_CREATE(q->answer, q->n);
    if (!q->answer) {
        bool memory = q->n == 0;
        query_release(q);
        return memory ? PMIX_ERR_NOT_SUPPORTED : PMIX_ERR_NOMEM;
    }
    q->partial = q->n < all;
    q->post.run = query_run;
    q->done = done;
    q->done_arg = done_arg;
    xr_threadshift_post(server->shift, &q->post);
    return PMIX_SUCCESS;
}
