/* SPDX-License-Identifier: BSD-3-Clause */
/* liveness.c: see liveness.h. */
#include "launcher/overlay/liveness.h"

#include <stdlib.h>

struct xr_liveness {
    const struct xr_job *job;
    bool *rank;         /* [job->size] */
    bool *host, *agent; /* [job->nhosts] */
    struct rk_link watchers;
};

rank_status_t xr_liveness_open(const struct xr_job *job, struct xr_liveness **out)
{
    struct xr_liveness *g = calloc(1, sizeof(*g));

    if (!g)
        return RANK_ERR_NO_MEMORY;
    g->job = job;
    rk_list_init(&g->watchers);
    g->rank = calloc((size_t)job->size + 1, sizeof(*g->rank));
    g->host = calloc((size_t)job->nhosts + 1, sizeof(*g->host));
    g->agent = calloc((size_t)job->nhosts + 1, sizeof(*g->agent));
    if (!g->rank || !g->host || !g->agent) {
        xr_liveness_close(g);
        return RANK_ERR_NO_MEMORY;
    }
    *out = g;
    return RANK_OK;
}

void xr_liveness_close(struct xr_liveness *g)
{
    if (!g)
        return;
    free(g->rank);
    free(g->host);
    free(g->agent);
    free(g);
}

void xr_liveness_watch(struct xr_liveness *g, struct xr_liveness_watcher *watcher)
{
    rk_list_append(&g->watchers, &watcher->link);
}

void xr_liveness_unwatch(struct xr_liveness_watcher *watcher)
{
    rk_list_remove(&watcher->link);
}

static bool *flag(const struct xr_liveness *g, enum xr_liveness_what what, uint32_t number)
{
    if (what == XR_FAILED_RANK)
        return number < g->job->size ? &g->rank[number] : NULL;
    if (number >= g->job->nhosts)
        return NULL;
    return what == XR_FAILED_HOST ? &g->host[number] : &g->agent[number];
}

void xr_liveness_note(struct xr_liveness *g, enum xr_liveness_what what, uint32_t number)
{
    bool *known = g ? flag(g, what, number) : NULL;

    if (!known || *known)
        return;
    *known = true;
    if (what == XR_FAILED_AGENT)
        g->host[number] = true;
    for (struct rk_link *l = g->watchers.next; l != &g->watchers; l = l->next) {
        struct xr_liveness_watcher *w = rk_list_entry(l, struct xr_liveness_watcher, link);
        w->on_gone(w, what, number);
    }
}

bool xr_liveness(const struct xr_liveness *g, enum xr_liveness_what what, uint32_t number)
{
    const bool *known = flag(g, what, number);

    return known && (*known || (what == XR_FAILED_RANK && g->host[g->job->host_of[number]]));
}
