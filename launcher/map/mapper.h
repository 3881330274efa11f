/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapper.h: compute which rank runs where.
 *
 * A pure function: the input are hosts, their topologies and a request; the output
 * is a host, an object and a set of processing units for each rank. Nothing here
 * reads the machine that it runs on, so any machine can be tested.
 */
#ifndef XR_LAUNCHER_MAP_MAPPER_H
#define XR_LAUNCHER_MAP_MAPPER_H

#include "lib/rank.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects that ranks are distributed over, from the largest to the smallest. */
enum xr_level {
    XR_LEVEL_SLOT, /* hosts are filled one after the other */
    XR_LEVEL_NODE, /* round robin over hosts */
    XR_LEVEL_PACKAGE,
    XR_LEVEL_NUMA,
    XR_LEVEL_L3,
    XR_LEVEL_CORE,
    XR_LEVEL_HWTHREAD
};

/* The part of its object that a rank may run on. */
enum xr_bind {
    XR_BIND_SHARE, /* its equal share of the cores */
    XR_BIND_NONE,
    XR_BIND_PACKAGE, /* the whole package in which its share begins */
    XR_BIND_NUMA,
    XR_BIND_L3,
    XR_BIND_CORE, /* the requested number, from the start of its share; the cores of threads if units are threads */
    XR_BIND_HWTHREAD
};

/* Order of the numbers of ranks. */
enum xr_order {
    XR_ORDER_SLOT, /* in the order of mapping */
    XR_ORDER_NODE, /* round robin over hosts */
    XR_ORDER_FILL  /* host by host, on each object by object */
};

struct xr_place_host {
    const char *name;
    uint32_t slots;              /* ranks it takes before others are used; 0: one for each unit */
    uint32_t most;               /* limit of its ranks; 0: none */
    uint32_t units;              /* usable processing units, if no topology is known */
    hwloc_topology_t topology;   /* of the usable part; NULL: ranks are not bound there */
    uint32_t names;              /* number of hosts that are this machine and share its units; 0 means 1 */
};

/* A line of a rankfile. */
struct xr_place_pin {
    uint32_t host;
    int package;               /* cores are counted in this package; -1: in the host */
    hwloc_const_bitmap_t cores; /* logical numbers; NULL: not bound */
};

struct xr_place_request {
    uint32_t n; /* 0: as many as ppr, pins or fill give, else 1 */
    bool fill;  /* as many ranks as the hosts take in one round */
    enum xr_level map;
    uint32_t ppr; /* this many on each object of the level; 0: round robin */
    enum xr_order order;
    enum xr_bind bind;
    uint32_t cpus;                  /* cores (or hardware threads) of a rank; 0: default, one */
    const struct xr_place_pin *pin; /* [npins], by rank; NULL: no rankfile */
    uint32_t npins;
};

struct xr_place {
    uint32_t host, local; /* local: its number among the ranks of the host */
    uint32_t object;      /* of the level, on that host, among the usable ones */
    hwloc_bitmap_t cpus;  /* NULL: not bound */
};

struct xr_placed_host {
    uint32_t ranks;
    uint32_t units;      /* usable cores, or hardware threads if those are the units */
    bool threads;        /* units are hardware threads */
    bool pinned;         /* by a rankfile: bindings stay even if oversubscribed */
    bool oversubscribed; /* more ranks than units: ranks are not bound; pinned: not every rank has a unit for itself */
    bool fewer;          /* fewer units for each rank than requested: the ranks share them */
};

struct xr_placement {
    uint32_t n, nhosts;
    struct xr_place *rank;       /* [n] */
    struct xr_placed_host *host; /* [nhosts] */
};

/*
 * RANK_ERR_COUNT or RANK_ERR_ARG: the request cannot be met, and err holds a line with the reason. Clear the
 * placement whatever is returned.
 */
rank_status_t xr_place(const struct xr_place_request *request, const struct xr_place_host *hosts,
                       uint32_t nhosts, struct xr_placement *out, char *err, size_t errlen);
/* No-op if NULL or zeroed. */
void xr_placement_clear(struct xr_placement *placement);

/* Return whether the request needs a topology even with more ranks than processing units. */
bool xr_place_wants_topology(const struct xr_place_request *request);

/* Return what its units are: "core" or "hardware thread". */
const char *xr_placed_unit(const struct xr_placed_host *host);

/* "slot", "node" ...; NULL: no such level. */
const char *xr_level_name(enum xr_level level);

#endif
