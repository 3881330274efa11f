/* SPDX-License-Identifier: BSD-3-Clause */
/* hub.c: open the hub and handle messages of front ends. See hub.h. */
#include "launcher/dpm/hub_internal.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/event.h"

#include <stdlib.h>

/* Send an event whose range exceeds its job to all other jobs that run now. */
static bool on_notice(struct xr_hub *h, const struct xr_hub_job *j, struct xr_unpacker *u)
{
    struct xr_event event;

    if (!j->has_info || !xr_event_unpack(u, j->info.size, &event))
        return false;
    for (uint32_t i = 0; i < h->njobs; i++) {
        const struct xr_hub_job *to = h->jobs[i];
        struct xr_packer p = {0};
        if (to == j || !to->has_info || to->gone)
            continue;
        xr_pack_string(&p, j->info.id);
        xr_event_pack(&event, &p);
        h->ops->send(h->arg, to->number, XR_DOWN_EVENT, &p);
    }
    return true;
}

static bool hub_handle(struct xr_hub *h, struct xr_hub_job *j, enum xr_hub_message word, struct xr_unpacker *u)
{
    int code;

    switch (word) {
    case XR_UP_JOB_INFO:
        return xr_hub_on_job_info(h, j, u);
    case XR_UP_STARTED:
        if (!xr_unpack_done(u) || !j->has_info || j->up)
            return false;
        j->up = true;
        xr_hub_answer_spawn(h, j, XR_DONE);
        xr_hub_send_past_ends(h, j);
        return true;
    case XR_UP_RPC:
        return xr_hub_on_request(h, j, u);
    case XR_UP_ENDED:
        return xr_hub_on_ended(h, j, u);
    case XR_UP_BROKEN:
        return xr_hub_on_client_lost(h, j, u);
    case XR_UP_STALLED:
        return xr_hub_on_stalled(h, j, u);
    case XR_UP_EVENT:
        return on_notice(h, j, u);
    case XR_UP_DMODEX:
        return xr_hub_on_dmodex(h, j, u);
    case XR_UP_FAILING:
        code = (int)xr_unpack_u32(u);
        if (!xr_unpack_done(u))
            return false;
        if (!h->continue_on_failure && !j->starting)
            xr_hub_end_others(h, j->number, false, code, XR_FAILURE_GRACE_MS, 0);
        return true;
    default:
        return false;
    }
}

bool xr_hub_handle(struct xr_hub *h, uint32_t job, enum xr_hub_message word, struct xr_unpacker *u)
{
    struct xr_hub_job *j = xr_hub_job_of(h, job);
    bool sane;

    if (!j || j->gone)
        return job < h->next_job;
    xr_hub_enter(h);
    sane = hub_handle(h, j, word, u);
    xr_hub_leave(h);
    return sane;
}

/* ------------------------------------------------------------------------- start */

rank_status_t xr_hub_open(struct event_base *base, bool continue_on_failure, const struct xr_hub_ops *ops, void *arg,
                          struct xr_hub **out)
{
    struct xr_hub *h = calloc(1, sizeof(*h));
    rank_status_t st;

    if (!h)
        return RANK_ERR_NO_MEMORY;
    h->base = base;
    h->continue_on_failure = continue_on_failure;
    h->ops = ops;
    h->arg = arg;
    rk_list_init(&h->dmodex_requests);
    st = xr_hub_open_services(h);
    if (!st && !xr_hub_add_job(h))
        st = RANK_ERR_NO_MEMORY;
    if (st)
        xr_hub_close(h);
    else
        *out = h;
    return st;
}

void xr_hub_close(struct xr_hub *h)
{
    if (!h)
        return;
    xr_hub_free_dmodex(h);
    xr_group_ops_close(h->group_ops);
    xr_nameserver_close(h->names);
    xr_hub_free_jobs(h);
    free(h);
}
