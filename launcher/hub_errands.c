/* hub_errands.c: what agents want done: names, gathers and new jobs; and the answers. See hub_parts.h. */
#include "launcher/hub_parts.h"
#include "launcher/outline.h"

#include <stdlib.h>

/* --------------------------------------------------------------------- answers */

static void begin_answer(const struct rk_gather_who *who, struct rk_packer *p,
                         enum rk_errand_status status)
{
    rk_pack_u32(p, who->node);
    rk_pack_u32(p, who->id);
    rk_pack_u32(p, status);
}

static void send_answer(struct rk_hub *h, const struct rk_gather_who *who, struct rk_packer *p)
{
    if (h->jobs[who->job]->gone)
        rk_packer_free(p);
    else
        h->ops->send(h->arg, who->job, RK_DOWN_ANSWER, p);
}

static void answer(struct rk_hub *h, const struct rk_gather_who *who, enum rk_errand_status status)
{
    struct rk_packer p = {0};

    begin_answer(who, &p, status);
    send_answer(h, who, &p);
}

/* With data and the outline of one job, or none. */
void rk_hub_answer_with(struct rk_hub *h, const struct rk_gather_who *who, enum rk_errand_status status,
                        const void *data, size_t len, const struct rk_hub_job *about)
{
    struct rk_packer p = {0};

    begin_answer(who, &p, status);
    rk_pack_bytes(&p, data, len);
    rk_pack_u32(&p, about && about->known);
    if (about && about->known)
        rk_outline_pack(&about->outline, &p);
    send_answer(h, who, &p);
}

/* ----------------------------------------------------------------------- names */

static void on_found(void *arg, void *token, enum rk_errand_status status, struct rk_packer *found)
{
    struct rk_gather_who *who = token;
    struct rk_packer p = {0};

    begin_answer(who, &p, status);
    rk_pack_raw(&p, found->data, found->len);
    rk_packer_free(found);
    send_answer(arg, who, &p);
    free(who);
}

static bool describe(const struct rk_hub *h, const struct rk_gather_who *who, uint32_t rank,
                     struct rk_names_who *out)
{
    const struct rk_job *o = &h->jobs[who->job]->outline;

    if (rank >= o->size)
        return false;
    *out = (struct rk_names_who){.job = who->job, .rank = rank, .id = o->id, .host = o->hosts[who->node]};
    while (out->app + 1 < o->napps && rank >= o->apps[out->app + 1].first)
        out->app++;
    return true;
}

static bool about_names(struct rk_hub *h, enum rk_errand what, const struct rk_gather_who *from,
                        uint32_t rank, struct rk_unpacker *u)
{
    struct rk_gather_who *copy;
    struct rk_names_who who;

    if (!describe(h, from, rank, &who))
        return false;
    if (what == RK_ERRAND_PUBLISH) {
        answer(h, from, rk_names_publish(h->names, &who, u));
    } else if (what == RK_ERRAND_UNPUBLISH) {
        answer(h, from, rk_names_unpublish(h->names, &who, u));
    } else {
        copy = malloc(sizeof(*copy));
        if (!copy)
            return false;
        *copy = *from;
        rk_names_look_up(h->names, &who, u, copy);
    }
    return true;
}

/* --------------------------------------------------------------------- gathers */

static uint32_t find_job(void *arg, const char *id)
{
    return rk_hub_find_job(arg, id);
}

static uint32_t size_of(void *arg, uint32_t job)
{
    return ((struct rk_hub *)arg)->jobs[job]->outline.size;
}

static bool has_ended(void *arg, uint32_t job, uint32_t rank)
{
    const struct rk_hub_job *j = ((struct rk_hub *)arg)->jobs[job];

    return j->gone || (rank == RK_ALL_RANKS ? j->nended + j->nbroken > 0 : j->ended[rank] || j->broken[rank]);
}

