/* hub.c: see hub.h. */
#include "launcher/hub.h"
#include "launcher/names.h"
#include "launcher/outline.h"
#include "launcher/pmix/server.h"
#include "launcher/program.h"
#include "lib/base/list.h"

#include <stdlib.h>
#include <string.h>

#define END_MS 400 /* between TERM and KILL of a job that ends because of another */
#define MAX_JOBS 100000u

struct job {
    struct rk_job outline;
    bool known, gone; /* its outline has come; it is over */
    bool *ended, *broken; /* [outline.size]; broken: the rank lives, but not its client */
    uint32_t *left;   /* [outline.napps] ranks that have not ended */
    uint32_t nended, nbroken;
    uint32_t *friends, nfriends; /* jobs that it is connected with */
    uint32_t parent; /* the job that has spawned it, or RK_NO_JOB */
    struct rk_gather_who spawner; /* who waits for its start, if starting */
    bool starting;
};

/* A question of one job about another. */
struct question {
    struct rk_link link;
    struct rk_gather_who who;
    uint32_t id, to;
};

struct rk_hub {
    bool go_on;
    const struct rk_hub_ops *ops;
    void *arg;
    struct job **jobs;
    uint32_t njobs, next_id;
    struct rk_names *names;
    struct rk_gathers *gathers;
    struct rk_link questions;
};

/* ------------------------------------------------------------------------- jobs */

static struct job *job_of(const struct rk_hub *h, uint32_t i)
{
    return i < h->njobs ? h->jobs[i] : NULL;
}

static void free_job(struct job *j)
{
    if (!j)
        return;
    rk_job_clear(&j->outline);
    free(j->ended);
    free(j->broken);
    free(j->left);
    free(j->friends);
    free(j);
}

static uint32_t add_job(struct rk_hub *h)
{
    struct job **longer, *j;

    if (h->njobs >= MAX_JOBS)
        return RK_NO_JOB;
    longer = realloc(h->jobs, (h->njobs + 1) * sizeof(struct job *));
    if (!longer)
        return RK_NO_JOB;
    h->jobs = longer;
    j = calloc(1, sizeof(*j));
    if (!j)
        return RK_NO_JOB;
    j->parent = RK_NO_JOB;
    h->jobs[h->njobs] = j;
    return h->njobs++;
}

static bool connected(const struct rk_hub *h, uint32_t a, uint32_t b)
{
    const struct job *j = h->jobs[a];

    for (uint32_t i = 0; i < j->nfriends; i++) {
        if (j->friends[i] == b)
            return true;
    }
    return false;
}

static void add_friend(struct rk_hub *h, uint32_t a, uint32_t b)
{
    struct job *j = h->jobs[a];
    uint32_t *longer;

    if (a == b || connected(h, a, b))
        return;
    longer = realloc(j->friends, (j->nfriends + 1) * sizeof(*longer));
    if (!longer)
        return; /* its failure will not end the other: no harm but a longer life */
    j->friends = longer;
    j->friends[j->nfriends++] = b;
}

static void remove_friend(struct rk_hub *h, uint32_t a, uint32_t b)
{
    struct job *j = h->jobs[a];

    for (uint32_t i = 0; i < j->nfriends; i++) {
        if (j->friends[i] == b)
            j->friends[i--] = j->friends[--j->nfriends];
    }
}

static bool take_outline(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    struct job *j = h->jobs[job];

    if (j->known || !rk_outline_unpack(u, &j->outline) || !rk_unpack_done(u))
        return false;
    for (uint32_t i = 0; i < h->njobs; i++) {
        if (h->jobs[i]->known && strcmp(h->jobs[i]->outline.id, j->outline.id) == 0)
            return false;
    }
    j->ended = calloc(j->outline.size, sizeof(*j->ended));
    j->broken = calloc(j->outline.size, sizeof(*j->broken));
    j->left = calloc(j->outline.napps, sizeof(*j->left));
    for (uint32_t i = 0; j->left && i < j->outline.napps; i++)
        j->left[i] = j->outline.apps[i].n;
    j->known = j->ended && j->broken && j->left;
    return j->known;
}

const char *rk_hub_name(const struct rk_hub *h, uint32_t job)
{
    const struct job *j = job_of(h, job);

    return j && j->known ? j->outline.id : NULL;
}

uint32_t rk_hub_ranks_on(const struct rk_hub *h, const char *host)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->njobs; i++) {
        const struct job *j = h->jobs[i];
        for (uint32_t r = 0; j->known && !j->gone && r < j->outline.size; r++)
            n += !j->ended[r] && strcmp(j->outline.hosts[j->outline.host_of[r]], host) == 0;
    }
    return n;
}

