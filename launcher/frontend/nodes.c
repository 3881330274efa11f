/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.c: map node ids and ranks to hosts and labels. */
#include "launcher/frontend/job_link.h"

/* The host that a rank runs on, or NULL. */
struct node *xr_front_node_of(struct front *f, uint32_t rank)
{
    return f->told && rank < f->job->size ? &f->nodes[f->job->host_of[rank]] : NULL;
}

/* Once no host is left to start: if any of the job runs, the hub is notified. Lost hosts never start. */
void xr_front_check_started(struct front *f)
{
    bool any = false;

    for (uint32_t i = 0; i < f->nnodes; i++) {
        const struct node *n = &f->nodes[i];
        if (f->plan->placement.host[i].ranks == 0)
            continue;
        if (!n->started && !n->gone)
            return;
        any = any || n->started;
    }
    if (any)
        xr_job_link_started(f);
}

const char *xr_front_host_of(const struct front *f, uint32_t rank)
{
    return f->told && rank < f->job->size ? f->job->hosts[f->job->host_of[rank]] : f->host;
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
