/*
 * mapper.c: see mapper.h.
 *
 * In four steps: how many ranks each host gets and in which order, on which of
 * its objects, how they are numbered, and which units each may use.
 *
 * The units that are shared out are cores, or hardware threads where the
 * request speaks of those; a machine that shows no cores counts threads. Ranks
 * of one object share its units in equal parts that lie side by side, so that
 * a part crosses as few caches as can be.
 */
#include "launcher/map/mapper.h"
#include "launcher/util/shell_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS (1u << 20) /* that nobody has asked for by their number */

/* A host, cut into objects, each with its units. */
struct object {
    hwloc_obj_t *units; /* into struct ground's array */
    uint32_t nunits;
    uint32_t ranks, bound; /* mapped to it; of those, how many have been given units */
};

struct ground {
    hwloc_obj_t *units;
    uint32_t nunits;
    struct object *objects;
    uint32_t nobjects;
    uint32_t capacity; /* ranks it takes in a round */
    uint32_t *owner;   /* of each unit, where a rankfile says who may use which: its rank + 1, or 0 */
    uint32_t *asked, asking; /* which have been asked for by whom: see find_unit */
};

struct work {
    const struct xr_place_request *rq;
    const struct xr_place_host *hosts;
    struct ground *ground; /* [nhosts] */
    struct xr_placement *out;
    char *err;
    size_t errlen;
};

static const char *const level_names[] = {"slot", "node", "package", "numa",
                                          "l3",   "core", "hwthread"};

const char *xr_level_name(enum xr_level level)
{
    return level <= XR_LEVEL_HWTHREAD ? level_names[level] : NULL;
}

const char *xr_placed_unit(const struct xr_placed_host *host)
{
    return host->threads ? "hardware thread" : "core";
}

bool xr_place_wants_topology(const struct xr_place_request *rq)
{
    return rq->pin || rq->map > XR_LEVEL_NODE || rq->bind > XR_BIND_NONE || rq->cpus > 1;
}

static uint32_t cpus(const struct xr_place_request *rq)
{
    return rq->cpus ? rq->cpus : 1;
}

static bool in_threads(const struct xr_place_request *rq)
{
    return rq->map == XR_LEVEL_HWTHREAD || rq->bind == XR_BIND_HWTHREAD;
}

/* ------------------------------------------------------------------- ground */

static hwloc_obj_type_t type_of(enum xr_level level)
{
    switch (level) {
    case XR_LEVEL_PACKAGE:
        return HWLOC_OBJ_PACKAGE;
    case XR_LEVEL_NUMA:
        return HWLOC_OBJ_NUMANODE;
    case XR_LEVEL_L3:
        return HWLOC_OBJ_L3CACHE;
    case XR_LEVEL_CORE:
        return HWLOC_OBJ_CORE;
    case XR_LEVEL_HWTHREAD:
        return HWLOC_OBJ_PU;
    default:
        return HWLOC_OBJ_MACHINE;
    }
}

static hwloc_obj_type_t unit_type(const struct work *w, const struct xr_place_host *h)
{
    return in_threads(w->rq) || hwloc_get_nbobjs_by_type(h->topology, HWLOC_OBJ_CORE) < 1
               ? HWLOC_OBJ_PU
               : HWLOC_OBJ_CORE;
}

static rank_status_t find_units(struct work *w, const struct xr_place_host *h, struct ground *g)
{
    hwloc_obj_type_t type = unit_type(w, h);
    int n = hwloc_get_nbobjs_by_type(h->topology, type);
    hwloc_obj_t unit = NULL;

    g->units = calloc(n < 1 ? 1 : (size_t)n, sizeof(hwloc_obj_t));
    if (!g->units)
        return RANK_ERR_NO_MEMORY;
    while ((unit = hwloc_get_next_obj_by_type(h->topology, type, unit)))
        g->units[g->nunits++] = unit;
    return RANK_OK;
}

