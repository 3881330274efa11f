/* hub.c: opens the hub, and hears what front ends say. See hub.h. */
#include "launcher/dpm/hub_internal.h"
#include "launcher/overlay/event.h"

#include <stdlib.h>

/* An event whose range goes beyond its job: to all others, as they are now. */
static bool take_notice(struct rk_hub *h, const struct rk_hub_job *j, struct rk_unpacker *u)
{
    struct rk_notice notice;

    if (!j->known || !rk_notice_unpack(u, j->outline.size, &notice))
        return false;
    for (uint32_t i = 0; i < h->njobs; i++) {
        const struct rk_hub_job *to = h->jobs[i];
        struct rk_packer p = {0};
        if (to == j || !to->known || to->gone)
            continue;
        rk_pack_string(&p, j->outline.id);
        rk_notice_pack(&notice, &p);
        h->ops->send(h->arg, to->number, RK_DOWN_NOTICE, &p);
    }
    return true;
}

static bool take(struct rk_hub *h, struct rk_hub_job *j, enum rk_word word, struct rk_unpacker *u)
{
    int code;

    switch (word) {
    case RK_UP_OUTLINE:
        return rk_hub_take_outline(h, j, u);
    case RK_UP_STARTED:
        if (!rk_unpack_done(u) || !j->known || j->up)
            return false;
        j->up = true;
        rk_hub_tell_started(h, j, RK_DONE);
        rk_hub_tell_past_ends(h, j);
        return true;
    case RK_UP_ERRAND:
        return rk_hub_take_errand(h, j, u);
    case RK_UP_ENDED:
        return rk_hub_take_ended(h, j, u);
    case RK_UP_BROKEN:
        return rk_hub_take_broken(h, j, u);
    case RK_UP_STILL:
        return rk_hub_take_still(h, j, u);
    case RK_UP_NOTICE:
        return take_notice(h, j, u);
    case RK_UP_MODEX:
        return rk_hub_take_modex(h, j, u);
    case RK_UP_FAILING:
        code = (int)rk_unpack_u32(u);
        if (!rk_unpack_done(u))
            return false;
        if (!h->go_on && !j->starting)
            rk_hub_end_others(h, j->number, false, code, RK_HUB_END_MS, 0);
        return true;
    default:
        return false;
    }
}

bool rk_hub_take(struct rk_hub *h, uint32_t job, enum rk_word word, struct rk_unpacker *u)
{
    struct rk_hub_job *j = rk_hub_job_of(h, job);
    bool sane;

    if (!j || j->gone)
        return job < h->next_job;
    rk_hub_enter(h);
    sane = take(h, j, word, u);
    rk_hub_leave(h);
    return sane;
}

/* ------------------------------------------------------------------------- start */

rank_status_t rk_hub_open(struct event_base *base, bool go_on, const struct rk_hub_ops *ops, void *arg,
                          struct rk_hub **out)
{
    struct rk_hub *h = calloc(1, sizeof(*h));
    rank_status_t st;

    if (!h)
        return RANK_ERR_NO_MEMORY;
    h->base = base;
    h->go_on = go_on;
    h->ops = ops;
    h->arg = arg;
    rk_list_init(&h->questions);
    st = rk_hub_open_errands(h);
    if (!st && !rk_hub_add_job(h))
        st = RANK_ERR_NO_MEMORY;
    if (st)
        rk_hub_close(h);
    else
        *out = h;
    return st;
}

void rk_hub_close(struct rk_hub *h)
{
    if (!h)
        return;
    rk_hub_free_questions(h);
    rk_gathers_close(h->gathers);
    rk_names_close(h->names);
    rk_hub_free_jobs(h);
    free(h);
}
