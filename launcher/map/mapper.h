/*
 * mapper.h: which rank runs where.
 *
 * A pure function: hosts, their topologies and a request go in; a host, a
 * place on it and a set of processing units for each rank come out. Nothing
 * here looks at the machine that it runs on, so any machine can be tested.
 */
#ifndef XR_LAUNCHER_MAP_MAPPER_H
#define XR_LAUNCHER_MAP_MAPPER_H

#include "lib/rank.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What ranks are spread over, from the largest to the smallest. */
enum xr_level {
    XR_LEVEL_SLOT, /* hosts are filled one after the other */
    XR_LEVEL_NODE, /* one rank to each host in turn */
    XR_LEVEL_PACKAGE,
    XR_LEVEL_NUMA,
    XR_LEVEL_L3,
    XR_LEVEL_CORE,
    XR_LEVEL_HWTHREAD
};

/* What a rank may run on, inside what it was mapped to. */
enum xr_bind {
    XR_BIND_SHARE, /* its equal share of the cores */
    XR_BIND_NONE,
    XR_BIND_PACKAGE, /* the whole of that in which its share begins */
    XR_BIND_NUMA,
    XR_BIND_L3,
    XR_BIND_CORE, /* as many as were asked for, from the begin of its share; where threads are shared out, their cores */
    XR_BIND_HWTHREAD
};

/* How ranks are numbered. */
enum xr_order {
    XR_ORDER_SLOT, /* as they were mapped */
    XR_ORDER_NODE, /* one on each host in turn */
    XR_ORDER_FILL  /* host by host, on each object by object */
};

struct xr_place_host {
    const char *name;
    uint32_t slots;              /* ranks it takes before others are used; 0: one for each unit */
    uint32_t most;               /* ranks it takes at all; 0: any number */
    uint32_t units;              /* processing units that may be used, where no topology is known */
    hwloc_topology_t topology;   /* of what may be used there; NULL: nobody is bound there */
    uint32_t names;              /* so many of the hosts are this machine, and share its units; 0 is 1 */
};

/* A line of a rankfile. */
struct xr_place_pin {
    uint32_t host;
    int package;               /* cores are counted in this one; -1: in the host */
    hwloc_const_bitmap_t cores; /* logical numbers; NULL: not bound */
};

struct xr_place_request {
    uint32_t n; /* 0: as many as ppr, pins or fill give, else 1 */
    bool fill;  /* as many as hosts take before they are filled again */
    enum xr_level map;
    uint32_t ppr; /* this many on each object of the level; 0: in turn */
    enum xr_order order;
    enum xr_bind bind;
    uint32_t cpus;                  /* cores (or hardware threads) a rank; 0: not said, which is one */
    const struct xr_place_pin *pin; /* [npins], by rank; NULL: no rankfile */
    uint32_t npins;
};

struct xr_place {
    uint32_t host, local; /* local: its number among the ranks of the host */
    uint32_t object;      /* of the level, on that host, among those that may be used */
    hwloc_bitmap_t cpus;  /* NULL: not bound */
};

struct xr_placed_host {
    uint32_t ranks;
    uint32_t units;      /* cores that may be used, or hardware threads where those are counted */
    bool threads;        /* it is hardware threads */
    bool pinned;         /* by a rankfile: who is bound stays bound */
    bool oversubscribed; /* more ranks than units: nobody is bound; pinned: not every rank has a unit for itself */
    bool fewer;          /* there are not as many for each rank as were asked for: they share what there is */
};

struct xr_placement {
    uint32_t n, nhosts;
    struct xr_place *rank;       /* [n] */
    struct xr_placed_host *host; /* [nhosts] */
};

/*
 * RANK_ERR_COUNT or RANK_ERR_ARG: the request cannot be met, and err holds a
 * line that says why. Clear the placement whatever is returned.
 */
rank_status_t xr_place(const struct xr_place_request *request, const struct xr_place_host *hosts,
                       uint32_t nhosts, struct xr_placement *out, char *err, size_t errlen);
/* NULL and a zeroed one are fine. */
void xr_placement_clear(struct xr_placement *placement);

/* Does the request need a topology even where there are more ranks than processing units? */
bool xr_place_wants_topology(const struct xr_place_request *request);

/* What its units are: "core" or "hardware thread". */
const char *xr_placed_unit(const struct xr_placed_host *host);

/* "slot", "node" ...; NULL: there is no such level. */
const char *xr_level_name(enum xr_level level);

#endif
