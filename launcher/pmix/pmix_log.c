/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_log.c: write the texts of PMIx_Log to the rank's output.
 *
 * The answer must not be given inside the upcall: PMIx's thread would wait for
 * itself.
 */
#include "launcher/pmix/pmix_internal.h"

#include <stdlib.h>
#include <string.h>

struct log_call {
    struct xr_post post;
    uint32_t rank;
    pmix_status_t status;
    char *text[3]; /* by stream */
    pmix_op_cbfunc_t done;
    void *done_arg;
};

static void pmix_log_run(struct xr_post *post, void *arg)
{
    struct log_call *l = (struct log_call *)post;
    struct xr_server *server = arg;

    for (int stream = 1; stream <= 2; stream++) {
        if (l->text[stream])
            server->events->log(server->arg, l->rank, stream, l->text[stream]);
        free(l->text[stream]);
    }
    if (l->done)
        l->done(l->status, l->done_arg);
    free(l);
}

/* Texts for one stream are concatenated. */
static void append(char **to, const char *text)
{
    size_t have = *to ? strlen(*to) : 0;
    char *more = realloc(*to, have + strlen(text) + 1);

    if (!more)
        return;
    strcpy(more + have, text);
    *to = more;
}

void xr_upcall_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
                   const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done,
                   void *done_arg)
{
    struct xr_server *server = xr_server_serving();
    struct log_call *l = calloc(1, sizeof(*l));

    (void)directives;
    (void)ndirs;
    /* Without memory no other thread can answer. */
    if (!l)
        abort();
    l->post.run = pmix_log_run;
    l->status = PMIX_ERR_NOT_SUPPORTED;
    l->done = done;
    l->done_arg = done_arg;
    if (xr_server_rank_of(server, client, &l->rank)) {
        for (size_t i = 0; i < ndata; i++) {
            int stream = PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDOUT)   ? 1
                         : PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDERR) ? 2
                                                                     : 0;
            if (stream && data[i].value.type == PMIX_STRING && data[i].value.data.string) {
                append(&l->text[stream], data[i].value.data.string);
                l->status = PMIX_SUCCESS;
            }
        }
    }
    xr_threadshift_post(server->shift, &l->post);
}
