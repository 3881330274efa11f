/* SPDX-License-Identifier: BSD-3-Clause */
/* hub_exit.c: report ends and end connected jobs. See hub_internal.h. */
#include "launcher/dpm/hub_internal.h"
#include "launcher/job/timeouts.h"
#include "launcher/util/exit_code.h"

#include <stdlib.h>

/* Send the end of a rank, or with XR_ALL_RANKS of the job. */
static void hub_exit_send(struct xr_hub *h, uint32_t to, const struct xr_hub_job *j, uint32_t rank, uint32_t by_signal)
{
    struct xr_packer p = {0};

    xr_pack_string(&p, j->info.id);
    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, by_signal);
    h->ops->send(h->arg, to, XR_DOWN_DIED, &p);
}

/* Do agents of the job keep the job info of another one? */
static bool keeps_info(const struct xr_hub_job *j, uint32_t about)
{
    for (struct rk_link *l = j->sent.next; l != &j->sent; l = l->next) {
        if (rk_list_entry(l, struct xr_hub_sent_info, link)->about == about)
            return true;
    }
    return false;
}

/* Send the end of a rank, or with XR_ALL_RANKS of the job, to related jobs and to the parent. Jobs that only keep the job
 * info receive XR_ONLY_FORGET. */
static void send_end(struct xr_hub *h, const struct xr_hub_job *j, uint32_t rank, bool by_signal)
{
    bool *near = xr_hub_related(h, j);

    for (uint32_t i = 0; i < h->njobs; i++) {
        const struct xr_hub_job *to = h->jobs[i];
        if (to != j && to->up && !to->gone &&
            ((near ? near[i] : xr_hub_connected(j, to->number)) || (rank == XR_ALL_RANKS && j->parent == to->number)))
            hub_exit_send(h, to->number, j, rank, by_signal);
        else if (to != j && to->up && !to->gone && rank == XR_ALL_RANKS && keeps_info(to, j->number))
            hub_exit_send(h, to->number, j, rank, XR_ONLY_FORGET);
    }
    free(near);
}

void xr_hub_send_past_ends(struct xr_hub *h, const struct xr_hub_job *j)
{
    bool *near = xr_hub_related(h, j);

    for (uint32_t i = 0; near && i < h->njobs; i++) {
        const struct xr_hub_job *other = h->jobs[i];
        if (other == j || !near[i] || !other->has_info)
            continue;
        for (uint32_t r = 0; r < other->info.size && other->nended; r++) {
            if (other->fate[r] & XR_FATE_FAILED)
                hub_exit_send(h, j->number, other, r, (other->fate[r] & XR_FATE_BY_SIGNAL) != 0);
        }
        if (other->gone)
            hub_exit_send(h, j->number, other, XR_ALL_RANKS, false);
    }
    free(near);
}

bool xr_hub_on_ended(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), failed = xr_unpack_u32(u), by_signal = xr_unpack_u32(u), app;
    const struct xr_job *o = &j->info;

    if (!xr_unpack_done(u) || !j->has_info || rank >= o->size)
        return false;
    if (j->fate[rank] & XR_FATE_ENDED)
        return true;
    j->fate[rank] |= (uint8_t)(XR_FATE_ENDED | (failed ? XR_FATE_FAILED : 0) | (by_signal ? XR_FATE_BY_SIGNAL : 0));
    j->nended++;
    j->on_host[o->host_of[rank]]--;
    app = (uint32_t)(xr_job_app_of(o, rank) - o->apps);
    xr_nameserver_ended(h->names, j->number, rank, failed != 0);
    if (--j->left[app] == 0)
        xr_nameserver_app_ended(h->names, j->number, app);
    xr_group_ops_rank_ended(h->group_ops, j->number, rank);
    if (failed)
        send_end(h, j, rank, by_signal != 0);
    return true;
}

