/*
 * query.c: a client asks for the table of the processes of this host.
 *
 * An event may be lost on a client that connects at that moment; what the
 * table says holds. Of all that can be asked for, this is what ranks need
 * in order not to wait for one that is gone.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct query {
    struct xr_post post;
    pmix_info_cbfunc_t done;
    void *done_arg;
    pmix_info_t *answer;
};

static void release(void *arg)
{
    struct query *q = arg;

    if (q->answer)
        PMIX_INFO_FREE(q->answer, 1);
    free(q);
}

static pmix_proc_state_t state_of(const struct xr_server_process *p)
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

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void fill(struct xr_server *server, uint32_t rank, pmix_proc_info_t *to)
{
    struct xr_server_process p = {0};

    server->events->process(server->arg, rank, &p);
    PMIX_LOAD_PROCID(&to->proc, server->nspace, rank);
    to->hostname = copy(p.host);
    to->executable_name = copy(p.program);
    to->pid = p.pid;
    to->exit_code = WIFSIGNALED(p.status) ? WTERMSIG(p.status) : WEXITSTATUS(p.status);
    to->state = state_of(&p);
}

/* The state of a process is the loop's. */
static void run(struct xr_post *post, void *arg)
{
    struct query *q = (struct query *)post;
    struct xr_server *server = arg;
    pmix_data_array_t *table = NULL;

    PMIX_INFO_CREATE(q->answer, 1);
    if (q->answer)
        PMIX_DATA_ARRAY_CREATE(table, server->nlocal, PMIX_PROC_INFO);
    if (!table || (server->nlocal && !table->array)) {
        free(table);
        q->done(PMIX_ERR_NOMEM, NULL, 0, q->done_arg, release, q);
        return;
    }
    for (uint32_t i = 0; i < server->nlocal; i++)
        fill(server, server->local[i], (pmix_proc_info_t *)table->array + i);
    PMIX_LOAD_KEY(q->answer[0].key, PMIX_QUERY_LOCAL_PROC_TABLE);
    q->answer[0].value.type = PMIX_DATA_ARRAY;
    q->answer[0].value.data.darray = table;
    q->done(PMIX_SUCCESS, q->answer, 1, q->done_arg, release, q);
}

/* Of our job, which is also what is meant where no job is named. */
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

pmix_status_t xr_upcall_query(pmix_proc_t *proc, pmix_query_t *queries, size_t nqueries,
                              pmix_info_cbfunc_t done, void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct query *q;

    (void)proc;
    for (size_t i = 0; i < nqueries; i++) {
        for (char **key = queries[i].keys; key && *key; key++) {
            if (strcmp(*key, PMIX_QUERY_LOCAL_PROC_TABLE) != 0 || !of_ours(server, &queries[i]))
                return PMIX_ERR_NOT_SUPPORTED;
        }
    }
    q = calloc(1, sizeof(*q));
    if (!q)
        return PMIX_ERR_NOMEM;
    q->post.run = run;
    q->done = done;
    q->done_arg = done_arg;
    xr_mailbox_post(server->mailbox, &q->post);
    return PMIX_SUCCESS;
}
