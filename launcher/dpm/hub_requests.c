/* hub_requests.c: what agents want done: names, gathers and new jobs; and the answers. See hub_parts.h. */
#include "launcher/dpm/hub_internal.h"
#include "launcher/dpm/job_info.h"

/* --------------------------------------------------------------------- answers */

static void begin_answer(const struct rk_asker *who, struct rk_packer *p,
                         enum rk_errand_status status)
{
    rk_pack_u32(p, who->node);
    rk_pack_u32(p, who->id);
    rk_pack_u32(p, status);
}

static void send_answer(struct rk_hub *h, const struct rk_asker *who, struct rk_packer *p)
{
    const struct rk_hub_job *j = rk_hub_job_of(h, who->job);

    if (!j || j->gone)
        rk_packer_free(p);
    else
        h->ops->send(h->arg, who->job, RK_DOWN_ANSWER, p);
}

static void answer(struct rk_hub *h, const struct rk_asker *who, enum rk_errand_status status)
{
    struct rk_packer p = {0};

    begin_answer(who, &p, status);
    send_answer(h, who, &p);
}

/* With data and the outline of one job, or none. */
void rk_hub_answer_with(struct rk_hub *h, const struct rk_asker *who, enum rk_errand_status status,
                        const void *data, size_t len, const struct rk_hub_job *about)
{
    struct rk_packer p = {0};

    begin_answer(who, &p, status);
    rk_pack_bytes(&p, data, len);
    if (about)
        rk_hub_pack_outline(h, who, about, &p);
    else
        rk_pack_u32(&p, 0);
    send_answer(h, who, &p);
}

/* ----------------------------------------------------------------------- names */

static void on_found(void *arg, const struct rk_asker *who, enum rk_errand_status status, struct rk_packer *found)
{
    struct rk_packer p = {0};

    begin_answer(who, &p, status);
    rk_pack_raw(&p, found->data, found->len);
    rk_packer_free(found);
    send_answer(arg, who, &p);
}

static bool about_names(struct rk_hub *h, const struct rk_hub_job *j, enum rk_errand what, const struct rk_asker *from,
                        uint32_t rank, struct rk_unpacker *u)
{
    const struct rk_job *o = &j->outline;
    struct rk_names_who who = {.job = j->number, .rank = rank, .id = o->id, .host = o->hosts[from->node]};

    if (rank >= o->size)
        return false;
    if (j->fate[rank] & RK_FATE_ENDED) { /* what it leaves now would stay */
        answer(h, from, RK_SOMEBODY_LOST);
        return true;
    }
    who.app = (uint32_t)(rk_job_app_of(o, rank) - o->apps);
    if (what == RK_ERRAND_PUBLISH)
        answer(h, from, rk_names_publish(h->names, &who, u));
    else if (what == RK_ERRAND_UNPUBLISH)
        answer(h, from, rk_names_unpublish(h->names, &who, u));
    else
        rk_names_look_up(h->names, &who, u, from);
    return true;
}

/* --------------------------------------------------------------------- gathers */

static uint32_t find_job(void *arg, const char *id)
{
    return rk_hub_find_job(arg, id);
}

static bool is_past(void *arg, const char *id)
{
    return rk_hub_is_past(arg, id);
}

static uint32_t size_of(void *arg, uint32_t job)
{
    return rk_hub_job_of(arg, job)->outline.size;
}

static enum rk_presence presence_of(void *arg, uint32_t job, uint32_t rank)
{
    const struct rk_hub_job *j = rk_hub_job_of(arg, job);

    if (!j || j->gone || (rank == RK_ALL_RANKS ? j->nended > 0 : (j->fate[rank] & RK_FATE_ENDED) != 0))
        return RK_ENDED;
    return (rank == RK_ALL_RANKS ? j->nbroken > 0 : (j->fate[rank] & RK_FATE_BROKEN) != 0) ? RK_BROKEN : RK_PRESENT;
}

static void on_together(void *arg, enum rk_errand what, const uint32_t *jobs, uint32_t n)
{
    struct rk_hub *h = arg;

    for (uint32_t i = 0; i < n && what != RK_ERRAND_FENCE; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            if (what == RK_ERRAND_CONNECT)
                rk_hub_connect(h, jobs[i], jobs[k]);
            else
                rk_hub_disconnect(h, jobs[i], jobs[k]);
        }
    }
}

static void on_gathered(void *arg, const struct rk_asker *who, enum rk_errand_status status,
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
            rk_hub_pack_outline(h, who, rk_hub_job_of(h, jobs[i]), &p);
    }
    send_answer(h, who, &p);
}

static const struct rk_gathers_ops gathers_ops = {find_job, is_past, size_of, presence_of, on_together,
                                                  on_gathered};

/* ----------------------------------------------------------------------- spawn */

static void start(struct rk_hub *h, struct rk_hub_job *parent, const struct rk_asker *who, uint32_t rank,
                  struct rk_unpacker *u)
{
    struct rk_packer outline = {0};
    struct rk_hub_job *j = rank < parent->outline.size ? rk_hub_add_job(h) : NULL;

    if (!j) {
        rk_hub_answer_with(h, who, RK_REFUSED, NULL, 0, NULL);
        return;
    }
    rk_outline_pack(&parent->outline, &outline);
    j->spawner = *who;
    j->starting = true;
    j->parent = parent->number;
    rk_hub_connect(h, j->number, parent->number); /* from the start */
    if (!h->ops->start(h->arg, j->number, parent->outline.id, rank, u, &outline))
        rk_hub_gone(h, j->number, 1);
    rk_packer_free(&outline);
}

/* This answer brings the outline whatever the agent knows: PMI-1's clients ask too, and take no notice of it. */
void rk_hub_tell_started(struct rk_hub *h, struct rk_hub_job *j, enum rk_errand_status status)
{
    struct rk_packer p = {0};

    if (!j->starting)
        return;
    j->starting = false;
    begin_answer(&j->spawner, &p, status);
    rk_pack_bytes(&p, NULL, 0);
    rk_pack_u32(&p, status == RK_DONE);
    if (status == RK_DONE)
        rk_outline_pack(&j->outline, &p);
    send_answer(h, &j->spawner, &p);
}

/* --------------------------------------------------------------------------- errands */

bool rk_hub_take_errand(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u)
{
    struct rk_asker who = {.job = j->number};
    uint32_t rank, what;

    who.node = rk_unpack_u32(u);
    who.id = rk_unpack_u32(u);
    rank = rk_unpack_u32(u);
    what = rk_unpack_u32(u);
    if (u->failed || !j->known || who.node >= j->outline.nhosts)
        return false;
    switch (what) {
    case RK_ERRAND_PUBLISH:
    case RK_ERRAND_LOOKUP:
    case RK_ERRAND_UNPUBLISH:
        return about_names(h, j, what, &who, rank, u);
    case RK_ERRAND_FENCE:
    case RK_ERRAND_CONNECT:
    case RK_ERRAND_DISCONNECT:
        rk_gathers_join(h->gathers, what, &who, u);
        return true;
    case RK_ERRAND_MODEX:
        rk_hub_ask(h, &who, u);
        return true;
    case RK_ERRAND_SPAWN:
        start(h, j, &who, rank, u);
        return true;
    default:
        return false;
    }
}

rank_status_t rk_hub_open_errands(struct rk_hub *h)
{
    rank_status_t st = rk_names_open(h->base, on_found, h, &h->names);

    return st ? st : rk_gathers_open(h->base, &gathers_ops, h, &h->gathers);
}
