/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ground.c: divide a host into the objects and units that ranks map to.
 */
#include "launcher/map/mapper_internal.h"

#include <stdio.h>
#include <stdlib.h>

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

uint32_t xr_cpus_per_rank(const struct xr_place_request *rq)
{
    return rq->cpus ? rq->cpus : 1;
}

bool xr_place_in_threads(const struct xr_place_request *rq)
{
    return rq->map == XR_LEVEL_HWTHREAD || rq->bind == XR_BIND_HWTHREAD;
}

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

hwloc_obj_type_t xr_ground_unit_type(const struct xr_place_work *w, const struct xr_place_host *h)
{
    return xr_place_in_threads(w->rq) || hwloc_get_nbobjs_by_type(h->topology, HWLOC_OBJ_CORE) < 1
               ? HWLOC_OBJ_PU
               : HWLOC_OBJ_CORE;
}

static rank_status_t find_units(struct xr_place_work *w, const struct xr_place_host *h, struct xr_place_ground *g)
{
    hwloc_obj_type_t type = xr_ground_unit_type(w, h);
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
 * List the objects of the level that hold units of no earlier one. Memory without cores, or a second kind of
 * memory for the same cores, does not count. Each object has a contiguous range of the units.
 */
static rank_status_t find_objects(const struct xr_place_host *h, hwloc_obj_type_t type,
                                  struct xr_place_ground *g)
{
    hwloc_obj_t o = NULL;
    uint32_t at = 0;

    while (at < g->nunits && (o = hwloc_get_next_obj_by_type(h->topology, type, o))) {
        struct xr_place_object *ob = &g->objects[g->nobjects];
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

/* Single cores and threads are units, not objects, unless a number of ranks on each is given. */
static bool has_objects(const struct xr_place_request *rq)
{
    return !rq->pin && rq->map > XR_LEVEL_NODE && (rq->map < XR_LEVEL_CORE || rq->ppr);
}

rank_status_t xr_ground_make(struct xr_place_work *w, uint32_t host)
{
    const struct xr_place_host *h = &w->hosts[host];
    struct xr_place_ground *g = &w->ground[host];
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
        g->objects[0] = (struct xr_place_object){.units = g->units, .nunits = g->nunits};
        g->nobjects = 1;
    } else if (find_objects(h, type_of(w->rq->map), g)) {
        snprintf(w->err, w->errlen, "host %s shows no %s for each of its cores; map by something else",
                 h->name, xr_level_name(w->rq->map));
        return RANK_ERR_ARG;
    }
    g->capacity = h->slots ? h->slots : g->nunits / xr_cpus_per_rank(w->rq);
    if (w->rq->ppr)
        g->capacity = w->rq->ppr * g->nobjects;
    else if (g->capacity == 0)
        g->capacity = 1;
    else if (h->most && h->most < g->capacity)
        g->capacity = h->most;
    return RANK_OK;
}

bool xr_ground_has_room(const struct xr_place_work *w, const struct xr_place_object *o)
{
    return (uint64_t)o->ranks * xr_cpus_per_rank(w->rq) <= o->nunits;
}
