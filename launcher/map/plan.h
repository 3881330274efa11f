/*
 * plan.h: the hosts of a job, what is known of them, and who runs where.
 */
#ifndef XR_LAUNCHER_MAP_PLAN_H
#define XR_LAUNCHER_MAP_PLAN_H

#include "launcher/alloc/hostlist.h"
#include "launcher/map/mapper.h"
#include "launcher/map/rankfile.h"
#include "launcher/map/policy.h"

#include <stdio.h>


/* What an agent says of its host, or xrun sees of its own. */
struct xr_plan_host {
    char *real_name; /* as the host calls itself; NULL: not known yet */
    uint32_t units;
    uint16_t port; /* of TCP, which nobody uses there; 0: not known, as of xrun's own */
    hwloc_topology_t topology; /* of what may be used; may be another's that looks the same; NULL: not needed or not known */
    uint64_t machine; /* see local_host.h */
    uint32_t names;   /* how many of the hosts that machine is; 0: not known, and so one */
};

/* One of the job's; its ranks follow those of the one before it. */
struct xr_plan_program {
    const char *name;
    uint32_t n; /* ranks; of the only one there is 0, while it is not known */
};

struct xr_plan {
    const struct xr_where *where;
    struct xr_hostlist hosts;
    char *given; /* all that somebody has named, as --host has them, before those that no rank can need were left out; or NULL */
    struct xr_plan_host *known;    /* [hosts.n] */
    hwloc_topology_t *topologies; /* owned */
    uint32_t ntopologies;
    uint64_t spare; /* slots of further hosts, which no rank can need */
    uint32_t local; /* which is this one, or XR_NO_HOST: its agent is xrun's child */
    bool fill;      /* their slots say how many ranks there are, if nobody else does */
    bool slots_given; /* of some host */
    bool step;      /* the other agents are started as a step of a Slurm job */
    struct xr_rankfile file;
    const struct xr_plan_program *programs; /* [nprograms], for those who look at the map; borrowed */
    uint32_t nprograms;
    struct xr_placement placement;
};

/*
 * The hosts: by --host, --hostfile, what a resource manager gave, or this one.
 * *n: ranks, or 0 if nobody has said how many: then it becomes 1 where hosts have not been given with slots and the
 * request does not say it either. On failure err says why. Clear the plan in any case.
 */
rank_status_t xr_plan_make(const struct xr_where *where, uint32_t *n, struct xr_plan *out, char *err,
                           size_t errlen);
void xr_plan_clear(struct xr_plan *plan);

/* trim.c: n ranks (0: not said) may need this many of the hosts, and surely none behind these. */
uint32_t xr_plan_needed(const struct xr_plan *plan, uint32_t n);

/* Is there a host but this one? */
bool xr_plan_remote(const struct xr_plan *plan);
/* Shall cores be looked at, with n ranks on the host? */
bool xr_plan_wants_topology(const struct xr_plan *plan, uint32_t n, uint32_t units);
/* Take over a topology. */
rank_status_t xr_plan_keep(struct xr_plan *plan, hwloc_topology_t topology);

/* All that there is to know is known: place n ranks (0: as many as the request gives). */
rank_status_t xr_plan_place(struct xr_plan *plan, uint32_t n, char *err, size_t errlen);

/* How many ranks the hosts take, once the ranks are placed: slots, or where nobody has said how many, cores. Never less
 * than there are ranks. */
uint32_t xr_plan_universe(const struct xr_plan *plan);

/* The name of host i to show. */
const char *xr_plan_name(const struct xr_plan *plan, uint32_t i);

/* show_map.c: the placement as a table and a drawing of each host, and as JSON. */
void xr_plan_show(const struct xr_plan *plan, FILE *to);
rank_status_t xr_plan_json(const struct xr_plan *plan, const char *path, char *err, size_t errlen);

#endif