/*
 * The objects of the level that hold units which no earlier one holds: memory
 * without cores, or a second kind of memory beside the same cores, is none.
 * Objects of a level lie side by side in the order of the units, so that each
 * has a stretch of them.
 */
static rank_status_t find_objects(const struct xr_place_host *h, hwloc_obj_type_t type,
                                  struct ground *g)
{
    hwloc_obj_t o = NULL;
    uint32_t at = 0;

    while (at < g->nunits && (o = hwloc_get_next_obj_by_type(h->topology, type, o))) {
        struct object *ob = &g->objects[g->nobjects];
        ob->units = g->units + at;
        ob->nunits = 0;
        while (at < g->nunits && hwloc_bitmap_isincluded(g->units[at]->cpuset, o->cpuset)) {
            at++;
            ob->nunits++;
        }
        g->nobjects += ob->nunits > 0;
    }
    return at == g->nunits ? RANK_OK : RANK_ERR_ARG;
}

/* Cores and threads one by one are a matter of how the units are cut, but for a number on each. */
static bool has_objects(const struct xr_place_request *rq)
{
    return !rq->pin && rq->map > XR_LEVEL_NODE && (rq->map < XR_LEVEL_CORE || rq->ppr);
}

static rank_status_t make_ground(struct work *w, uint32_t host)
{
    const struct xr_place_host *h = &w->hosts[host];
    struct ground *g = &w->ground[host];
    rank_status_t st = RANK_OK;

    g->nunits = h->units;
    if (h->topology) {
        g->nunits = 0;
        st = find_units(w, h, g);
    }
    g->objects = calloc(g->nunits ? g->nunits : 1, sizeof(*g->objects));
    if (st || !g->objects)
        return RANK_ERR_NO_MEMORY;
    if (!has_objects(w->rq) || !h->topology) {
        g->objects[0] = (struct object){.units = g->units, .nunits = g->nunits};
        g->nobjects = 1;
    } else if (find_objects(h, type_of(w->rq->map), g)) {
        snprintf(w->err, w->errlen, "host %s shows no %s for each of its cores; map by something else",
                 h->name, xr_level_name(w->rq->map));
        return RANK_ERR_ARG;
    }
    g->capacity = h->slots ? h->slots : g->nunits / cpus(w->rq);
    if (w->rq->ppr)
        g->capacity = w->rq->ppr * g->nobjects;
    else if (g->capacity == 0)
        g->capacity = 1;
    else if (h->most && h->most < g->capacity)
        g->capacity = h->most;
    return RANK_OK;
}

/* ------------------------------------------------------------- who goes where */

/* The object that the next rank of a host goes to: in turn, but no full one while another is not. */
static uint32_t next_object(const struct work *w, struct ground *g, uint32_t mapped)
{
    uint32_t first = mapped % g->nobjects;

    if (w->rq->ppr)
        return mapped / w->rq->ppr % g->nobjects;
    for (uint32_t i = 0; i < g->nobjects; i++) {
        uint32_t at = (first + i) % g->nobjects;
        if ((g->objects[at].ranks + 1) * cpus(w->rq) <= g->objects[at].nunits)
            return at;
    }
    return first;
}

static void put(struct work *w, uint32_t k, uint32_t host)
{
    struct xr_placed_host *p = &w->out->host[host];
    struct ground *g = &w->ground[host];
    uint32_t object = next_object(w, g, p->ranks);

    g->objects[object].ranks++;
    p->ranks++;
    w->out->rank[k].host = host;
    w->out->rank[k].object = object;
}

static bool is_full(const struct work *w, uint32_t host)
{
    return !w->rq->ppr && w->hosts[host].most && w->out->host[host].ranks >= w->hosts[host].most;
}

