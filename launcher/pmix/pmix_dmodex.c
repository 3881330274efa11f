/*
 * pmix_dmodex.c: what ranks committed, between hosts: a client asks for a rank of
 * another host, or an agent of another host asks for a rank of this one.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ one of ours asks */

struct modex {
    struct rk_post post;
    uint32_t rank, timeout_s;
    bool known;
    pmix_nspace_t job; /* another than ours; else empty */
    struct rk_flight *flight; /* of that */
    pmix_modex_cbfunc_t done;
    void *done_arg;
};

/* PMIx has done with the answer: on its thread. */
struct given {
    struct rk_flight *flight; /* or NULL */
    char data[];
};

static void on_given(void *arg)
{
    struct given *g = arg;

    if (g->flight)
        rk_flight_end(g->flight);
    free(g);
}

void rk_server_modex_done(struct rk_server *server, void *token, enum rk_found found, const void *data,
                          size_t len)
{
    struct modex *m = token;
    size_t room = found == RK_FOUND ? len : 0;
    struct given *g = calloc(1, sizeof(*g) + room);
    pmix_status_t status = found == RK_FOUND_LATE ? PMIX_ERR_TIMEOUT : PMIX_ERR_NOT_FOUND;

    (void)server;
    if (g && room)
        memcpy(g->data, data, room);
    if (g && found == RK_FOUND)
        status = PMIX_SUCCESS;
    if (g)
        g->flight = m->flight; /* else it stays one for ever: PMIx keeps that job */
    m->done(status, g && room ? g->data : NULL, g ? room : 0, m->done_arg, g ? on_given : NULL, g);
    free(m);
}

/* ------------------------------------------------- about a rank of another job */

struct about {
    struct rk_errand_call call;
    struct modex *modex;
};

static void on_answer(struct rk_server *server, struct rk_errand_call *call, pmix_status_t status,
                      struct rk_unpacker *u)
{
    struct about *a = (struct about *)call;
    size_t len = 0;
    const void *data = u ? rk_unpack_bytes(u, &len) : NULL;

    /* The job first: what is known of one of its ranks is kept with it. */
    if (u && rk_unpack_u32(u) == 1 && !rk_server_take_outline(server, u, NULL))
        status = PMIX_ERROR;
    if (!rk_server_knows(server, a->modex->job))
        rk_flights_forget_unknown(&server->flights, a->modex->job);
    rk_server_modex_done(server, a->modex,
                         status == PMIX_SUCCESS       ? RK_FOUND
                         : status == PMIX_ERR_TIMEOUT ? RK_FOUND_LATE
                                                      : RK_FOUND_NEVER,
                         data, len);
}

static void ask_elsewhere(struct rk_server *server, struct modex *m)
{
    struct about *a = calloc(1, sizeof(*a));

    if (!a) {
        rk_server_modex_done(server, m, RK_FOUND_NEVER, NULL, 0);
        return;
    }
    a->modex = m;
    a->call.what = RK_ERRAND_MODEX;
    a->call.done = on_answer;
    rk_pack_string(&a->call.payload, m->job);
    rk_pack_u32(&a->call.payload, m->rank);
    rk_pack_u32(&a->call.payload, m->timeout_s);
    server->events->errand(server->arg, RK_ERRAND_MODEX, RK_ALL_RANKS, &a->call.payload, a);
}

static void run(struct rk_post *post, void *arg)
{
    struct modex *m = (struct modex *)post;
    struct rk_server *server = arg;

    if (m->known)
        server->events->modex(server->arg, m->rank, m->timeout_s, m);
    else if (m->job[0])
        ask_elsewhere(server, m);
    else
        rk_server_modex_done(server, m, RK_FOUND_NEVER, NULL, 0);
}