bool xr_hub_on_client_lost(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), lost = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || !j->has_info || rank >= j->info.size || lost > 1)
        return false;
    j->nbroken += lost;
    j->nbroken -= (j->fate[rank] & XR_FATE_BROKEN) != 0;
    j->fate[rank] = (uint8_t)((j->fate[rank] & ~XR_FATE_BROKEN) | (lost ? XR_FATE_BROKEN : 0));
    if (lost)
        xr_group_ops_client_lost(h->group_ops, j->number, rank);
    return true;
}

void xr_hub_end_others(struct xr_hub *h, uint32_t job, bool all, int code, uint32_t ms, int sig)
{
    const struct xr_hub_job *j = xr_hub_job_of(h, job);

    xr_hub_enter(h);
    for (uint32_t i = 0; i < h->njobs; i++) {
        struct xr_packer p = {0};
        const struct xr_hub_job *to = h->jobs[i];
        if (to == j || to->gone || (!all && !(j && xr_hub_connected(j, to->number))))
            continue;
        xr_pack_u32(&p, (uint32_t)code);
        xr_pack_u32(&p, ms);
        xr_pack_u32(&p, (uint32_t)sig);
        h->ops->send(h->arg, to->number, XR_DOWN_END, &p);
    }
    xr_hub_leave(h);
}

/*
 * Jobs may wait for each other without being connected: for a name or for a connect. So the jobs are stalled only when
 * no rank of any job makes progress or is about to start.
 */
bool xr_hub_on_stalled(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u)
{
    uint32_t stalled = xr_unpack_u32(u);
    struct xr_packer none = {0};

    if (!xr_unpack_done(u) || !j->has_info || stalled > 1)
        return false;
    j->stalled = stalled;
    for (uint32_t i = 0; i < h->njobs; i++) {
        if (!h->jobs[i]->gone && !h->jobs[i]->stalled)
            return true;
    }
    for (uint32_t i = 0; i < h->njobs; i++) {
        if (!h->jobs[i]->gone)
            h->ops->send(h->arg, h->jobs[i]->number, XR_DOWN_ALL_STALLED, &none);
    }
    return true;
}

/* A job has ended, for which stalled jobs may have waited: let each report again. */
static void recheck_stalled(struct xr_hub *h)
{
    struct xr_packer none = {0};

    for (uint32_t i = 0; i < h->njobs; i++) {
        struct xr_hub_job *j = h->jobs[i];
        if (j->gone || !j->stalled)
            continue;
        j->stalled = false;
        h->ops->send(h->arg, j->number, XR_DOWN_AGAIN, &none);
    }
}

static enum xr_rpc_status start_status(int code)
{
    return code == XR_EXIT_NOT_FOUND || code == XR_EXIT_CANNOT_EXECUTE ? XR_NO_PROGRAM : XR_CANNOT_START;
}

static void end_job(struct xr_hub *h, struct xr_hub_job *j, int code, bool ran)
{
    xr_hub_answer_spawn(h, j, start_status(code));
    j->gone = true;
    h->has_gone = true;
    xr_nameserver_app_ended(h->names, j->number, XR_ALL_RANKS);
    for (uint32_t r = 0; j->has_info && r < j->info.size; r++) {
        if (!(j->fate[r] & XR_FATE_ENDED))
            xr_nameserver_ended(h->names, j->number, r, code != 0);
    }
    xr_group_ops_rank_ended(h->group_ops, j->number, XR_ALL_RANKS);
    if (ran && j->has_info)
        send_end(h, j, XR_ALL_RANKS, false);
    xr_hub_drop_dmodex(h, j->number);
    recheck_stalled(h);
    if (code && ran && !h->continue_on_failure)
        xr_hub_end_others(h, j->number, false, code, XR_FAILURE_GRACE_MS, 0);
}

bool xr_hub_job_ended(struct xr_hub *h, uint32_t job, int code)
{
    struct xr_hub_job *j = xr_hub_job_of(h, job);
    bool ran = !j || !j->starting;

    if (!j || j->gone)
        return ran;
    xr_hub_enter(h);
    end_job(h, j, code, ran);
    xr_hub_leave(h);
    return ran;
}