static void on_together(void *arg, enum rk_errand what, const uint32_t *jobs, uint32_t n)
{
    struct rk_hub *h = arg;

    for (uint32_t i = 0; i < n && what != RK_ERRAND_FENCE; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (what == RK_ERRAND_CONNECT)
                rk_hub_add_friend(h, jobs[i], jobs[k]);
            else
                rk_hub_remove_friend(h, jobs[i], jobs[k]);
        }
    }
}

static void on_gathered(void *arg, const struct rk_gather_who *who, enum rk_errand_status status,
                        const void *data, size_t len, const uint32_t *jobs, uint32_t n)
{
    struct rk_hub *h = arg;
    struct rk_packer p = {0};
    uint32_t others = 0;

    for (uint32_t i = 0; i < n && status == RK_DONE; i++)
        others += jobs[i] != who->job;
    begin_answer(who, &p, status);
    rk_pack_bytes(&p, data, len);
    rk_pack_u32(&p, others);
    for (uint32_t i = 0; i < n && others; i++) {
        if (jobs[i] != who->job)
            rk_outline_pack(&h->jobs[jobs[i]]->outline, &p);
    }
    send_answer(h, who, &p);
}

static const struct rk_gathers_ops gathers_ops = {find_job, size_of, has_ended, on_together,
                                                  on_gathered};

/* ----------------------------------------------------------------------- spawn */

static void start(struct rk_hub *h, const struct rk_gather_who *who, uint32_t rank, struct rk_unpacker *u)
{
    struct rk_hub_job *parent = h->jobs[who->job];
    struct rk_packer outline = {0};
    uint32_t job = rank < parent->outline.size ? rk_hub_add_job(h) : RK_NO_JOB;

    if (job == RK_NO_JOB) {
        rk_hub_answer_with(h, who, RK_REFUSED, NULL, 0, NULL);
        return;
    }
    rk_outline_pack(&parent->outline, &outline);
    h->jobs[job]->spawner = *who;
    h->jobs[job]->starting = true;
    h->jobs[job]->parent = who->job;
    /* They are connected from the start. */
    rk_hub_add_friend(h, job, who->job);
    rk_hub_add_friend(h, who->job, job);
    if (!h->ops->start(h->arg, job, parent->outline.id, rank, u, &outline))
        rk_hub_gone(h, job, 1);
    rk_packer_free(&outline);
}

void rk_hub_tell_started(struct rk_hub *h, struct rk_hub_job *j, enum rk_errand_status status)
{
    if (!j->starting)
        return;
    j->starting = false;
    rk_hub_answer_with(h, &j->spawner, status, NULL, 0, status == RK_DONE ? j : NULL);
}

/* --------------------------------------------------------------------------- errands */

bool rk_hub_take_errand(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    struct rk_gather_who who = {.job = job};
    uint32_t rank, what;

    who.node = rk_unpack_u32(u);
    who.id = rk_unpack_u32(u);
    rank = rk_unpack_u32(u);
    what = rk_unpack_u32(u);
    if (u->failed || !h->jobs[job]->known || who.node >= h->jobs[job]->outline.nhosts)
        return false;
    switch (what) {
    case RK_ERRAND_PUBLISH:
    case RK_ERRAND_LOOKUP:
    case RK_ERRAND_UNPUBLISH:
        return about_names(h, what, &who, rank, u);
    case RK_ERRAND_FENCE:
    case RK_ERRAND_CONNECT:
    case RK_ERRAND_DISCONNECT:
        rk_gathers_join(h->gathers, what, &who, u);
        return true;
    case RK_ERRAND_MODEX:
        rk_hub_ask(h, &who, u);
        return true;
    case RK_ERRAND_SPAWN:
        start(h, &who, rank, u);
        return true;
    default:
        return false;
    }
}

rank_status_t rk_hub_open_errands(struct event_base *base, struct rk_hub *h)
{
    rank_status_t st = rk_names_open(base, on_found, h, &h->names);

    return st ? st : rk_gathers_open(&gathers_ops, h, &h->gathers);
}