/* ---------------------------------------------------------------------- answers */

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
static void answer_with(struct rk_hub *h, const struct rk_gather_who *who, enum rk_errand_status status,
                        const void *data, size_t len, const struct job *about)
{
    struct rk_packer p = {0};

    begin_answer(who, &p, status);
    rk_pack_bytes(&p, data, len);
    rk_pack_u32(&p, about && about->known);
    if (about && about->known)
        rk_outline_pack(&about->outline, &p);
    send_answer(h, who, &p);
}

/* ------------------------------------------------------------------------ names */

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

/* ---------------------------------------------------------------------- gathers */

static uint32_t find_job(void *arg, const char *id)
{
    struct rk_hub *h = arg;

    for (uint32_t i = 0; i < h->njobs; i++) {
        if (h->jobs[i]->known && strcmp(h->jobs[i]->outline.id, id) == 0)
            return i;
    }
    return RK_NO_JOB;
}

static uint32_t size_of(void *arg, uint32_t job)
{
    return ((struct rk_hub *)arg)->jobs[job]->outline.size;
}

static bool has_ended(void *arg, uint32_t job, uint32_t rank)
{
    const struct job *j = ((struct rk_hub *)arg)->jobs[job];

    return j->gone || (rank == RK_ALL_RANKS ? j->nended + j->nbroken > 0 : j->ended[rank] || j->broken[rank]);
}

static void on_together(void *arg, enum rk_errand what, const uint32_t *jobs, uint32_t n)
{
    struct rk_hub *h = arg;

    for (uint32_t i = 0; i < n && what != RK_ERRAND_FENCE; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (what == RK_ERRAND_CONNECT)
                add_friend(h, jobs[i], jobs[k]);
            else
                remove_friend(h, jobs[i], jobs[k]);
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

/* ------------------------------------------------------------------------ modex */

static void ask(struct rk_hub *h, const struct rk_gather_who *who, struct rk_unpacker *u)
{
    const char *id = rk_unpack_string(u);
    uint32_t rank = rk_unpack_u32(u), timeout_s = rk_unpack_u32(u), to;
    struct rk_packer p = {0};
    struct question *q;

    if (!rk_unpack_done(u) || !id) {
        answer_with(h, who, RK_REFUSED, NULL, 0, NULL);
        return;
    }
    to = find_job(h, id);
    if (to == RK_NO_JOB || h->jobs[to]->gone ||
        (rank != RK_ALL_RANKS && rank >= h->jobs[to]->outline.size)) {
        answer_with(h, who, RK_NOT_FOUND, NULL, 0, NULL);
        return;
    }
    if (rank == RK_ALL_RANKS) { /* the outline is all that is asked for */
        answer_with(h, who, RK_DONE, NULL, 0, h->jobs[to]);
        return;
    }
    q = calloc(1, sizeof(*q));
    if (!q) {
        answer_with(h, who, RK_NO_ROOM, NULL, 0, NULL);
        return;
    }
    *q = (struct question){.who = *who, .id = h->next_id++, .to = to};
    rk_list_append(&h->questions, &q->link);
    rk_pack_u32(&p, q->id);
    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, timeout_s);
    h->ops->send(h->arg, to, RK_DOWN_MODEX, &p);
}

static bool take_modex(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    uint32_t id = rk_unpack_u32(u), found = rk_unpack_u32(u);
    size_t len;
    const void *data = rk_unpack_bytes(u, &len);

    if (!rk_unpack_done(u))
        return false;
    for (struct rk_link *l = h->questions.next; l != &h->questions; l = l->next) {
        struct question *q = rk_list_entry(l, struct question, link);
        if (q->id != id || q->to != job)
            continue;
        rk_list_remove(&q->link);
        answer_with(h, &q->who, found == RK_FOUND ? RK_DONE : found == RK_FOUND_LATE ? RK_TOO_LATE : RK_NOT_FOUND, data,
                    len, h->jobs[job]);
        free(q);
        return true;
    }
    return true;
}

/* ------------------------------------------------------------------------ spawn */

static void start(struct rk_hub *h, const struct rk_gather_who *who, uint32_t rank, struct rk_unpacker *u)
{
    struct job *parent = h->jobs[who->job];
    struct rk_packer outline = {0};
    uint32_t job = rank < parent->outline.size ? add_job(h) : RK_NO_JOB;

    if (job == RK_NO_JOB) {
        answer_with(h, who, RK_REFUSED, NULL, 0, NULL);
        return;
    }
    rk_outline_pack(&parent->outline, &outline);
    h->jobs[job]->spawner = *who;
    h->jobs[job]->starting = true;
    h->jobs[job]->parent = who->job;
    /* They are connected from the start. */
    add_friend(h, job, who->job);
    add_friend(h, who->job, job);
    if (!h->ops->start(h->arg, job, parent->outline.id, rank, u, &outline))
        rk_hub_gone(h, job, 1);
    rk_packer_free(&outline);
}

static void tell_started(struct rk_hub *h, struct job *j, enum rk_errand_status status)
{
    if (!j->starting)
        return;
    j->starting = false;
    answer_with(h, &j->spawner, status, NULL, 0, status == RK_DONE ? j : NULL);
}

/* ------------------------------------------------------------------------- ends */

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
        const struct job *j = h->jobs[next[--n]];
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
            !((near ? near[i] : connected(h, job, i)) || (rank == RK_ALL_RANKS && h->jobs[job]->parent == i)))
            continue;
        rk_pack_string(&p, h->jobs[job]->outline.id);
        rk_pack_u32(&p, rank);
        rk_pack_u32(&p, by_signal);
        h->ops->send(h->arg, i, RK_DOWN_DIED, &p);
    }
    free(near);
}

