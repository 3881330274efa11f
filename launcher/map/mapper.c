/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapper.c: map, number and bind ranks. See mapper.h.
 *
 * Four steps: the number of ranks of each host, their objects, their numbers, and
 * their units.
 *
 * Units are cores, or hardware threads if the request names those; a machine that
 * shows no cores counts threads. Ranks of one object share its units in equal
 * contiguous parts, so that a part crosses as few caches as possible.
 */
#include "launcher/map/mapper_internal.h"
#include "launcher/util/shell_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS (1u << 20) /* limit for a number of ranks that the user did not state */

/* -------------------------------------------------------------- mapping */

/* Return the object of a host's next rank: round robin, but no full one while another has room. */
static uint32_t next_object(const struct xr_place_work *w, struct xr_place_ground *g, uint32_t mapped)
{
    uint32_t first = mapped % g->nobjects;

    if (w->rq->ppr)
        return mapped / w->rq->ppr % g->nobjects;
    for (uint32_t i = 0; i < g->nobjects; i++) {
        uint32_t at = (first + i) % g->nobjects;
        if ((g->objects[at].ranks + 1) * xr_cpus_per_rank(w->rq) <= g->objects[at].nunits)
            return at;
    }
    return first;
}

static void mapper_put(struct xr_place_work *w, uint32_t k, uint32_t host)
{
    struct xr_placed_host *p = &w->out->host[host];
    struct xr_place_ground *g = &w->ground[host];
    uint32_t object = next_object(w, g, p->ranks);

    g->objects[object].ranks++;
    p->ranks++;
    w->out->rank[k].host = host;
    w->out->rank[k].object = object;
}

static bool mapper_is_full(const struct xr_place_work *w, uint32_t host)
{
    return !w->rq->ppr && w->hosts[host].most && w->out->host[host].ranks >= w->hosts[host].most;
}

/* Map in rounds: in each, every host takes as many ranks as it has slots. */
static void map_all(struct xr_place_work *w)
{
    uint32_t n = w->out->n, nhosts = w->out->nhosts, k = 0;

    for (uint32_t round = 1; k < n; round++) {
        if (w->rq->map != XR_LEVEL_NODE) {
            for (uint32_t h = 0; h < nhosts; h++) {
                for (uint32_t i = 0; i < w->ground[h].capacity && k < n && !mapper_is_full(w, h); i++)
                    mapper_put(w, k++, h);
            }
            continue;
        }
        for (bool any = true; any && k < n;) {
            any = false;
            for (uint32_t h = 0; h < nhosts && k < n; h++) {
                if (w->out->host[h].ranks < round * w->ground[h].capacity && !mapper_is_full(w, h)) {
                    mapper_put(w, k++, h);
                    any = true;
                }
            }
        }
    }
}

static void map_pinned(struct xr_place_work *w)
{
    for (uint32_t k = 0; k < w->out->n; k++) {
        uint32_t host = w->rq->pin[k].host;
        w->out->rank[k].host = host;
        w->out->host[host].ranks++;
        w->ground[host].objects[0].ranks++;
    }
}

/* Check that a request that fixes the hosts itself does not exceed the limit of a host. */
static rank_status_t check_most(struct xr_place_work *w)
{
    for (uint32_t h = 0; h < w->out->nhosts; h++) {
        uint32_t most = w->hosts[h].most, ranks = w->out->host[h].ranks;
        if (most && ranks > most) {
            snprintf(w->err, w->errlen, "%s puts %u rank%s on host %s, of which max_slots is %u",
                     w->rq->pin ? "the rankfile" : "--map-by ppr", ranks, xr_plural(ranks), w->hosts[h].name, most);
            return RANK_ERR_COUNT;
        }
    }
    return RANK_OK;
}

/* Return how many ranks the hosts take if each has a limit; else 0. */
static uint64_t count_most(const struct xr_place_work *w)
{
    uint64_t all = 0;

    for (uint32_t h = 0; h < w->out->nhosts; h++) {
        if (!w->hosts[h].most)
            return 0;
        all += w->hosts[h].most;
    }
    return all;
}

static rank_status_t count_ranks(struct xr_place_work *w)
{
    const struct xr_place_request *rq = w->rq;
    uint64_t all = 0, most = count_most(w);

    for (uint32_t h = 0; h < w->out->nhosts; h++)
        all += w->ground[h].capacity;
    w->out->n = rq->n;
    if (!rq->pin && !rq->ppr && most && rq->n > most) {
        snprintf(w->err, w->errlen, "these hosts take %llu rank%s at most (max_slots), but -n is %u",
                 (unsigned long long)most, xr_plural(most), rq->n);
        return RANK_ERR_COUNT;
    }
    if (rq->pin) {
        if (rq->n > rq->npins) {
            snprintf(w->err, w->errlen, "the rankfile places %u rank%s, but -n is %u", rq->npins,
                     xr_plural(rq->npins), rq->n);
            return RANK_ERR_COUNT;
        }
        w->out->n = rq->n ? rq->n : rq->npins;
    } else if (rq->ppr) {
        if (rq->n > all || all > UINT32_MAX) {
            snprintf(w->err, w->errlen,
                     "--map-by ppr:%u:%s makes %llu rank%s on these hosts, but -n is %u; start fewer "
                     "or map by something else",
                     rq->ppr, xr_level_name(rq->map), (unsigned long long)all, xr_plural(all), rq->n);
            return RANK_ERR_COUNT;
        }
        w->out->n = rq->n ? rq->n : (uint32_t)all;
    } else if (!rq->n && rq->fill && all > MAX_RANKS) {
        snprintf(w->err, w->errlen, "these hosts have %llu slots, more than ranks can be; say how many there shall be (-n)",
                 (unsigned long long)all);
        return RANK_ERR_COUNT;
    } else if (!rq->n) {
        w->out->n = rq->fill ? (uint32_t)all : 1;
    }
    return RANK_OK;
}

