/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.c: set the job's state and exit code; map ranks to hosts and labels. */
#include "launcher/frontend/frontend_internal.h"
#include "lib/base/log.h"

#include <assert.h>

void xr_front_enter(struct front *f, enum xr_job_state state)
{
    bool legal = xr_job_state_follows(f->state, state);

    if (!legal)
        rk_error("bug in xrun: a job that is %s becomes %s", xr_job_state_name(f->state), xr_job_state_name(state));
    assert(legal);
    f->state = state;
}

/* The first reason counts. */
void xr_front_set_exit_code(struct front *f, int code)
{
    if (!f->judged)
        f->code = code;
    f->judged = true;
}

struct node *xr_front_node_of(struct front *f, uint32_t rank)
{
    return xr_front_launched(f) && rank < f->job->size ? &f->nodes[f->job->host_of[rank]] : NULL;
}

const char *xr_front_host_of(const struct front *f, uint32_t rank)
{
    return xr_front_launched(f) && rank < f->job->size ? f->job->hosts[f->job->host_of[rank]] : f->host;
}

static const char *label_host(void *arg, uint32_t rank)
{
    return xr_front_host_of(arg, rank);
}

struct xr_label xr_front_label_of(struct front *f)
{
    return (struct xr_label){.time = f->options->timestamp,
                             .rank = f->options->tag_output,
                             .host = f->options->label_host ? label_host : NULL,
                             .host_arg = f};
}
