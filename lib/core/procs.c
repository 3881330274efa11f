/* SPDX-License-Identifier: BSD-3-Clause */
/* procs.c: keep the process table: numbers of the ranks of all known jobs. */
#include "lib/core/procs.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/core/card.h"

#include <stdlib.h>
#include <string.h>

struct kept_card {
    size_t len;
    unsigned char bytes[];
};

/* Another job. */
struct rk_world {
    struct rk_world *next; /* the one with the next higher numbers */
    uint64_t job;
    uint64_t owner;        /* rk_procs_set_owner; 0: its processes have the ids that they have here */
    int first, size;
    int holders;           /* rk_procs_hold */
    uint16_t epoch;        /* of its peers */
    bool disconnected;     /* from the own job */
    struct kept_card *card[]; /* [size]; NULL: unknown */
};

static struct rk_world *by_job(const struct rk_engine *e, uint64_t job)
{
    struct rk_world *w = e->other_jobs;

    while (w && w->job != job)
        w = w->next;
    return w;
}

static struct rk_world *procs_by_number(const struct rk_engine *e, int number)
{
    struct rk_world *w = e->other_jobs;

    while (w && number >= w->first + w->size)
        w = w->next;
    return w && number >= w->first ? w : NULL;
}

/* Grow the tables indexed by number. The PMIx thread may write to one of them. */
static rank_status_t procs_grow(struct rk_engine *e, int n)
{
    size_t words = (size_t)(n + 63) / 64, had = (size_t)(e->npeers + 63) / 64;
    struct rk_peer **peers = realloc(e->peers, (size_t)n * sizeof(struct rk_peer *));
    _Atomic uint64_t *dead;

    if (!peers)
        return RANK_ERR_NO_MEMORY;
    e->peers = peers;
    dead = calloc(words, sizeof(uint64_t));
    if (!dead)
        return RANK_ERR_NO_MEMORY;
    memset(peers + e->npeers, 0, (size_t)(n - e->npeers) * sizeof(struct rk_peer *));
    pthread_mutex_lock(&e->deaths_lock);
    for (size_t i = 0; i < had; i++)
        atomic_store(&dead[i], atomic_load(&e->boot_dead[i]));
    free(e->boot_dead);
    e->boot_dead = dead;
    e->npeers = n;
    pthread_mutex_unlock(&e->deaths_lock);
    return RANK_OK;
}

/* Find the first free range of numbers. Returns the link at which its job belongs. */
static struct rk_world **procs_free_range(struct rk_ctx *ctx, int size, int *first)
{
    struct rk_world **at = &ctx->engine->other_jobs;

    *first = ctx->boot->size;
    while (*at && (*at)->first - *first < size) {
        *first = (*at)->first + (*at)->size;
        at = &(*at)->next;
    }
    return at;
}

rank_status_t rk_procs_add_job(struct rk_ctx *ctx, uint64_t job, int size, uint16_t epoch, int *first)
{
    struct rk_engine *e = ctx->engine;
    struct rk_world *w = by_job(e, job), **at;

    *first = w ? w->first : 0;
    if (w)
        return size <= w->size ? RANK_OK : RANK_ERR_BOOT;
    if (job == e->job)
        return size == ctx->boot->size ? RANK_OK : RANK_ERR_BOOT;
    if (size < 1 || size > RK_JOB_SIZE_MAX)
        return RANK_ERR_BOOT;
    at = procs_free_range(ctx, size, first);
    if (*first > INT32_MAX - size)
        return RANK_ERR_BOOT;
    w = calloc(1, sizeof(*w) + (size_t)size * sizeof(struct kept_card *));
    if (!w || (*first + size > e->npeers && procs_grow(e, *first + size))) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a job of %d ranks", size);
        free(w);
        return RANK_ERR_NO_MEMORY;
    }
    w->job = job;
    w->size = size;
    w->first = *first;
    w->epoch = epoch;
    w->next = *at;
    *at = w;
    rk_debug("%d ranks of another job have the numbers from %d on", size, w->first);
    for (int n = w->first; n < w->first + size; n++) {
        if (e->peers[n])
            rk_peer_reset(e->peers[n]);
    }
    return RANK_OK;
}

static void world_free(struct rk_world *w)
{
    for (int r = 0; r < w->size; r++)
        free(w->card[r]);
    free(w);
}

static void procs_remove(struct rk_ctx *ctx, struct rk_world **at)
{
    struct rk_engine *e = ctx->engine;
    struct rk_world *w = *at;

    for (int n = w->first; n < w->first + w->size; n++) {
        if (e->peers[n])
            rk_peer_drop(e->peers[n], w->disconnected);
    }
    if (ctx->boot->ops->remove_job)
        ctx->boot->ops->remove_job(ctx->boot, w->first);
    pthread_mutex_lock(&e->deaths_lock);
    for (int n = w->first; n < w->first + w->size; n++)
        atomic_fetch_and(&e->boot_dead[n / 64], ~(1ull << (n % 64)));
    pthread_mutex_unlock(&e->deaths_lock);
    e->gone_jobs[e->ngone++ % RK_GONE_JOBS] = w->job;
    *at = w->next;
    world_free(w);
}