/* ------------------------------------------------------------ numbering */

/* A rank's host and object, in the order of mapping. */
struct seat {
    struct xr_place place;
    uint32_t mapped, on_host, on_object;
};

static int by_round(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;

    if (x->on_host != y->on_host)
        return x->on_host < y->on_host ? -1 : 1;
    return (x->place.host > y->place.host) - (x->place.host < y->place.host);
}

static int by_fill(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;

    if (x->place.host != y->place.host)
        return x->place.host < y->place.host ? -1 : 1;
    if (x->place.object != y->place.object)
        return x->place.object < y->place.object ? -1 : 1;
    return (x->mapped > y->mapped) - (x->mapped < y->mapped);
}

static rank_status_t mapper_number(struct xr_place_work *w)
{
    struct xr_placement *p = w->out;
    uint32_t *next = calloc(p->nhosts, sizeof(*next));
    struct seat *places = calloc(p->n, sizeof(*places));
    rank_status_t st = next && places ? RANK_OK : RANK_ERR_NO_MEMORY;

    for (uint32_t k = 0; !st && k < p->n; k++)
        places[k] = (struct seat){.place = p->rank[k], .mapped = k, .on_host = next[p->rank[k].host]++};
    /* A rankfile numbers the ranks itself. */
    if (!st && !w->rq->pin && w->rq->order == XR_ORDER_NODE)
        qsort(places, p->n, sizeof(*places), by_round);
    else if (!st && !w->rq->pin && w->rq->order == XR_ORDER_FILL)
        qsort(places, p->n, sizeof(*places), by_fill);
    if (!st)
        memset(next, 0, p->nhosts * sizeof(*next));
    for (uint32_t k = 0; !st && k < p->n; k++) {
        p->rank[k] = places[k].place;
        p->rank[k].local = next[places[k].place.host]++;
    }
    free(next);
    free(places);
    return st;
}

/* ---------------------------------------------------------------- place */

static rank_status_t mapper_place(struct xr_place_work *w)
{
    struct xr_placement *p = w->out;
    rank_status_t st = RANK_OK;

    for (uint32_t h = 0; !st && h < p->nhosts; h++)
        st = xr_ground_make(w, h);
    if (!st)
        st = count_ranks(w);
    if (!st && !(p->rank = calloc(p->n, sizeof(*p->rank))))
        st = RANK_ERR_NO_MEMORY;
    if (st)
        return st;
    if (w->rq->pin)
        map_pinned(w);
    else
        map_all(w);
    st = check_most(w);
    if (!st)
        st = mapper_number(w);
    xr_bind_note_oversubscribed(w);
    if (!st)
        st = xr_bind_all(w);
    if (!st && w->rq->pin)
        st = xr_bind_note_oversubscribed_pins(w);
    return st;
}

rank_status_t xr_place(const struct xr_place_request *rq, const struct xr_place_host *hosts,
                       uint32_t nhosts, struct xr_placement *out, char *err, size_t errlen)
{
    struct xr_place_work w = {.rq = rq, .hosts = hosts, .out = out, .err = err, .errlen = errlen};
    rank_status_t st = RANK_ERR_NO_MEMORY;

    memset(out, 0, sizeof(*out));
    if (errlen)
        err[0] = '\0';
    out->nhosts = nhosts;
    out->host = calloc(nhosts, sizeof(*out->host));
    w.ground = calloc(nhosts, sizeof(*w.ground));
    if (out->host && w.ground)
        st = mapper_place(&w);
    for (uint32_t h = 0; w.ground && h < nhosts; h++) {
        free(w.ground[h].units);
        free(w.ground[h].objects);
        free(w.ground[h].owner);
    }
    free(w.ground);
    if (st && errlen && !err[0])
        snprintf(err, errlen, "placing the ranks: %s", rank_status_string(st));
    return st;
}

void xr_placement_clear(struct xr_placement *p)
{
    if (!p)
        return;
    for (uint32_t k = 0; p->rank && k < p->n; k++)
        hwloc_bitmap_free(p->rank[k].cpus);
    free(p->rank);
    free(p->host);
    memset(p, 0, sizeof(*p));
}