pmix_status_t rk_upcall_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *done_arg)
{
    struct rk_server *server = rk_server_serving();
    struct modex *m = calloc(1, sizeof(*m));
    bool again;

    if (!m)
        return PMIX_ERR_NOMEM;
    *m = (struct modex){.post.run = run, .done = done, .done_arg = done_arg};
    /* The library leaves it to us where a rank of another host is asked for. */
    m->timeout_s = rk_infos_timeout(info, ninfo);
    m->known = rk_server_rank_of(server, proc, &m->rank);
    if (!PMIX_CHECK_NSPACE(proc->nspace, server->nspace)) {
        PMIX_LOAD_NSPACE(m->job, proc->nspace);
        m->rank = proc->rank == PMIX_RANK_WILDCARD ? RK_ALL_RANKS : proc->rank;
        m->flight = rk_flight_begin(&server->flights, m->job, done_arg, &again);
        if (!m->flight) {
            free(m);
            return again ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
        }
    }
    rk_mailbox_post(server->mailbox, &m->post);
    return PMIX_SUCCESS;
}

/* ----------------------------------------------------------- another host asks */

struct lookup {
    struct rk_post post;
    uint32_t id, rank;
    bool relic; /* look among what the dead have left */
    bool found;
    char *data;
    size_t len;
};

static void tell(struct rk_post *post, void *arg)
{
    struct lookup *l = (struct lookup *)post;
    struct rk_server *server = arg;
    const void *data = l->data;
    size_t len = l->len;
    bool found = l->found;

    if (l->relic)
        rk_server_relic(server, l->rank, &found, &data, &len);
    server->events->looked_up(server->arg, l->id, found, data, len);
    free(l->data);
    free(l);
}

static void on_data(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct lookup *l = arg;

    l->found = status == PMIX_SUCCESS;
    l->data = l->found && len ? malloc(len) : NULL;
    if (l->data) {
        memcpy(l->data, data, len);
        l->len = len;
    }
    l->found = l->found && (l->data || !len);
    rk_mailbox_post(rk_server_serving()->mailbox, &l->post);
}

static void on_round(pmix_status_t status, void *arg)
{
    struct lookup *l = arg;

    (void)status;
    rk_mailbox_post(rk_server_serving()->mailbox, &l->post);
}

/*
 * The library waits for what a rank may yet commit, also if it has ended. Its
 * thread does one thing after the other: once an event that concerns nobody
 * has come back from there, the question before it was answered if it ever is.
 */
static void settle(struct rk_server *server, uint32_t rank, uint32_t id, bool relic)
{
    struct lookup *l = calloc(1, sizeof(*l));
    pmix_status_t rc = PMIX_ERR_NOMEM;
    pmix_proc_t self;
    pmix_info_t info;

    if (l) {
        l->post.run = tell;
        l->id = id;
        l->rank = rank;
        l->relic = relic;
        PMIX_LOAD_PROCID(&self, server->nspace, PMIX_RANK_UNDEF);
        PMIX_INFO_LOAD(&info, PMIX_EVENT_DO_NOT_CACHE, NULL, PMIX_BOOL);
        rc = PMIx_Notify_event(PMIX_EXTERNAL_ERR_BASE, &self, PMIX_RANGE_PROC_LOCAL, &info, 1, on_round, l);
        PMIX_INFO_DESTRUCT(&info);
    }
    if (rc == PMIX_SUCCESS)
        return;
    free(l);
    server->events->looked_up(server->arg, id, false, NULL, 0);
}

void rk_server_settle(struct rk_server *server, uint32_t id)
{
    settle(server, 0, id, false);
}

void rk_server_look_up(struct rk_server *server, uint32_t rank, uint32_t id)
{
    struct lookup *l;
    pmix_proc_t proc;
    const void *data;
    size_t len;
    bool found;

    if (rk_server_relic(server, rank, &found, &data, &len)) {
        settle(server, rank, id, true);
        return;
    }
    l = calloc(1, sizeof(*l));
    if (!l) {
        server->events->looked_up(server->arg, id, false, NULL, 0);
        return;
    }
    l->post.run = tell;
    l->id = id;
    PMIX_LOAD_PROCID(&proc, server->nspace, rank);
    if (PMIx_server_dmodex_request(&proc, on_data, l) != PMIX_SUCCESS)
        rk_mailbox_post(server->mailbox, &l->post);
}
