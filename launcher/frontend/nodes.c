/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.c: map node ids and ranks to hosts and labels. */
#include "launcher/frontend/frontend_internal.h"

/* The host that a rank runs on, or NULL. */
struct node *xr_front_node_of(struct front *f, uint32_t rank)
{
    return f->told && rank < f->job->size ? &f->nodes[f->job->host_of[rank]] : NULL;
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