/* As many rounds as it takes: in each, every host takes what it has slots for. */
static void map_all(struct work *w)
{
    uint32_t n = w->out->n, nhosts = w->out->nhosts, k = 0;

    for (uint32_t round = 1; k < n; round++) {
        if (w->rq->map != XR_LEVEL_NODE) {
            for (uint32_t h = 0; h < nhosts; h++) {
                for (uint32_t i = 0; i < w->ground[h].capacity && k < n && !is_full(w, h); i++)
                    put(w, k++, h);
            }
            continue;
        }
        for (bool any = true; any && k < n;) {
            any = false;
            for (uint32_t h = 0; h < nhosts && k < n; h++) {
                if (w->out->host[h].ranks < round * w->ground[h].capacity && !is_full(w, h)) {
                    put(w, k++, h);
                    any = true;
                }
            }
        }
    }
}

static void map_pinned(struct work *w)
{
    for (uint32_t k = 0; k < w->out->n; k++) {
        uint32_t host = w->rq->pin[k].host;
        w->out->rank[k].host = host;
        w->out->host[host].ranks++;
        w->ground[host].objects[0].ranks++;
    }
}

/* Where the request itself says who goes where, a host may have got more than it takes. */
static rank_status_t check_most(struct work *w)
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

/* All ranks that hosts take, if each has a limit; or else 0. */
static uint64_t count_most(const struct work *w)
{
    uint64_t all = 0;

    for (uint32_t h = 0; h < w->out->nhosts; h++) {
        if (!w->hosts[h].most)
            return 0;
        all += w->hosts[h].most;
    }
    return all;
}

static rank_status_t count_ranks(struct work *w)
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

/* ------------------------------------------------------------------ numbering */

/* Where a rank stands: on its host and object, in the order of mapping. */
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

static rank_status_t number(struct work *w)
{
    struct xr_placement *p = w->out;
    uint32_t *next = calloc(p->nhosts, sizeof(*next));
    struct seat *seats = calloc(p->n, sizeof(*seats));
    rank_status_t st = next && seats ? RANK_OK : RANK_ERR_NO_MEMORY;

    for (uint32_t k = 0; !st && k < p->n; k++)
        seats[k] = (struct seat){.place = p->rank[k], .mapped = k, .on_host = next[p->rank[k].host]++};
    /* A rankfile names them itself. */
    if (!st && !w->rq->pin && w->rq->order == XR_ORDER_NODE)
        qsort(seats, p->n, sizeof(*seats), by_round);
    else if (!st && !w->rq->pin && w->rq->order == XR_ORDER_FILL)
        qsort(seats, p->n, sizeof(*seats), by_fill);
    if (!st)
        memset(next, 0, p->nhosts * sizeof(*next));
    for (uint32_t k = 0; !st && k < p->n; k++) {
        p->rank[k] = seats[k].place;
        p->rank[k].local = next[seats[k].place.host]++;
    }
    free(next);
    free(seats);
    return st;
}

/* -------------------------------------------------------------------- binding */

static hwloc_obj_t above(hwloc_topology_t t, hwloc_obj_t unit, enum xr_bind bind)
{
    hwloc_obj_type_t type = bind == XR_BIND_PACKAGE ? HWLOC_OBJ_PACKAGE
                            : bind == XR_BIND_NUMA  ? HWLOC_OBJ_NUMANODE
                                                    : HWLOC_OBJ_L3CACHE;
    hwloc_obj_t o = NULL;

    while ((o = hwloc_get_next_obj_by_type(t, type, o))) {
        if (hwloc_bitmap_isincluded(unit->cpuset, o->cpuset))
            return o;
    }
    return NULL;
}

static bool has_room(const struct work *w, const struct object *o)
{
    return (uint64_t)o->ranks * cpus(w->rq) <= o->nunits;
}

/* What a rank is bound to of a unit: the core around a thread, if it shall have cores. */
static hwloc_const_cpuset_t of_unit(const struct work *w, const struct xr_place_host *h, hwloc_obj_t unit)
{
    hwloc_obj_t core = w->rq->bind == XR_BIND_CORE
                           ? hwloc_get_ancestor_obj_by_type(h->topology, HWLOC_OBJ_CORE, unit)
                           : NULL;

    return core ? core->cpuset : unit->cpuset;
}

