/* SPDX-License-Identifier: BSD-3-Clause */
/* bind.c: choose the units that each rank may use. See mapper_internal.h. */
#include "launcher/map/mapper_internal.h"

#include <stdio.h>
#include <stdlib.h>

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

/* Return the binding of a rank for a unit: the core around a hardware thread, if cores are bound. */
static hwloc_const_cpuset_t of_unit(const struct xr_place_work *w, const struct xr_place_host *h, hwloc_obj_t unit)
{
    hwloc_obj_t core = w->rq->bind == XR_BIND_CORE
                           ? hwloc_get_ancestor_obj_by_type(h->topology, HWLOC_OBJ_CORE, unit)
                           : NULL;

    return core ? core->cpuset : unit->cpuset;
}

/* Bind a rank to the units from first up to end, or to the object around the first. */
static rank_status_t bind_rank(struct xr_place_work *w, struct xr_place *r, const struct xr_place_object *o,
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
        if ((bind != XR_BIND_SHARE || w->rq->cpus) && first + xr_cpus_per_rank(w->rq) < end)
            end = first + xr_cpus_per_rank(w->rq);
        for (; first < end; first++)
            hwloc_bitmap_or(r->cpus, r->cpus, of_unit(w, h, o->units[first]));
    }
    return RANK_OK;
}

/* Bind the j-th rank of an object: spread over it, or packed if cores are mapped one by one and suffice. */
static rank_status_t bind_nth(struct xr_place_work *w, struct xr_place *r, const struct xr_place_object *o, uint32_t j)
{
    if (w->rq->map >= XR_LEVEL_CORE && !w->rq->ppr && xr_ground_has_room(w, o))
        return bind_rank(w, r, o, (uint64_t)j * xr_cpus_per_rank(w->rq), (uint64_t)(j + 1) * xr_cpus_per_rank(w->rq));
    return bind_rank(w, r, o, (uint64_t)j * o->nunits / o->ranks,
                     (uint64_t)(j + 1) * o->nunits / o->ranks);
}

static rank_status_t bind_pinned(struct xr_place_work *w, struct xr_place *r, uint32_t rank)
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
                                                                      xr_ground_unit_type(w, h), core)
                                : hwloc_get_obj_by_type(h->topology, xr_ground_unit_type(w, h), core);
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

/* More ranks on an object than it has units: the kernel's scheduler does better than a binding. */
void xr_bind_note_oversubscribed(struct xr_place_work *w)
{
    for (uint32_t h = 0; h < w->out->nhosts; h++) {
        struct xr_placed_host *p = &w->out->host[h];
        const struct xr_place_ground *g = &w->ground[h];
        uint32_t names = w->hosts[h].names ? w->hosts[h].names : 1;
        p->units = g->nunits;
        p->threads = xr_place_in_threads(w->rq);
        p->pinned = w->rq->pin != NULL;
        for (uint32_t i = 0; i < g->nobjects; i++) {
            p->oversubscribed = p->oversubscribed || g->objects[i].ranks * names > g->objects[i].nunits;
            p->fewer = p->fewer || !xr_ground_has_room(w, &g->objects[i]);
        }
        p->fewer = p->fewer && !p->oversubscribed;
    }
}

rank_status_t xr_bind_all(struct xr_place_work *w)
{
    rank_status_t st = RANK_OK;

    for (uint32_t k = 0; !st && k < w->out->n; k++) {
        struct xr_place *r = &w->out->rank[k];
        struct xr_place_object *o = &w->ground[r->host].objects[r->object];
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
 * Find a unit for the rank alone among those it may use: a free one, or one whose rank can move to another. Each
 * unit is tried once for a rank.
 */
static bool find_unit(struct xr_place_work *w, struct xr_place_ground *g, uint32_t rank)
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

/*
 * Note whether each rank of a rankfile can have a unit for itself; some units may be crowded while others are
 * free.
 */
rank_status_t xr_bind_note_oversubscribed_pins(struct xr_place_work *w)
{
    for (uint32_t k = 0; k < w->out->n; k++) {
        uint32_t host = w->out->rank[k].host;
        struct xr_place_ground *g = &w->ground[host];
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
