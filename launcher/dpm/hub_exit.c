/* hub_exit.c: ranks and jobs end: who is told, and who ends with them. See hub_parts.h. */
#include "launcher/dpm/hub_internal.h"
#include "launcher/exec/find_program.h"

#include <stdlib.h>

/* A rank, or RK_ALL_RANKS. */
static void tell(struct rk_hub *h, uint32_t to, const struct rk_hub_job *j, uint32_t rank, uint32_t by_signal)
{
    struct rk_packer p = {0};

    rk_pack_string(&p, j->outline.id);
    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, by_signal);
    h->ops->send(h->arg, to, RK_DOWN_DIED, &p);
}

/* Some of its agents keep the outline of another job. */
static bool knows(const struct rk_hub_job *j, uint32_t about)
{
    for (struct rk_link *l = j->told.next; l != &j->told; l = l->next) {
        if (rk_list_entry(l, struct rk_hub_told, link)->about == about)
            return true;
    }
    return false;
}

/* Of a rank, or (RK_ALL_RANKS) of the whole job: told to those whom it concerns. Those who had to do with a job that is
 * over, and have not any more, need only not keep it. */
static void tell_of_end(struct rk_hub *h, const struct rk_hub_job *j, uint32_t rank, bool by_signal)
{
    bool *near = rk_hub_concerned(h, j);

    for (uint32_t i = 0; i < h->njobs; i++) {
        const struct rk_hub_job *to = h->jobs[i];
        if (to != j && to->up && !to->gone &&
            ((near ? near[i] : rk_hub_connected(j, to->number)) || (rank == RK_ALL_RANKS && j->parent == to->number)))
            tell(h, to->number, j, rank, by_signal);
        else if (to != j && to->up && !to->gone && rank == RK_ALL_RANKS && knows(to, j->number))
            tell(h, to->number, j, rank, RK_ONLY_FORGET);
    }
    free(near);
}

void rk_hub_tell_past_ends(struct rk_hub *h, const struct rk_hub_job *j)
{
    bool *near = rk_hub_concerned(h, j);

    for (uint32_t i = 0; near && i < h->njobs; i++) {
        const struct rk_hub_job *other = h->jobs[i];
        if (other == j || !near[i] || !other->known)
            continue;
        for (uint32_t r = 0; r < other->outline.size && other->nended; r++) {
            if (other->fate[r] & RK_FATE_FAILED)
                tell(h, j->number, other, r, (other->fate[r] & RK_FATE_BY_SIGNAL) != 0);
        }
        if (other->gone)
            tell(h, j->number, other, RK_ALL_RANKS, false);
    }
    free(near);
}

bool rk_hub_take_ended(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), failed = rk_unpack_u32(u), by_signal = rk_unpack_u32(u), app;
    const struct rk_job *o = &j->outline;

    if (!rk_unpack_done(u) || !j->known || rank >= o->size)
        return false;
    if (j->fate[rank] & RK_FATE_ENDED)
        return true;
    j->fate[rank] |= (uint8_t)(RK_FATE_ENDED | (failed ? RK_FATE_FAILED : 0) | (by_signal ? RK_FATE_BY_SIGNAL : 0));
    j->nended++;
    j->on_host[o->host_of[rank]]--;
    app = (uint32_t)(rk_job_app_of(o, rank) - o->apps);
    rk_names_ended(h->names, j->number, rank, failed != 0);
    if (--j->left[app] == 0)
        rk_names_app_ended(h->names, j->number, app);
    rk_gathers_ended(h->gathers, j->number, rank);
    if (failed)
        tell_of_end(h, j, rank, by_signal != 0);
    return true;
}

bool rk_hub_take_broken(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), lost = rk_unpack_u32(u);

    if (!rk_unpack_done(u) || !j->known || rank >= j->outline.size || lost > 1)
        return false;
    j->nbroken += lost;
    j->nbroken -= (j->fate[rank] & RK_FATE_BROKEN) != 0;
    j->fate[rank] = (uint8_t)((j->fate[rank] & ~RK_FATE_BROKEN) | (lost ? RK_FATE_BROKEN : 0));
    if (lost)
        rk_gathers_broken(h->gathers, j->number, rank);
    return true;
}

void rk_hub_end_others(struct rk_hub *h, uint32_t job, bool all, int code, uint32_t ms, int sig)
{
    const struct rk_hub_job *j = rk_hub_job_of(h, job);

    rk_hub_enter(h);
    for (uint32_t i = 0; i < h->njobs; i++) {
        struct rk_packer p = {0};
        const struct rk_hub_job *to = h->jobs[i];
        if (to == j || to->gone || (!all && !(j && rk_hub_connected(j, to->number))))
            continue;
        rk_pack_u32(&p, (uint32_t)code);
        rk_pack_u32(&p, ms);
        rk_pack_u32(&p, (uint32_t)sig);
        h->ops->send(h->arg, to->number, RK_DOWN_END, &p);
    }
    rk_hub_leave(h);
}

/*
 * Connected or not, jobs may wait for each other, for a name that will be published or a connect still to come: so
 * nobody is without hope as long as a rank of any of them works, or is about to start.
 */
bool rk_hub_take_still(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u)
{
    uint32_t still = rk_unpack_u32(u);
    struct rk_packer none = {0};

    if (!rk_unpack_done(u) || !j->known || still > 1)
        return false;
    j->still = still;
    for (uint32_t i = 0; i < h->njobs; i++) {
        if (!h->jobs[i]->gone && !h->jobs[i]->still)
            return true;
    }
    for (uint32_t i = 0; i < h->njobs; i++) {
        if (!h->jobs[i]->gone)
            h->ops->send(h->arg, h->jobs[i]->number, RK_DOWN_HOPELESS, &none);
    }
    return true;
}

/* Those who stand still may have waited for the end of a job. */
static void look_again(struct rk_hub *h)
{
    struct rk_packer none = {0};

    for (uint32_t i = 0; i < h->njobs; i++) {
        struct rk_hub_job *j = h->jobs[i];
        if (j->gone || !j->still)
            continue;
        j->still = false; /* each says it anew */
        h->ops->send(h->arg, j->number, RK_DOWN_AGAIN, &none);
    }
}

static enum rk_errand_status why_not(int code)
{
    return code == RK_EXIT_NOT_FOUND || code == RK_EXIT_CANNOT_EXECUTE ? RK_NO_PROGRAM : RK_CANNOT_START;
}

static void end_job(struct rk_hub *h, struct rk_hub_job *j, int code, bool ran)
{
    rk_hub_tell_started(h, j, why_not(code));
    j->gone = true;
    h->untidy = true;
    rk_names_app_ended(h->names, j->number, RK_ALL_RANKS);
    for (uint32_t r = 0; j->known && r < j->outline.size; r++) {
        if (!(j->fate[r] & RK_FATE_ENDED))
            rk_names_ended(h->names, j->number, r, code != 0);
    }
    rk_gathers_ended(h->gathers, j->number, RK_ALL_RANKS);
    if (ran && j->known)
        tell_of_end(h, j, RK_ALL_RANKS, false);
    rk_hub_drop_questions(h, j->number);
    look_again(h);
    if (code && ran && !h->go_on)
        rk_hub_end_others(h, j->number, false, code, RK_HUB_END_MS, 0);
}

bool rk_hub_gone(struct rk_hub *h, uint32_t job, int code)
{
    struct rk_hub_job *j = rk_hub_job_of(h, job);
    bool ran = !j || !j->starting;

    if (!j || j->gone)
        return ran;
    rk_hub_enter(h);
    end_job(h, j, code, ran);
    rk_hub_leave(h);
    return ran;
}
