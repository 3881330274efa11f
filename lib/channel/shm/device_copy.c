/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_copy.c: move messages from and to device memory by one copy.
 *
 * Payload in device memory: the receiver maps it and copies it into the receive buffer. Payload in host memory, for a
 * buffer in device memory: the receiver requests the sender to map the buffer and to copy (PUSH), and the sender
 * replies (PUSHED). Where memory cannot be mapped, the message is streamed through host memory.
 */
#include "lib/channel/shm/device_copy.h"
#include "lib/base/log.h"
#include "lib/data/view_stage.h"

/*
 * Copy between memory of a peer, from far on, and own memory of a kind; in: into own memory. One copy, or one for each
 * mapping of the owner.
 */
static rank_status_t copy_far(struct rk_shm_ep *ep, struct rk_far far, uint64_t want, char *own, const struct rk_kind *kind, bool in)
{
    while (want) {
        const struct rk_import *m;
        rank_status_t st = rk_import(ep, &far, kind ? own : NULL, &m);
        uint64_t n;

        if (st)
            return st;
        n = m->bytes - far.offset < want ? m->bytes - far.offset : want;
        st = in ? rk_kind_copy(own, kind, m->at + far.offset, m->kind, n) : rk_kind_copy(m->at + far.offset, m->kind, own, kind, n);
        if (st)
            return st;
        own += n;
        want -= n;
        far.offset += n;
    }
    return RANK_OK;
}

rank_status_t rk_device_copy_in(struct rk_shm_ep *ep, uint64_t name, uint64_t offset, void *to, const struct rk_kind *kind, size_t bytes)
{
    return copy_far(ep, (struct rk_far){name, offset}, bytes, to, kind, true);
}

static RK_COLD void report_staged(const struct rk_shm_ep *ep)
{
    static bool reported;

    if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED))
        rk_warn("device memory of rank %u cannot be mapped by this rank: its messages are copied through host memory, and so perhaps "
                "those of other ranks (RANK_LOG=info gives the reason)",
                ep->peer->id.rank);
}

bool rk_device_fetch(struct rk_shm_recv *r, uint64_t name)
{
    const struct rk_view *view = &r->req->view;
    rank_status_t st;

    if (view->ops && !view->ops->kind) /* a list */
        return false;
    st = copy_far(r->ep, (struct rk_far){name, r->at}, r->want, view->base, view->ops ? view->ops->kind : NULL, true);
    if (st == RANK_ERR_NOT_SUPPORTED) {
        report_staged(r->ep);
        return false;
    }
    rk_shm_recv_finish(r, st);
    return true;
}

/* ---------------------------------------------------------------------------- push */

bool rk_device_request_push(struct rk_shm_recv *r)
{
    struct rk_shm_push p = {.fetch = {.sender = rk_id_unpack(r->sender), .want = r->want}};
    struct rk_view view = {r->req->view.base, r->want, r->req->view.ops};
    uint64_t offset;

    if (r->ep->no_push || !view.ops || !view.ops->kind)
        return false;
    p.name = rk_export_view(r->shm, &view, &offset);
    if (!p.name || rk_req_name(r->req))
        return false;
    p.fetch.receiver = r->req->id;
    r->req->priv[RK_SHM_R_WANT] = r->want;
    r->req->priv[RK_SHM_R_GOT] = r->req->priv[RK_SHM_R_BAD] = 0;
    rk_list_append(&r->shm->receiving, &r->req->link);
    rk_send_control(r->ep->peer, RK_SHM_PUSH, offset, &p, sizeof(p));
    return true;
}

void rk_device_push(struct rk_shm *shm, struct rk_shm_ep *ep, uint64_t offset, const struct rk_shm_push *p)
{
    struct rank_request *req = rk_req_find(shm->ctx, p->fetch.sender);
    rank_status_t st;

    if (!req || req->type != RK_REQ_SEND || req->peer != ep->peer || req->view.ops || p->fetch.want > req->view.bytes) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    st = copy_far(ep, (struct rk_far){p->name, offset}, p->fetch.want, req->view.base, NULL, false);
    if (st != RANK_ERR_NOT_SUPPORTED)
        rk_shm_complete_linked(req, st);
    rk_send_control(ep->peer, RK_SHM_PUSHED, (uint64_t)(int64_t)st, &p->fetch, sizeof(p->fetch));
}

void rk_device_pushed(struct rk_shm *shm, struct rk_shm_ep *ep, uint64_t status, const struct rk_shm_fetch *f)
{
    struct rank_request *req = rk_req_find(shm->ctx, f->receiver);

    if (!req || req->type != RK_REQ_RECV || req->peer != ep->peer || f->want != req->priv[RK_SHM_R_WANT]) {
        rk_engine_refused(shm->ctx, &shm->bad_frames);
        return;
    }
    if ((rank_status_t)(int64_t)status != RANK_ERR_NOT_SUPPORTED) {
        rk_shm_complete_linked(req, (rank_status_t)(int64_t)status);
        return;
    }
    ep->no_push = true; /* stream it, and all later ones */
    rk_view_stage_open(&req->view, f->want);
    rk_info("rank %u cannot map device memory of this rank; it sends through host memory", ep->peer->id.rank);
    rk_send_control(ep->peer, RK_SHM_FETCH, 0, f, sizeof(*f));
}
