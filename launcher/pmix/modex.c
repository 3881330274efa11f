/*
 * modex.c: a client wants data of a process that is not on this host.
 *
 * All ranks of a job are here, and PMIx answers for them itself; so the process
 * is none that can be asked.
 */
#include "launcher/pmix/upcalls.h"

#include <stdlib.h>

struct modex {
    struct rk_post post;
    pmix_modex_cbfunc_t done;
    void *done_arg;
};

static void run(struct rk_post *post, void *arg)
{
    struct modex *m = (struct modex *)post;

    (void)arg;
    m->done(PMIX_ERR_NOT_FOUND, NULL, 0, m->done_arg, NULL, NULL);
    free(m);
}

pmix_status_t rk_upcall_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *done_arg)
{
    struct rk_server *server = rk_server_serving();
    struct modex *m = malloc(sizeof(*m));

    (void)proc;
    (void)info;
    (void)ninfo;
    if (!m)
        return PMIX_ERR_NOMEM;
    *m = (struct modex){.post.run = run, .done = done, .done_arg = done_arg};
    rk_mailbox_post(server->mailbox, &m->post);
    return PMIX_SUCCESS;
}
