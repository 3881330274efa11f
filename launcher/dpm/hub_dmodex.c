/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub_dmodex.c: forward modex requests between jobs. See hub_internal.h.
 *
 * Both the hub and the front end of the other job keep the time-out: the request
 * must end there, too, and that front end may have stopped.
 */
#include "launcher/dpm/hub_internal.h"
#include "launcher/overlay/dmodex.h"

#include <stdlib.h>

struct modex_request {
    struct rk_link link;
    struct xr_hub *hub;
    struct xr_rpc_origin from;
    uint32_t id, to;
    struct event *late; /* or NULL */
};

static void hub_dmodex_drop(struct modex_request *q)
{
    rk_list_remove(&q->link);
    if (q->late)
        event_free(q->late);
    free(q);
}

/* Answer without data. */
static void hub_dmodex_give_up(struct modex_request *q, enum xr_rpc_status status)
{
    struct xr_hub *h = q->hub;
    struct xr_rpc_origin from = q->from;

    hub_dmodex_drop(q);
    xr_hub_answer_with(h, &from, status, NULL, 0, NULL);
}

static void hub_dmodex_on_late(evutil_socket_t fd, short what, void *arg)
{
    struct modex_request *q = arg;

    (void)fd;
    (void)what;
    hub_dmodex_give_up(q, XR_TOO_LATE);
}

static struct modex_request *hub_dmodex_add(struct xr_hub *h, const struct xr_rpc_origin *from, uint32_t to, uint32_t timeout_s)
{
    const struct timeval late = {(time_t)timeout_s, 0};
    struct modex_request *q = calloc(1, sizeof(*q));

    if (!q)
        return NULL;
    *q = (struct modex_request){.hub = h, .from = *from, .id = h->next_id++, .to = to};
    rk_list_append(&h->dmodex_requests, &q->link);
    if (timeout_s) {
        q->late = evtimer_new(h->base, hub_dmodex_on_late, q);
        if (!q->late || event_add(q->late, &late)) {
            hub_dmodex_drop(q);
            return NULL;
        }
    }
    return q;
}

void xr_hub_request_dmodex(struct xr_hub *h, const struct xr_rpc_origin *from, struct xr_unpacker *u)
{
    const char *id = xr_unpack_string(u);
    uint32_t rank = xr_unpack_u32(u), timeout_s = xr_unpack_u32(u);
    struct xr_packer p = {0};
    struct xr_hub_job *to;
    struct modex_request *q;

    if (!xr_unpack_done(u) || !id) {
        xr_hub_answer_with(h, from, XR_REFUSED, NULL, 0, NULL);
        return;
    }
    to = xr_hub_job_of(h, xr_hub_find_job(h, id));
    if (!to || to->gone || (rank != XR_ALL_RANKS && rank >= to->info.size)) {
        xr_hub_answer_with(h, from, XR_NOT_FOUND, NULL, 0, NULL);
        return;
    }
    if (rank == XR_ALL_RANKS) { /* for the job info alone */
        xr_hub_answer_with(h, from, XR_DONE, NULL, 0, to);
        return;
    }
    q = hub_dmodex_add(h, from, to->number, timeout_s);
    if (!q) {
        xr_hub_answer_with(h, from, XR_NO_ROOM, NULL, 0, NULL);
        return;
    }
    xr_pack_u32(&p, q->id);
    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, timeout_s);
    h->ops->send(h->arg, to->number, XR_DOWN_DMODEX, &p);
}

bool xr_hub_on_dmodex(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u)
{
    uint32_t id = xr_unpack_u32(u), found = xr_unpack_u32(u);
    struct xr_rpc_origin from;
    size_t len;
    const void *data = xr_unpack_bytes(u, &len);

    if (!xr_unpack_done(u))
        return false;
    for (struct rk_link *l = h->dmodex_requests.next; l != &h->dmodex_requests; l = l->next) {
        struct modex_request *q = rk_list_entry(l, struct modex_request, link);
        if (q->id != id || q->to != j->number)
            continue;
        from = q->from;
        hub_dmodex_drop(q);
        xr_hub_answer_with(h, &from, found == XR_FOUND ? XR_DONE : found == XR_FOUND_LATE ? XR_TOO_LATE : XR_NOT_FOUND,
                           data, len, j);
        break;
    }
    return true; /* no match: the request has ended */
}

void xr_hub_drop_dmodex(struct xr_hub *h, uint32_t job)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &h->dmodex_requests) {
        struct modex_request *q = rk_list_entry(l, struct modex_request, link);
        if (q->to == job || q->from.job == job)
            hub_dmodex_give_up(q, XR_NOT_FOUND);
    }
}

void xr_hub_free_dmodex(struct xr_hub *h)
{
    while (!rk_list_empty(&h->dmodex_requests))
        hub_dmodex_drop(rk_list_entry(h->dmodex_requests.next, struct modex_request, link));
}
