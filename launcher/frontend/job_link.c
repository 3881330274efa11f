/* SPDX-License-Identifier: BSD-3-Clause */
/* job_link.c: exchange messages of a front end with the hub. See job_link.h. */
#include "launcher/frontend/job_link_internal.h"
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/spawned_xrun.h"
#include "launcher/overlay/protocol.h"
#include "launcher/dpm/job_info.h"

#include <signal.h>
#include <stdlib.h>

/* --------------------------------------------------------------------- up */

/* Send to the hub: a call in the first xrun, a message from a spawned one. Empties the packer. */
static bool job_link_send(struct front *f, enum xr_hub_message word, struct xr_packer *p)
{
    struct xr_job_link *l = f->link;
    struct xr_unpacker u = {p->data, p->len, p->failed};
    bool ok = true;

    if (l->hub) {
        ok = xr_hub_handle(l->hub, 0, word, &u);
        xr_packer_free(p);
    } else if (l->conn) {
        xr_conn_send_to(l->conn, XR_NODE_NEXT, word, p);
    } else {
        xr_packer_free(p);
    }
    return ok;
}

static void job_link_on_modex(void *arg, void *token, enum xr_found found, const void *data, size_t len)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, (uint32_t)(uintptr_t)token);
    xr_pack_u32(&p, found);
    xr_pack_bytes(&p, data, len);
    job_link_send(arg, XR_UP_DMODEX, &p);
}

static void job_link_on_asked(void *arg, uint32_t rank, uint32_t id)
{
    struct front *f = arg;

    (void)rank; /* a front end has no ranks */
    xr_dmodex_found(f->link->dmodex, id, false, NULL, 0);
}

static const struct xr_dmodex_ops modex_ops = {.on_answer = job_link_on_modex, .on_asked = job_link_on_asked};

/* ------------------------------------------------------------------- down */

static bool take_answer(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    struct xr_packer p = {0};

    if (u->failed || node >= f->nnodes)
        return false;
    xr_pack_raw(&p, u->at, u->left);
    xr_tree_send(f->tree, node, XR_MSG_RPC_DONE, &p);
    return true;
}

static bool take_modex(struct front *f, struct xr_unpacker *u)
{
    uint32_t id = xr_unpack_u32(u), rank = xr_unpack_u32(u), timeout_s = xr_unpack_u32(u), node;
    void *token = (void *)(uintptr_t)id;

    if (!xr_unpack_done(u))
        return false;
    node = xr_front_launched(f) && rank < f->job->size ? f->job->host_of[rank] : XR_NO_HOST;
    if (node == XR_NO_HOST || f->nodes[node].done || f->nodes[node].gone)
        job_link_on_modex(f, token, XR_FOUND_NEVER, NULL, 0);
    else
        xr_dmodex_request(f->link->dmodex, node, rank, timeout_s, token);
    return true;
}

static bool take_end(struct front *f, struct xr_unpacker *u)
{
    int code = (int)xr_unpack_u32(u);
    uint32_t ms = xr_unpack_u32(u);
    int sig = (int)xr_unpack_u32(u);

    if (!xr_unpack_done(u) || sig < 0 || sig > 64)
        return false;
    f->link->end_requested = !f->link->hub; /* the first xrun has to end the others itself */
    if (sig)
        f->link->ops->force(f, code, sig, ms);
    else
        f->link->ops->end(f, code);
    return true;
}

static bool take_signal(struct front *f, struct xr_unpacker *u)
{
    int sig = (int)xr_unpack_u32(u);

    if (!xr_unpack_done(u) || sig < 1 || sig > 64)
        return false;
    f->link->ops->signal(f, sig);
    return true;
}

/* To all agents, unchanged. */
static bool job_link_pass_on(struct front *f, uint32_t kind, struct xr_unpacker *u)
{
    struct xr_packer p = {0};

    xr_pack_raw(&p, u->at, u->left);
    xr_tree_send(f->tree, XR_NODE_ALL, kind, &p);
    return true;
}

/* Handle a message of the hub. Returns false if it is malformed. */
static bool job_link_take_word(struct front *f, uint32_t word, struct xr_unpacker *u)
{
    switch (word) {
    case XR_DOWN_ANSWER:
        return take_answer(f, u);
    case XR_DOWN_DMODEX:
        return take_modex(f, u);
    case XR_DOWN_DIED:
        return job_link_pass_on(f, XR_MSG_OTHER_DIED, u);
    case XR_DOWN_EVENT:
        return xr_job_is_ending(f->state) || job_link_pass_on(f, XR_MSG_OTHER_EVENT, u);
    case XR_DOWN_END:
        return take_end(f, u);
    case XR_DOWN_AGAIN:
        if (!xr_unpack_done(u))
            return false;
        xr_heartbeat_again(f->heartbeat);
        return true;
    case XR_DOWN_ALL_STALLED:
        if (!xr_unpack_done(u))
            return false;
        f->link->ops->stalled(f);
        return true;
    case XR_DOWN_SIGNAL:
        return take_signal(f, u);
    default:
        return false;
    }
}

static void send_down(void *arg, uint32_t job, enum xr_hub_message word, struct xr_packer *p)
{
    struct xr_unpacker u = {p->data, p->len, p->failed};

    if (job) {
        xr_child_jobs_send(arg, job, word, p);
    } else {
        job_link_take_word(arg, word, &u);
        xr_packer_free(p);
    }
}

static const struct xr_hub_ops hub_ops = {send_down, xr_child_jobs_start};

/* ------------------------------------------ a spawned xrun's connection to the first */

static bool on_word(void *arg, uint32_t node, uint32_t kind, struct xr_unpacker *u)
{
    (void)node;
    return job_link_take_word(arg, kind, u);
}