static bool take_ended(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), failed = rk_unpack_u32(u), by_signal = rk_unpack_u32(u), app = 0;
    struct job *j = h->jobs[job];

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

static bool take_broken(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), lost = rk_unpack_u32(u);
    struct job *j = h->jobs[job];

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
        if (i == job || h->jobs[i]->gone || (!all && !connected(h, job, i)))
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
    struct job *j = h->jobs[job];
    bool ran = !j->starting;

    if (j->gone)
        return ran;
    tell_started(h, j, why_not(code));
    j->gone = true;
    rk_names_app_ended(h->names, job, RK_ALL_RANKS);
    for (uint32_t r = 0; j->known && r < j->outline.size; r++) {
        if (!j->ended[r])
            rk_names_ended(h->names, job, r, code != 0);
    }
    rk_gathers_ended(h->gathers, job, RK_ALL_RANKS);
    if (ran && j->known)
        tell_of_end(h, job, RK_ALL_RANKS, false);
    for (struct rk_link *l = h->questions.next, *next; l != &h->questions; l = next) {
        struct question *q = rk_list_entry(l, struct question, link);
        next = l->next;
        if (q->to != job && q->who.job != job)
            continue;
        rk_list_remove(&q->link);
        answer_with(h, &q->who, RK_NOT_FOUND, NULL, 0, NULL);
        free(q);
    }
    if (code && ran && !h->go_on)
        rk_hub_end_others(h, job, false, code, END_MS, 0);
    return ran;
}

/* ------------------------------------------------------------------------ words */

static bool take_errand(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
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
        ask(h, &who, u);
        return true;
    case RK_ERRAND_SPAWN:
        start(h, &who, rank, u);
        return true;
    default:
        return false;
    }
}

bool rk_hub_take(struct rk_hub *h, uint32_t job, enum rk_word word, struct rk_unpacker *u)
{
    struct job *j = job_of(h, job);
    int code;

    if (!j || j->gone)
        return j != NULL;
    switch (word) {
    case RK_UP_OUTLINE:
        return take_outline(h, job, u);
    case RK_UP_STARTED:
        tell_started(h, j, j->known ? RK_DONE : RK_CANNOT_START);
        return rk_unpack_done(u);
    case RK_UP_ERRAND:
        return take_errand(h, job, u);
    case RK_UP_ENDED:
        return take_ended(h, job, u);
    case RK_UP_BROKEN:
        return take_broken(h, job, u);
    case RK_UP_MODEX:
        return take_modex(h, job, u);
    case RK_UP_FAILING:
        code = (int)rk_unpack_u32(u);
        if (!h->go_on && !j->starting)
            rk_hub_end_others(h, job, false, code, END_MS, 0);
        return rk_unpack_done(u);
    default:
        return false;
    }
}

/* ------------------------------------------------------------------------- start */

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
    st = rk_names_open(base, on_found, h, &h->names);
    if (!st)
        st = rk_gathers_open(&gathers_ops, h, &h->gathers);
    if (!st && add_job(h) != 0)
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
    while (!rk_list_empty(&h->questions)) {
        struct question *q = rk_list_entry(h->questions.next, struct question, link);
        rk_list_remove(&q->link);
        free(q);
    }
    rk_gathers_close(h->gathers);
    rk_names_close(h->names);
    for (uint32_t i = 0; i < h->njobs; i++)
        free_job(h->jobs[i]);
    free(h->jobs);
    free(h);
}
