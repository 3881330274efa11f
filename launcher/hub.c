/* hub.c: opens the hub, and hears what front ends say. See hub.h. */
#include "launcher/hub_parts.h"

#include <stdlib.h>

bool rk_hub_take(struct rk_hub *h, uint32_t job, enum rk_word word, struct rk_unpacker *u)
{
    struct rk_hub_job *j = rk_hub_job_of(h, job);
    int code;

    if (!j || j->gone)
        return j != NULL;
    switch (word) {
    case RK_UP_OUTLINE:
        return rk_hub_take_outline(h, job, u);
    case RK_UP_STARTED:
        rk_hub_tell_started(h, j, j->known ? RK_DONE : RK_CANNOT_START);
        return rk_unpack_done(u);
    case RK_UP_ERRAND:
        return rk_hub_take_errand(h, job, u);
    case RK_UP_ENDED:
        return rk_hub_take_ended(h, job, u);
    case RK_UP_BROKEN:
        return rk_hub_take_broken(h, job, u);
    case RK_UP_MODEX:
        return rk_hub_take_modex(h, job, u);
    case RK_UP_FAILING:
        code = (int)rk_unpack_u32(u);
        if (!h->go_on && !j->starting)
            rk_hub_end_others(h, job, false, code, RK_HUB_END_MS, 0);
        return rk_unpack_done(u);
    default:
        return false;
    }
}

rank_status_t rk_hub_open(struct event_base *base, bool go_on, const struct rk_hub_ops *ops, void *arg,
                          struct rk_hub **out)
{
    struct rk_hub *h = calloc(1, sizeof(*h));
    rank_status_t st;

    if (!h)
        return RANK_ERR_NO_MEMORY;
    h->go_on = go_on;
    h->ops = ops;
    h->arg = arg;
    rk_list_init(&h->questions);
    st = rk_hub_open_errands(base, h);
    if (!st && rk_hub_add_job(h) != 0)
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
    for (uint32_t i = 0; i < h->njobs; i++)
        rk_hub_free_job(h->jobs[i]);
    free(h->jobs);
    free(h);
}
