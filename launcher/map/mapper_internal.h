/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapper_internal.h: share hosts, objects and units among the mapper's files.
 */
#ifndef XR_LAUNCHER_MAP_MAPPER_INTERNAL_H
#define XR_LAUNCHER_MAP_MAPPER_INTERNAL_H

#include "launcher/map/mapper.h"

/* An object of a host, with its units. */
struct xr_place_object {
    hwloc_obj_t *units; /* into struct xr_place_ground's array */
    uint32_t nunits;
    uint32_t ranks, bound; /* ranks mapped to it; of those, how many have units */
};

struct xr_place_ground {
    hwloc_obj_t *units;
    uint32_t nunits;
    struct xr_place_object *objects;
    uint32_t nobjects;
    uint32_t capacity; /* ranks it takes in a round */
    uint32_t *owner;   /* of each unit, with a rankfile: the rank that uses it + 1, or 0 */
    uint32_t *asked, asking; /* marks of units already tried for a rank: see find_unit */
};

struct xr_place_work {
    const struct xr_place_request *rq;
    const struct xr_place_host *hosts;
    struct xr_place_ground *ground; /* [nhosts] */
    struct xr_placement *out;
    char *err;
    size_t errlen;
};

/* ground.c: find the objects and units of a host. */
rank_status_t xr_ground_make(struct xr_place_work *w, uint32_t host);
/* Return the type of the host's units: cores or hardware threads. */
hwloc_obj_type_t xr_ground_unit_type(const struct xr_place_work *w, const struct xr_place_host *h);
/* Return whether the object has as many units as its ranks request. */
bool xr_ground_has_room(const struct xr_place_work *w, const struct xr_place_object *o);
uint32_t xr_cpus_per_rank(const struct xr_place_request *rq);
/* Return whether the units are hardware threads. */
bool xr_place_in_threads(const struct xr_place_request *rq);

/* bind.c: choose the units of each rank. First note which hosts are oversubscribed. */
void xr_bind_note_oversubscribed(struct xr_place_work *w);
rank_status_t xr_bind_all(struct xr_place_work *w);
/* A rankfile may crowd some units while others are free: note whether each rank can have one for itself. */
rank_status_t xr_bind_note_oversubscribed_pins(struct xr_place_work *w);

#endif
