/*
 * modex.c: what ranks committed, between hosts: a client asks for a rank of
 * another host, or an agent of another host asks for a rank of this one.
 */
#include "launcher/pmix/upcalls.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ one of ours asks */

struct modex {
    struct rk_post post;
    uint32_t rank;
    bool known;
    pmix_modex_cbfunc_t done;
    void *done_arg;
};

void rk_server_modex_done(struct rk_server *server, void *token, bool found, const void *data,
                          size_t len)
{
    struct modex *m = token;
    char *copy = found && len ? malloc(len) : NULL;

    (void)server;
    if (copy)
        memcpy(copy, data, len);
    m->done(found && (copy || !len) ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, copy, copy ? len : 0,
            m->done_arg, free, copy);
    free(m);
}

static void run(struct rk_post *post, void *arg)
{
    struct modex *m = (struct modex *)post;
    struct rk_server *server = arg;

    if (m->known)
        server->events->modex(server->arg, m->rank, m);
    else
        rk_server_modex_done(server, m, false, NULL, 0);
}

pmix_status_t rk_upcall_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *done_arg)
{
    struct rk_server *server = rk_server_serving();
    struct modex *m = calloc(1, sizeof(*m));

    (void)info;
    (void)ninfo;
    if (!m)
        return PMIX_ERR_NOMEM;
    *m = (struct modex){.post.run = run, .done = done, .done_arg = done_arg};
    m->known = rk_server_rank_of(server, proc, &m->rank);
    rk_mailbox_post(server->mailbox, &m->post);
    return PMIX_SUCCESS;
}

/* ----------------------------------------------------------- another host asks */

struct lookup {
    struct rk_post post;
    uint32_t id;
    bool found;
    char *data;
    size_t len;
};

static void tell(struct rk_post *post, void *arg)
{
    struct lookup *l = (struct lookup *)post;
    struct rk_server *server = arg;

    server->events->looked_up(server->arg, l->id, l->found, l->data, l->len);
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

void rk_server_look_up(struct rk_server *server, uint32_t rank, uint32_t id)
{
    struct lookup *l = calloc(1, sizeof(*l));
    pmix_proc_t proc;

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
