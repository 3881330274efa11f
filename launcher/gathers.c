/* gathers.c: see gathers.h. */
#include "launcher/gathers.h"
#include "launcher/message.h"
#include "lib/base/list.h"

#include <stdlib.h>
#include <string.h>

struct process {
    uint32_t job, rank;
};

struct gather {
    struct rk_link link;
    enum rk_errand what;
    struct process *all; /* sorted */
    uint32_t n;
    uint64_t want, come; /* processes */
    struct rk_gather_who *who;
    uint32_t nwho;
    struct rk_packer data;
    uint32_t *jobs, njobs;
    bool failed; /* answered; who has not come yet shall not wait for those who have */
};

struct rk_gathers {
    const struct rk_gathers_ops *ops;
    void *arg;
    struct rk_link active;
};

static void destroy(struct gather *x)
{
    rk_list_remove(&x->link);
    rk_packer_free(&x->data);
    free(x->all);
    free(x->who);
    free(x->jobs);
    free(x);
}

static int by_number(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Who takes part; NULL: the request makes no sense, or *status says what else. */
static struct process *list(struct rk_gathers *g, struct rk_unpacker *u, uint32_t n,
                            enum rk_errand_status *status)
{
    struct process *all;

    *status = RK_REFUSED;
    if (u->failed || n == 0 || n > u->left / 8)
        return NULL;
    all = calloc(n, sizeof(*all));
    for (uint32_t i = 0; all && i < n; i++) {
        const char *id = rk_unpack_string(u);
        all[i].rank = rk_unpack_u32(u);
        all[i].job = id ? g->ops->job(g->arg, id) : RK_NO_JOB;
        if (all[i].job == RK_NO_JOB ||
            (all[i].rank != RK_ALL_RANKS && all[i].rank >= g->ops->size(g->arg, all[i].job))) {
            *status = u->failed ? RK_REFUSED : RK_NOT_FOUND;
            free(all);
            return NULL;
        }
    }
    if (all)
        qsort(all, n, sizeof(*all), by_number);
    return all;
}

static bool has_come(const struct gather *x, const struct rk_gather_who *who)
{
    for (uint32_t i = 0; i < x->nwho; i++) {
        if (x->who[i].job == who->job && x->who[i].node == who->node)
            return true;
    }
    return false;
}

static struct gather *find(struct rk_gathers *g, enum rk_errand what, const struct process *all,
                           uint32_t n, const struct rk_gather_who *who)
{
    for (struct rk_link *l = g->active.next; l != &g->active; l = l->next) {
        struct gather *x = rk_list_entry(l, struct gather, link);
        if (x->what == what && x->n == n && memcmp(x->all, all, n * sizeof(*all)) == 0 &&
            !has_come(x, who))
            return x;
    }
    return NULL;
}

/* Takes all over. */
static struct gather *make(struct rk_gathers *g, enum rk_errand what, struct process *all, uint32_t n)
{
    struct gather *x = calloc(1, sizeof(*x));

    if (!x) {
        free(all);
        return NULL;
    }
    *x = (struct gather){.what = what, .all = all, .n = n, .jobs = calloc(n, sizeof(*x->jobs))};
    rk_list_append(&g->active, &x->link);
    if (!x->jobs) {
        destroy(x);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        x->want += all[i].rank == RK_ALL_RANKS ? g->ops->size(g->arg, all[i].job) : 1;
        if (i == 0 || all[i].job != all[i - 1].job)
            x->jobs[x->njobs++] = all[i].job;
    }
    return x;
}

static void finish(struct rk_gathers *g, struct gather *x, enum rk_errand_status status)
{
    rk_list_remove(&x->link); /* who has come and comes again begins anew */
    if (status == RK_DONE)
        g->ops->together(g->arg, x->what, x->jobs, x->njobs);
    for (uint32_t i = 0; i < x->nwho; i++)
        g->ops->answer(g->arg, &x->who[i], status, x->data.data, status == RK_DONE ? x->data.len : 0,
                       x->jobs, x->njobs);
    if (status != RK_SOMEBODY_LOST || x->come >= x->want) {
        destroy(x);
        return;
    }
    x->failed = true;
    rk_packer_free(&x->data);
    rk_list_append(&g->active, &x->link);
}

static bool any_ended(struct rk_gathers *g, const struct gather *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        if (g->ops->ended(g->arg, x->all[i].job, x->all[i].rank))
            return true;
    }
    return false;
}

static void refuse(struct rk_gathers *g, const struct rk_gather_who *who, enum rk_errand_status status)
{
    g->ops->answer(g->arg, who, status, NULL, 0, NULL, 0);
}

void rk_gathers_join(struct rk_gathers *g, enum rk_errand what, const struct rk_gather_who *who,
                     struct rk_unpacker *u)
{
    uint32_t lost = rk_unpack_u32(u), here = rk_unpack_u32(u), n = rk_unpack_u32(u);
    enum rk_errand_status status;
    struct process *all = list(g, u, n, &status);
    struct rk_gather_who *longer;
    struct gather *x;
    const void *data;
    size_t len;

    data = rk_unpack_bytes(u, &len);
    if (!all || !rk_unpack_done(u)) {
        refuse(g, who, all ? RK_REFUSED : status);
        free(all);
        return;
    }
    x = find(g, what, all, n, who);
    if (x)
        free(all);
    else
        x = make(g, what, all, n);
    longer = x ? realloc(x->who, (x->nwho + 1) * sizeof(*longer)) : NULL;
    if (!longer) {
        refuse(g, who, RK_NO_ROOM);
        if (x)
            finish(g, x, RK_NO_ROOM);
        return;
    }
    x->who = longer;
    x->who[x->nwho++] = *who;
    x->come += here;
    if (x->failed) {
        refuse(g, who, RK_SOMEBODY_LOST);
        if (x->come >= x->want)
            destroy(x);
        return;
    }
    rk_pack_raw(&x->data, data, len);
    if (lost || any_ended(g, x))
        finish(g, x, RK_SOMEBODY_LOST);
    else if (x->data.failed || x->data.len > RK_MESSAGE_MAX / 2)
        finish(g, x, RK_NO_ROOM);
    else if (x->come >= x->want)
        finish(g, x, RK_DONE);
}

void rk_gathers_ended(struct rk_gathers *g, uint32_t job, uint32_t rank)
{
    for (struct rk_link *l = g->active.next, *next; l != &g->active; l = next) {
        struct gather *x = rk_list_entry(l, struct gather, link);
        bool part = false;
        next = l->next;
        if (x->failed)
            continue;
        for (uint32_t i = 0; i < x->n && !part; i++)
            part = x->all[i].job == job && (rank == RK_ALL_RANKS || x->all[i].rank == RK_ALL_RANKS ||
                                            x->all[i].rank == rank);
        if (part)
            finish(g, x, RK_SOMEBODY_LOST);
    }
}

rank_status_t rk_gathers_open(const struct rk_gathers_ops *ops, void *arg, struct rk_gathers **out)
{
    struct rk_gathers *g = calloc(1, sizeof(*g));

    if (!g)
        return RANK_ERR_NO_MEMORY;
    g->ops = ops;
    g->arg = arg;
    rk_list_init(&g->active);
    *out = g;
    return RANK_OK;
}

void rk_gathers_close(struct rk_gathers *g)
{
    if (!g)
        return;
    while (!rk_list_empty(&g->active))
        destroy(rk_list_entry(g->active.next, struct gather, link));
    free(g);
}
