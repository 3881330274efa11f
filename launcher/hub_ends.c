/* hub_ends.c: ranks and jobs end: who is told, and who ends with them. See hub_parts.h. */
#include "launcher/hub_parts.h"
#include "launcher/program.h"

#include <stdlib.h>

/* Which jobs have to do with this one, directly or by others: a team may hold ranks of all. NULL: no memory. */
static bool *concerned(const struct rk_hub *h, uint32_t job)
{
    bool *near = calloc(h->njobs, sizeof(*near));
    uint32_t *next = calloc(h->njobs, sizeof(*next)), n = 0;

    if (near && next) {
        near[job] = true;
        next[n++] = job;
    }
    while (n > 0) {
        const struct rk_hub_job *j = h->jobs[next[--n]];
        for (uint32_t i = 0; i < j->nfriends; i++) {
            if (!near[j->friends[i]])
                next[n++] = j->friends[i];
            near[j->friends[i]] = true;
        }
    }
    free(next);
    return near;
}

/* Of a rank, or (RK_ALL_RANKS) of the whole job: told to those whom it concerns. */
static void tell_of_end(struct rk_hub *h, uint32_t job, uint32_t rank, bool by_signal)
{
    bool *near = concerned(h, job);

    for (uint32_t i = 0; i < h->njobs; i++) {
        struct rk_packer p = {0};
        if (i == job || h->jobs[i]->gone || !h->jobs[i]->known ||
            !((near ? near[i] : rk_hub_connected(h, job, i)) || (rank == RK_ALL_RANKS && h->jobs[job]->parent == i)))
            continue;
        rk_pack_string(&p, h->jobs[job]->outline.id);
        rk_pack_u32(&p, rank);
        rk_pack_u32(&p, by_signal);
        h->ops->send(h->arg, i, RK_DOWN_DIED, &p);
    }
    free(near);
}

bool rk_hub_take_ended(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), failed = rk_unpack_u32(u), by_signal = rk_unpack_u32(u), app = 0;
    struct rk_hub_job *j = h->jobs[job];

    if (!rk_unpack_done(u) || !j->known || rank >= j->outline.size)
        return false;
    if (j->ended[rank])
        return true;
    j->ended[rank] = true;
    j->nended++;
    while (app + 1 < j->outline.napps && rank >= j->outline.apps[app + 1].first)
        app++;
    rk_names_ended(h->names, job, rank, failed != 0);
    if (--j->left[app] == 0)
        rk_names_app_ended(h->names, job, app);
    rk_gathers_ended(h->gathers, job, rank);
    if (failed)
        tell_of_end(h, job, rank, by_signal != 0);
    return true;
}

bool rk_hub_take_broken(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), lost = rk_unpack_u32(u);
    struct rk_hub_job *j = h->jobs[job];

    if (!rk_unpack_done(u) || !j->known || rank >= j->outline.size || lost > 1)
        return false;
    j->nbroken += lost;
    j->nbroken -= j->broken[rank];
    j->broken[rank] = lost;
    if (lost)
        rk_gathers_ended(h->gathers, job, rank);
    return true;
}

void rk_hub_end_others(struct rk_hub *h, uint32_t job, bool all, int code, uint32_t ms, int sig)
{
    for (uint32_t i = 0; i < h->njobs; i++) {
        struct rk_packer p = {0};
        if (i == job || h->jobs[i]->gone || (!all && !rk_hub_connected(h, job, i)))
            continue;
        rk_pack_u32(&p, (uint32_t)code);
        rk_pack_u32(&p, ms);
        rk_pack_u32(&p, (uint32_t)sig);
        h->ops->send(h->arg, i, RK_DOWN_END, &p);
    }
}

static enum rk_errand_status why_not(int code)
{
    return code == RK_EXIT_NOT_FOUND || code == RK_EXIT_CANNOT_EXECUTE ? RK_NO_PROGRAM : RK_CANNOT_START;
}

bool rk_hub_gone(struct rk_hub *h, uint32_t job, int code)
{
    struct rk_hub_job *j = h->jobs[job];
    bool ran = !j->starting;

    if (j->gone)
        return ran;
    rk_hub_tell_started(h, j, why_not(code));
    j->gone = true;
    rk_names_app_ended(h->names, job, RK_ALL_RANKS);
    for (uint32_t r = 0; j->known && r < j->outline.size; r++) {
        if (!j->ended[r])
            rk_names_ended(h->names, job, r, code != 0);
    }
    rk_gathers_ended(h->gathers, job, RK_ALL_RANKS);
    if (ran && j->known)
        tell_of_end(h, job, RK_ALL_RANKS, false);
    rk_hub_drop_questions(h, job);
    if (code && ran && !h->go_on)
        rk_hub_end_others(h, job, false, code, RK_HUB_END_MS, 0);
    return ran;
}