/* The units from first up to end, or what holds the first. */
static rank_status_t bind_rank(struct work *w, struct xr_place *r, const struct object *o,
                               uint64_t first, uint64_t end)
{
    const struct xr_place_host *h = &w->hosts[r->host];
    enum xr_bind bind = w->rq->bind;

    r->cpus = hwloc_bitmap_alloc();
    if (!r->cpus)
        return RANK_ERR_NO_MEMORY;
    if (bind == XR_BIND_PACKAGE || bind == XR_BIND_NUMA || bind == XR_BIND_L3) {
        hwloc_obj_t holder = above(h->topology, o->units[first], bind);
        if (!holder) {
            snprintf(w->err, w->errlen, "host %s shows no %s to bind to; use --bind core or share",
                     h->name, bind == XR_BIND_PACKAGE ? "package" : bind == XR_BIND_NUMA ? "numa" : "l3");
            return RANK_ERR_ARG;
        }
        hwloc_bitmap_copy(r->cpus, holder->cpuset);
    } else {
        if ((bind != XR_BIND_SHARE || w->rq->cpus) && first + cpus(w->rq) < end)
            end = first + cpus(w->rq);
        for (; first < end; first++)
            hwloc_bitmap_or(r->cpus, r->cpus, of_unit(w, h, o->units[first]));
    }
    return RANK_OK;
}

/* The j-th rank of an object: spread over it, or packed where cores are mapped one by one and are enough. */
static rank_status_t bind_nth(struct work *w, struct xr_place *r, const struct object *o, uint32_t j)
{
    if (w->rq->map >= XR_LEVEL_CORE && !w->rq->ppr && has_room(w, o))
        return bind_rank(w, r, o, (uint64_t)j * cpus(w->rq), (uint64_t)(j + 1) * cpus(w->rq));
    return bind_rank(w, r, o, (uint64_t)j * o->nunits / o->ranks,
                     (uint64_t)(j + 1) * o->nunits / o->ranks);
}

static rank_status_t bind_pinned(struct work *w, struct xr_place *r, uint32_t rank)
{
    const struct xr_place_pin *pin = &w->rq->pin[rank];
    const struct xr_place_host *h = &w->hosts[r->host];
    hwloc_obj_t package = NULL;
    unsigned core;
    bool ok = true;

    if (!pin->cores)
        return RANK_OK;
    r->cpus = hwloc_bitmap_alloc();
    if (!r->cpus)
        return RANK_ERR_NO_MEMORY;
    if (pin->package >= 0)
        package = hwloc_get_obj_by_type(h->topology, HWLOC_OBJ_PACKAGE, (unsigned)pin->package);
    if (pin->package >= 0 && !package)
        ok = false;
    hwloc_bitmap_foreach_begin(core, pin->cores)
        hwloc_obj_t o = package ? hwloc_get_obj_inside_cpuset_by_type(h->topology, package->cpuset,
                                                                      unit_type(w, h), core)
                                : hwloc_get_obj_by_type(h->topology, unit_type(w, h), core);
        if (o)
            hwloc_bitmap_or(r->cpus, r->cpus, o->cpuset);
        ok = ok && o;
    hwloc_bitmap_foreach_end();
    if (!ok)
        snprintf(w->err, w->errlen,
                 "the rankfile gives rank %u cores that host %s does not have or xrun may not use",
                 rank, h->name);
    return ok ? RANK_OK : RANK_ERR_ARG;
}