void rk_procs_remove_job(struct rk_ctx *ctx, uint64_t job)
{
    struct rk_world **at = &ctx->engine->other_jobs;

    while (*at && (*at)->job != job)
        at = &(*at)->next;
    if (*at)
        procs_remove(ctx, at);
}

void rk_procs_disconnect(struct rk_ctx *ctx, uint64_t job)
{
    struct rk_world *w = by_job(ctx->engine, job);

    if (w)
        w->disconnected = true;
}

/* Are these processes, except the own one, known to be dead? */
static bool procs_dead(const struct rk_ctx *ctx, int first, int size)
{
    for (int n = first; n < first + size; n++) {
        if (n != ctx->boot->rank && !rk_procs_is_dead(ctx, n))
            return false;
    }
    return true;
}

void rk_procs_hold(struct rk_ctx *ctx, const int *numbers, int n, int by)
{
    struct rk_world *w;

    for (int i = 0; i < n; i++) {
        w = procs_by_number(ctx->engine, numbers[i]);
        if (w)
            w->holders += by;
    }
}

void rk_procs_sweep(struct rk_ctx *ctx)
{
    struct rk_world **at = &ctx->engine->other_jobs, *w;

    while ((w = *at) != NULL) {
        if ((w->disconnected || procs_dead(ctx, w->first, w->size)) && w->holders == 0)
            procs_remove(ctx, at);
        else
            at = &w->next;
    }
}

bool rk_procs_all_dead(const struct rk_ctx *ctx)
{
    const struct rk_world *w = ctx->engine->other_jobs;

    if (!procs_dead(ctx, 0, ctx->boot->size))
        return false;
    while (w && procs_dead(ctx, w->first, w->size))
        w = w->next;
    return !w;
}

void rk_procs_close(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    while (e->other_jobs) {
        struct rk_world *w = e->other_jobs;
        e->other_jobs = w->next;
        world_free(w);
    }
}

int rk_procs_number(struct rk_ctx *ctx, struct rk_procid id)
{
    const struct rk_engine *e = ctx->engine;
    const struct rk_world *w;

    if (id.job == e->job)
        return id.rank < (uint32_t)ctx->boot->size ? (int)id.rank : -1;
    w = by_job(e, id.job);
    return w && id.rank < (uint32_t)w->size ? w->first + (int)id.rank : -1;
}

struct rk_procid rk_procs_id(struct rk_ctx *ctx, int number)
{
    const struct rk_world *w = procs_by_number(ctx->engine, number);

    if (!w)
        return (struct rk_procid){ctx->engine->job, (uint32_t)number};
    return (struct rk_procid){w->job, (uint32_t)(number - w->first)};
}

void rk_procs_set_owner(struct rk_ctx *ctx, int number, uint64_t owner)
{
    struct rk_world *w = procs_by_number(ctx->engine, number);

    if (w)
        w->owner = owner;
}

uint64_t rk_procs_owner(struct rk_ctx *ctx, int number)
{
    const struct rk_world *w = procs_by_number(ctx->engine, number);

    return w && w->owner ? w->owner : rk_procid_hash(rk_procs_id(ctx, number));
}

uint16_t rk_procs_epoch(struct rk_ctx *ctx, int number)
{
    const struct rk_world *w = procs_by_number(ctx->engine, number);

    return w ? w->epoch : 0;
}

const char *rk_peer_job_suffix(const struct rk_peer *peer)
{
    return procs_by_number(peer->ctx->engine, peer->number) ? " of another job" : "";
}

rank_status_t rk_procs_set_card(struct rk_ctx *ctx, int number, const void *card, size_t len)
{
    struct rk_world *w = procs_by_number(ctx->engine, number);
    struct kept_card *c;

    if (!w || w->card[number - w->first]) /* own job: in the launcher's store, or here */
        return RANK_OK;
    c = malloc(sizeof(*c) + len);
    if (!c)
        return RANK_ERR_NO_MEMORY;
    c->len = len;
    memcpy(c->bytes, card, len);
    w->card[number - w->first] = c;
    return RANK_OK;
}

rank_status_t rk_peer_card(struct rk_peer *peer, const char *channel, void *data, size_t *len)
{
    const struct rk_world *w = procs_by_number(peer->ctx->engine, peer->number);
    const struct kept_card *kept = w ? w->card[peer->number - w->first] : NULL;
    struct rk_boot *boot = peer->ctx->boot;
    unsigned char published[RK_CARD_MAX];
    size_t all = sizeof(published), bytes;
    const void *part = NULL;

    if (kept) {
        part = rk_card_part(kept->bytes, kept->len, channel, &bytes);
    } else if (!w) {
        rank_status_t st = boot->ops->get(boot, peer->number, RK_CARD_KEY, published, &all);
        if (st)
            return st;
        part = rk_card_part(published, all, channel, &bytes);
    }
    if (!part || bytes > *len)
        return RANK_ERR_UNREACHABLE;
    memcpy(data, part, bytes);
    *len = bytes;
    return RANK_OK;
}