static void on_link_closed(void *arg, const char *why)
{
    struct front *f = arg;

    (void)why;
    xr_conn_close(f->link->conn);
    f->link->conn = NULL;
    if (xr_job_is_done(f->state)) {
        f->link->ops->leave(f); /* queued data may have been all that remained */
        return;
    }
    if (!xr_job_is_ending(f->state))
        xr_stream_print(f->err, "xrun: error: the first xrun is gone; ending the job %s", f->job->id);
    f->link->ops->force(f, 1, SIGTERM, xr_front_grace(f, XR_FAILURE_GRACE_MS));
}

static void on_link_drained(void *arg)
{
    struct front *f = arg;

    f->link->ops->leave(f);
}

static const struct xr_conn_ops link_conn_ops = {on_word, on_link_closed, on_link_drained, NULL};

/* ---------------------------------------------------------------- reports to the hub */

rank_status_t xr_job_link_describe(struct front *f)
{
    struct xr_packer p = {0};
    rank_status_t st = xr_dmodex_open(f->base, f->tree, f->liveness, XR_NODE_FRONT, &modex_ops, f, &f->link->dmodex);

    if (st)
        return st;
    xr_job_info_pack(f->job, &p);
    return job_link_send(f, XR_UP_JOB_INFO, &p) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

void xr_job_link_check_started(struct front *f)
{
    struct xr_packer p = {0};
    bool any = false;

    for (uint32_t i = 0; i < f->nnodes; i++) {
        const struct node *n = &f->nodes[i];
        if (f->plan->placement.host[i].ranks == 0)
            continue;
        if (!n->started && !n->gone)
            return;
        any = any || n->started;
    }
    if (!any || f->link->up)
        return;
    f->link->up = true;
    if (f->state == XR_JOB_LAUNCHING)
        xr_front_enter(f, XR_JOB_RUNNING);
    job_link_send(f, XR_UP_STARTED, &p);
}

void xr_job_link_rank_ended(struct front *f, uint32_t rank, bool failed, bool by_signal)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, failed);
    xr_pack_u32(&p, by_signal);
    job_link_send(f, XR_UP_ENDED, &p);
}

void xr_job_link_host_lost(struct front *f, uint32_t node)
{
    for (uint32_t i = f->of_host.first[node]; i < f->of_host.first[node + 1]; i++)
        xr_job_link_rank_ended(f, f->of_host.ranks[i], true, true);
}

void xr_job_link_stalled(struct front *f, bool stalled)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, stalled);
    job_link_send(f, XR_UP_STALLED, &p);
}

void xr_job_link_event(struct front *f, const struct xr_event *event)
{
    struct xr_packer p = {0};

    xr_event_pack(event, &p);
    job_link_send(f, XR_UP_EVENT, &p);
}

void xr_job_link_client_lost(struct front *f, struct xr_unpacker *u)
{
    struct xr_packer p = {0};

    if (!xr_front_launched(f))
        return;
    xr_pack_raw(&p, u->at, u->left);
    job_link_send(f, XR_UP_BROKEN, &p);
}

void xr_job_link_ended(struct front *f)
{
    /* Connected jobs got their end orders before: code 0 ends no other job. */
    if (f->link && f->link->hub)
        xr_hub_job_ended(f->link->hub, 0, 0);
}

bool xr_job_link_sending(const struct front *f)
{
    return f->link && f->link->conn && xr_conn_backlog(f->link->conn) > 0;
}

bool xr_job_link_take(struct front *f, uint32_t kind, struct xr_unpacker *u)
{
    struct xr_packer p = {0};

    if (!xr_front_launched(f))
        return false;
    if (kind == XR_MSG_DMODEX_REPLY)
        return xr_dmodex_receive(f->link->dmodex, kind, u);
    xr_pack_raw(&p, u->at, u->left);
    return job_link_send(f, XR_UP_RPC, &p);
}

void xr_job_link_end(struct front *f, int sig, uint32_t grace_ms)
{
    struct xr_job_link *l = f->link;
    struct xr_packer p = {0};

    if (!l || l->end_requested)
        return;
    if (l->hub) {
        bool forced = xr_job_is_forced(f->state);
        xr_hub_end_others(l->hub, 0, forced, f->code, grace_ms, forced ? sig : 0);
    } else {
        xr_pack_u32(&p, (uint32_t)f->code);
        job_link_send(f, XR_UP_FAILING, &p);
    }
}

/* --------------------------------------------------------------- open and close */

rank_status_t xr_job_link_open(struct front *f, const struct xr_job_link_ops *ops)
{
    struct xr_spawned *spawned = f->options->spawned;
    struct xr_job_link *l = calloc(1, sizeof(*l));
    rank_status_t st;

    if (!l)
        return RANK_ERR_NO_MEMORY;
    l->ops = ops;
    f->link = l;
    rk_list_init(&l->children);
    if (!spawned)
        return xr_hub_open(f->base, f->options->go_on, &hub_ops, f, &l->hub);
    st = xr_conn_open(f->base, spawned->link, NULL, &link_conn_ops, f, &l->conn);
    if (!st)
        spawned->link = -1;
    return st;
}

void xr_job_link_close(struct front *f)
{
    struct xr_job_link *l = f->link;

    if (!l)
        return;
    if (!rk_list_empty(&l->children)) {
        f->orphans = true;
        xr_job_link_ended(f); /* no rank of this job is left to be notified */
        xr_child_jobs_wait(f);
    }
    xr_conn_close(l->conn);
    xr_dmodex_close(l->dmodex);
    xr_hub_close(l->hub);
    free(l);
    f->link = NULL;
}
