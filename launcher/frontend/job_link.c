/* SPDX-License-Identifier: BSD-3-Clause */
/* job_link.c: what a front end, as one of several jobs, says to the hub and hears from it. See job_link.h. */
#include "launcher/frontend/job_link_internal.h"
#include "launcher/overlay/protocol.h"
#include "launcher/dpm/job_info.h"
#include "launcher/frontend/spawned_xrun.h"

#include <signal.h>
#include <stdlib.h>

/* --------------------------------------------------------------------- up */

static bool job_link_say(struct front *f, enum xr_word word, struct xr_packer *p)
{
    struct xr_front_jobs *j = f->jobs;
    struct xr_unpacker u = {p->data, p->len, p->failed};
    bool ok = true;

    if (j->hub) {
        ok = xr_hub_take(j->hub, 0, word, &u);
        xr_packer_free(p);
    } else if (j->link) {
        xr_wire_send_to(j->link, XR_NODE_NEXT, word, p);
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
    job_link_say(arg, XR_UP_MODEX, &p);
}

static void job_link_on_asked(void *arg, uint32_t rank, uint32_t id)
{
    struct front *f = arg;

    (void)rank; /* nobody asks a front end */
    xr_modexes_found(f->jobs->modexes, id, false, NULL, 0);
}

static const struct xr_modex_ops modex_ops = {.on_answer = job_link_on_modex, .on_asked = job_link_on_asked};

/* ------------------------------------------------------------------- down */

static bool job_link_take_answer(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    struct xr_packer p = {0};

    if (u->failed || node >= f->nnodes)
        return false;
    xr_pack_raw(&p, u->at, u->left);
    xr_tree_send(f->tree, node, XR_MSG_ERRAND_DONE, &p);
    return true;
}

static bool take_question(struct front *f, struct xr_unpacker *u)
{
    uint32_t id = xr_unpack_u32(u), rank = xr_unpack_u32(u), timeout_s = xr_unpack_u32(u), node;
    void *token = (void *)(uintptr_t)id;

    if (!xr_unpack_done(u))
        return false;
    node = f->told && rank < f->job->size ? f->job->host_of[rank] : XR_NO_HOST;
    if (node == XR_NO_HOST || f->nodes[node].done || f->nodes[node].gone)
        job_link_on_modex(f, token, XR_FOUND_NEVER, NULL, 0);
    else
        xr_modexes_ask(f->jobs->modexes, node, rank, timeout_s, token);
    return true;
}

static bool job_link_take_end(struct front *f, struct xr_unpacker *u)
{
    int code = (int)xr_unpack_u32(u);
    uint32_t ms = xr_unpack_u32(u);
    int sig = (int)xr_unpack_u32(u);

    if (!xr_unpack_done(u) || sig < 0 || sig > 64)
        return false;
    f->jobs->obeying = !f->jobs->hub; /* the first xrun still has others to end */
    if (!sig)
        xr_front_blame(f); /* it may have been one of our own */
    if (sig) {
        xr_front_force(f, code, sig, ms);
    } else if (!f->done && !f->ending) {
        xr_report_cause(f->report, "a job that is connected with this one failed");
        xr_stream_say(f->err, "xrun: error: a job that is connected with %s failed; ending the job", f->job->id);
        xr_front_judge(f, code);
        xr_front_end_job(f);
    }
    return true;
}

bool xr_front_hear(struct front *f, uint32_t word, struct xr_unpacker *u)
{
    struct xr_packer p = {0};
    int sig;

    switch (word) {
    case XR_DOWN_ANSWER:
        return job_link_take_answer(f, u);
    case XR_DOWN_MODEX:
        return take_question(f, u);
    case XR_DOWN_DIED:
        xr_pack_raw(&p, u->at, u->left);
        xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_OTHER_DIED, &p);
        return true;
    case XR_DOWN_NOTICE:
        if (f->ending)
            return true;
        xr_pack_raw(&p, u->at, u->left);
        xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_OTHER_NOTICE, &p);
        return true;
    case XR_DOWN_END:
        return job_link_take_end(f, u);
    case XR_DOWN_AGAIN:
        if (!xr_unpack_done(u))
            return false;
        xr_life_again(f->life);
        return true;
    case XR_DOWN_HOPELESS:
        if (!xr_unpack_done(u))
            return false;
        xr_front_hopeless(f);
        return true;
    case XR_DOWN_SIGNAL:
        sig = (int)xr_unpack_u32(u);
        if (!xr_unpack_done(u) || sig < 1 || sig > 64)
            return false;
        xr_front_forward(f, sig);
        return true;
    default:
        return false;
    }
}

/* ----------------------------------------------------- a spawned one's link */

static bool on_word(void *arg, uint32_t node, uint32_t kind, struct xr_unpacker *u)
{
    (void)node;
    return xr_front_hear(arg, kind, u);
}

