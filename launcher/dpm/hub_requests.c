/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub_requests.c: handle requests of agents: names, group operations, spawn.
 *
 * See hub_internal.h.
 */
#include "launcher/dpm/hub_internal.h"
#include "launcher/dpm/job_info.h"

/* ----------------------------------------------------------------------- names */

static void on_found(void *arg, const struct xr_rpc_origin *to, enum xr_rpc_status status,
                                  struct xr_packer *found)
{
    struct xr_packer p = {0};

    xr_hub_begin_answer(to, &p, status);
    xr_pack_raw(&p, found->data, found->len);
    xr_packer_free(found);
    xr_hub_send_answer(arg, to, &p);
}

static bool handle_name_request(struct xr_hub *h, const struct xr_hub_job *j, enum xr_rpc what,
                                const struct xr_rpc_origin *from, uint32_t rank, struct xr_unpacker *u)
{
    const struct xr_job *o = &j->info;
    struct xr_process process = {.job = j->number, .rank = rank, .id = o->id, .host = o->hosts[from->node]};

    if (rank >= o->size)
        return false;
    if (j->fate[rank] & XR_FATE_ENDED) { /* a name published now would never be dropped */
        xr_hub_answer(h, from, XR_PARTICIPANT_LOST);
        return true;
    }
    process.app = (uint32_t)(xr_job_app_of(o, rank) - o->apps);
    if (what == XR_RPC_PUBLISH)
        xr_hub_answer(h, from, xr_nameserver_publish(h->names, &process, u));
    else if (what == XR_RPC_UNPUBLISH)
        xr_hub_answer(h, from, xr_nameserver_unpublish(h->names, &process, u));
    else
        xr_nameserver_lookup(h->names, &process, u, from);
    return true;
}

/* ------------------------------------------------------------- group operations */

static uint32_t find_job(void *arg, const char *id)
{
    return xr_hub_find_job(arg, id);
}

static bool is_past(void *arg, const char *id)
{
    return xr_hub_is_past(arg, id);
}

static uint32_t hub_requests_size_of(void *arg, uint32_t job)
{
    return xr_hub_job_of(arg, job)->info.size;
}

static enum xr_presence presence_of(void *arg, uint32_t job, uint32_t rank)
{
    const struct xr_hub_job *j = xr_hub_job_of(arg, job);

    if (!j || j->gone || (rank == XR_ALL_RANKS ? j->nended > 0 : (j->fate[rank] & XR_FATE_ENDED) != 0))
        return XR_ENDED;
    return (rank == XR_ALL_RANKS ? j->nbroken > 0 : (j->fate[rank] & XR_FATE_BROKEN) != 0) ? XR_BROKEN : XR_PRESENT;
}

static void on_completed(void *arg, enum xr_rpc what, const uint32_t *jobs, uint32_t n)
{
    struct xr_hub *h = arg;

    for (uint32_t i = 0; i < n && what != XR_RPC_FENCE; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            if (what == XR_RPC_CONNECT)
                xr_hub_connect(h, jobs[i], jobs[k]);
            else
                xr_hub_disconnect(h, jobs[i], jobs[k]);
        }
    }
}

static void on_gathered(void *arg, const struct xr_rpc_origin *to, enum xr_rpc_status status,
                        const void *data, size_t len, const uint32_t *jobs, uint32_t n)
{
    struct xr_hub *h = arg;
    struct xr_packer p = {0};
    uint32_t others = 0;

    for (uint32_t i = 0; i < n && status == XR_DONE; i++)
        others += jobs[i] != to->job;
    xr_hub_begin_answer(to, &p, status);
    xr_pack_bytes(&p, data, len);
    xr_pack_u32(&p, others);
    for (uint32_t i = 0; i < n && others; i++) {
        if (jobs[i] != to->job)
            xr_hub_pack_job_info(h, to, xr_hub_job_of(h, jobs[i]), &p);
    }
    xr_hub_send_answer(h, to, &p);
}

static const struct xr_group_ops_upcalls group_ops_upcalls = {find_job, is_past, hub_requests_size_of, presence_of, on_completed,
                                                  on_gathered};

/* ----------------------------------------------------------------------- spawn */

static void hub_requests_start(struct xr_hub *h, struct xr_hub_job *parent, const struct xr_rpc_origin *from,
                               uint32_t rank, struct xr_unpacker *u)
{
    struct xr_packer info = {0};
    struct xr_hub_job *j = rank < parent->info.size ? xr_hub_add_job(h) : NULL;

    if (!j) {
        xr_hub_answer_with(h, from, XR_REFUSED, NULL, 0, NULL);
        return;
    }
    xr_job_info_pack(&parent->info, &info);
    j->spawner = *from;
    j->starting = true;
    j->parent = parent->number;
    xr_hub_connect(h, j->number, parent->number); /* a spawned job is connected from the start */
    if (!h->ops->start(h->arg, j->number, parent->info.id, rank, u, &info))
        xr_hub_job_ended(h, j->number, 1);
    xr_packer_free(&info);
}

/* -------------------------------------------------------------------------- requests */

bool xr_hub_on_request(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u)
{
    struct xr_rpc_origin from = {.job = j->number};
    uint32_t rank, what;

    from.node = xr_unpack_u32(u);
    from.id = xr_unpack_u32(u);
    rank = xr_unpack_u32(u);
    what = xr_unpack_u32(u);
    if (u->failed || !j->has_info || from.node >= j->info.nhosts)
        return false;
    switch (what) {
    case XR_RPC_PUBLISH:
    case XR_RPC_LOOKUP:
    case XR_RPC_UNPUBLISH:
        return handle_name_request(h, j, what, &from, rank, u);
    case XR_RPC_FENCE:
    case XR_RPC_CONNECT:
    case XR_RPC_DISCONNECT:
        xr_group_ops_join(h->group_ops, what, &from, u);
        return true;
    case XR_RPC_MODEX:
        xr_hub_request_dmodex(h, &from, u);
        return true;
    case XR_RPC_SPAWN:
        hub_requests_start(h, j, &from, rank, u);
        return true;
    default:
        return false;
    }
}

rank_status_t xr_hub_open_services(struct xr_hub *h)
{
    rank_status_t st = xr_nameserver_open(h->base, on_found, h, &h->names);

    return st ? st : xr_group_ops_open(h->base, &group_ops_upcalls, h, &h->group_ops);
}
