/*
 * fence.c: a fence that PMIx could not complete by itself.
 *
 * Fences among the job's ranks, all on this host, end inside the library. What
 * comes here names processes that this server does not have.
 */
#include "launcher/pmix/upcalls.h"

#include <stdlib.h>

struct fence {
    struct rk_post post;
    char *data; /* given to us by PMIx */
    pmix_modex_cbfunc_t done;
    void *done_arg;
};

static void run(struct rk_post *post, void *arg)
{
    struct fence *f = (struct fence *)post;

    (void)arg;
    f->done(PMIX_ERR_UNREACH, NULL, 0, f->done_arg, NULL, NULL);
    free(f->data);
    free(f);
}

pmix_status_t rk_upcall_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                              void *done_arg)
{
    struct rk_server *server = rk_server_serving();
    struct fence *f = malloc(sizeof(*f));

    (void)procs;
    (void)nprocs;
    (void)info;
    (void)ninfo;
    (void)ndata;
    if (!f) {
        free(data);
        return PMIX_ERR_NOMEM;
    }
    *f = (struct fence){.post.run = run, .data = data, .done = done, .done_arg = done_arg};
    rk_mailbox_post(server->mailbox, &f->post);
    return PMIX_SUCCESS;
}