/* More ranks on an object than it has units: the kernel's scheduler does better than we can. */
static void judge_hosts(struct work *w)
{
    for (uint32_t h = 0; h < w->out->nhosts; h++) {
        struct xr_placed_host *p = &w->out->host[h];
        const struct ground *g = &w->ground[h];
        uint32_t names = w->hosts[h].names ? w->hosts[h].names : 1;
        p->units = g->nunits;
        p->threads = in_threads(w->rq);
        p->pinned = w->rq->pin != NULL;
        for (uint32_t i = 0; i < g->nobjects; i++) {
            p->oversubscribed = p->oversubscribed || g->objects[i].ranks * names > g->objects[i].nunits;
            p->fewer = p->fewer || !has_room(w, &g->objects[i]);
        }
        p->fewer = p->fewer && !p->oversubscribed;
    }
}

static rank_status_t bind_all(struct work *w)
{
    rank_status_t st = RANK_OK;

    for (uint32_t k = 0; !st && k < w->out->n; k++) {
        struct xr_place *r = &w->out->rank[k];
        struct object *o = &w->ground[r->host].objects[r->object];
        if (!w->hosts[r->host].topology)
            continue;
        if (w->rq->pin)
            st = bind_pinned(w, r, k);
        else if (w->rq->bind != XR_BIND_NONE && !w->out->host[r->host].oversubscribed && w->hosts[r->host].names <= 1)
            st = bind_nth(w, r, o, o->bound++);
    }
    return st;
}

/*
 * A unit of its own for the rank among those that it may use: a free one, or one whose rank finds another. No unit is
 * asked for twice on behalf of one rank.
 */
static bool find_unit(struct work *w, struct ground *g, uint32_t rank)
{
    hwloc_const_cpuset_t may = w->out->rank[rank].cpus;

    for (int taken = 0; taken <= 1; taken++) {
        for (uint32_t u = 0; u < g->nunits; u++) {
            if (!taken != !g->owner[u] || g->asked[u] == g->asking ||
                (may && !hwloc_bitmap_intersects(may, g->units[u]->cpuset)))
                continue;
            g->asked[u] = g->asking;
            if (!taken || find_unit(w, g, g->owner[u] - 1)) {
                g->owner[u] = rank + 1;
                return true;
            }
        }
    }
    return false;
}

/* A rankfile may crowd some units while others are free: can each rank have one for itself? */
static rank_status_t judge_pins(struct work *w)
{
    for (uint32_t k = 0; k < w->out->n; k++) {
        uint32_t host = w->out->rank[k].host;
        struct ground *g = &w->ground[host];
        if (w->out->host[host].oversubscribed || !g->units)
            continue;
        if (!g->owner)
            g->owner = calloc(2 * (size_t)g->nunits + 1, sizeof(*g->owner));
        if (!g->owner)
            return RANK_ERR_NO_MEMORY;
        g->asked = g->owner + g->nunits;
        g->asking++;
        w->out->host[host].oversubscribed = !find_unit(w, g, k);
    }
    return RANK_OK;
}

/* ------------------------------------------------------------------------ all */

static rank_status_t place(struct work *w)
{
    struct xr_placement *p = w->out;
    rank_status_t st = RANK_OK;

    for (uint32_t h = 0; !st && h < p->nhosts; h++)
        st = make_ground(w, h);
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
        st = number(w);
    judge_hosts(w);
    if (!st)
        st = bind_all(w);
    if (!st && w->rq->pin)
        st = judge_pins(w);
    return st;
}

rank_status_t xr_place(const struct xr_place_request *rq, const struct xr_place_host *hosts,
                       uint32_t nhosts, struct xr_placement *out, char *err, size_t errlen)
{
    struct work w = {.rq = rq, .hosts = hosts, .out = out, .err = err, .errlen = errlen};
    rank_status_t st = RANK_ERR_NO_MEMORY;

    memset(out, 0, sizeof(*out));
    if (errlen)
        err[0] = '\0';
    out->nhosts = nhosts;
    out->host = calloc(nhosts, sizeof(*out->host));
    w.ground = calloc(nhosts, sizeof(*w.ground));
    if (out->host && w.ground)
        st = place(&w);
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