static void on_link_closed(void *arg, const char *why)
{
    struct front *f = arg;

    (void)why;
    xr_wire_close(f->jobs->link);
    f->jobs->link = NULL;
    if (f->done) {
        xr_front_leave_if_over(f); /* it may have had something left to say */
        return;
    }
    if (!f->ending)
        xr_stream_say(f->err, "xrun: error: the first xrun is gone; ending the job %s", f->job->id);
    xr_front_force(f, 1, SIGTERM, xr_front_grace(f, XR_FAILURE_GRACE_MS));
}

static void on_link_drained(void *arg)
{
    xr_front_leave_if_over(arg);
}

static const struct xr_wire_ops link_ops = {on_word, on_link_closed, on_link_drained, NULL};

/* ------------------------------------------------------- what the front end says */

rank_status_t xr_front_jobs_told(struct front *f)
{
    struct xr_packer p = {0};
    rank_status_t st = xr_modexes_open(f->base, f->tree, f->gone, XR_NODE_FRONT, &modex_ops, f, &f->jobs->modexes);

    if (st)
        return st;
    xr_outline_pack(f->job, &p);
    return job_link_say(f, XR_UP_OUTLINE, &p) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

/* Of hosts that are lost nothing more will come. Who has asked for the job is to hear of it if any of it runs. */
static void tell_if_up(struct front *f)
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
    if (!any || f->jobs->up)
        return;
    f->jobs->up = true;
    job_link_say(f, XR_UP_STARTED, &p);
}

void xr_front_jobs_started(struct front *f, uint32_t node)
{
    f->nodes[node].started = true;
    tell_if_up(f);
}

void xr_front_jobs_ended(struct front *f, uint32_t rank, bool failed, bool by_signal)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, failed);
    xr_pack_u32(&p, by_signal);
    job_link_say(f, XR_UP_ENDED, &p);
}

void xr_front_jobs_still(struct front *f, bool still)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, still);
    job_link_say(f, XR_UP_STILL, &p);
}

void xr_front_jobs_notice(struct front *f, const struct xr_notice *notice)
{
    struct xr_packer p = {0};

    xr_notice_pack(notice, &p);
    job_link_say(f, XR_UP_NOTICE, &p);
}

void xr_front_jobs_broken(struct front *f, struct xr_unpacker *u)
{
    struct xr_packer p = {0};

    if (!f->told)
        return;
    xr_pack_raw(&p, u->at, u->left);
    job_link_say(f, XR_UP_BROKEN, &p);
}

void xr_front_jobs_lost(struct front *f, uint32_t node)
{
    if (!f->told)
        return;
    for (uint32_t i = f->of_host.first[node]; i < f->of_host.first[node + 1]; i++)
        xr_front_jobs_ended(f, f->of_host.ranks[i], true, true);
    if (f->options->go_on && !f->ending)
        tell_if_up(f);
}

void xr_front_jobs_over(struct front *f)
{
    /* Who is to end with it has been told. */
    if (f->jobs && f->jobs->hub)
        xr_hub_gone(f->jobs->hub, 0, 0);
}

bool xr_front_jobs_speaking(const struct front *f)
{
    return f->jobs && f->jobs->link && xr_wire_backlog(f->jobs->link) > 0;
}

bool xr_front_jobs_take(struct front *f, uint32_t kind, struct xr_unpacker *u)
{
    struct xr_packer p = {0};

    if (!f->told)
        return false;
    if (kind == XR_MSG_MODEX_ANSWER)
        return xr_modexes_take(f->jobs->modexes, kind, u);
    xr_pack_raw(&p, u->at, u->left);
    return job_link_say(f, XR_UP_ERRAND, &p);
}

void xr_front_jobs_end(struct front *f, int sig, uint32_t ms)
{
    struct xr_front_jobs *j = f->jobs;
    struct xr_packer p = {0};

    if (!j || j->obeying)
        return;
    if (j->hub) {
        xr_hub_end_others(j->hub, 0, f->forced, f->code, ms, f->forced ? sig : 0);
    } else {
        xr_pack_u32(&p, (uint32_t)f->code);
        job_link_say(f, XR_UP_FAILING, &p);
    }
}

/* --------------------------------------------------------------- start and end */

rank_status_t xr_front_jobs_open(struct front *f)
{
    struct xr_spawned *spawned = f->options->spawned;
    struct xr_front_jobs *j = calloc(1, sizeof(*j));
    rank_status_t st;

    if (!j)
        return RANK_ERR_NO_MEMORY;
    f->jobs = j;
    rk_list_init(&j->children);
    if (!spawned)
        return xr_hub_open(f->base, f->options->go_on, &xr_front_hub_ops, f, &j->hub);
    st = xr_wire_open(f->base, spawned->link, &link_ops, f, &j->link);
    if (!st)
        spawned->link = -1;
    return st;
}

void xr_front_jobs_close(struct front *f)
{
    struct xr_front_jobs *j = f->jobs;

    if (!j)
        return;
    if (!rk_list_empty(&j->children)) {
        f->orphans = true;
        xr_front_wait_for_children(f);
    }
    xr_wire_close(j->link);
    xr_modexes_close(j->modexes);
    xr_hub_close(j->hub);
    free(j);
    f->jobs = NULL;
}
