/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h: collect the hosts of a job and place its ranks on them.
 *
 * Room: mapping and binding of ranks, and the display of the map.
 * Called by: cli, frontend, pmix (policy.h only).
 * Never: starts a process; connects to a host.
 * Tests: tests/launcher/unit/{mapper,plan_trim,show_map}_test.c, mapping.sh.
 */
#ifndef XR_LAUNCHER_MAP_PLAN_H
#define XR_LAUNCHER_MAP_PLAN_H

#include "launcher/alloc/hostlist.h"
#include "launcher/map/mapper.h"
#include "launcher/map/rankfile.h"
#include "launcher/map/policy.h"
#include "lib/topo/pair.h"

#include <stdio.h>


/* The report of an agent on its host, or of xrun on its own. */
struct xr_plan_host {
    char *real_name; /* the host's own name; NULL: not known yet */
    uint32_t units;
    uint16_t port; /* a free TCP port there; 0: not known, as of xrun's own host */
    hwloc_topology_t topology; /* of the usable part; may be an equal one of another host; NULL: not needed or not
                                  known */
    struct rk_machine *devices; /* cores, GPUs and NICs; may be those of another host; NULL: not needed or not known */
    char *no_devices;           /* why they are not known; or NULL */
    uint64_t machine; /* see local_host.h */
    uint32_t names;   /* how many of the hosts are that machine; 0: not known, counts as one */
};

/* A program of the job; its ranks follow those of the one before it. */
struct xr_plan_program {
    const char *name;
    uint32_t n; /* ranks; 0 for a single program while its number is not known */
    const char *visible; /* CUDA_VISIBLE_DEVICES of its ranks; NULL: not set */
};

struct xr_plan {
    const struct xr_policy *where;
    struct xr_hostlist hosts;
    char *given; /* all named hosts, as --host has them, before unused ones were dropped; or NULL */
    struct xr_plan_host *known;    /* [hosts.n] */
    hwloc_topology_t *topologies; /* owned */
    uint32_t ntopologies;
    struct rk_machine **machines; /* owned */
    uint32_t nmachines;
    uint64_t spare; /* slots of dropped hosts */
    uint32_t local; /* index of this host, or XR_NO_HOST: its agent is xrun's child */
    bool fill;      /* slots give the number of ranks if nothing else does */
    bool slots_given; /* for some host */
    bool step;      /* the other agents are started as a step of a Slurm job */
    struct xr_rankfile file;
    const struct xr_plan_program *programs; /* [nprograms], for the display of the map; borrowed */
    uint32_t nprograms;
    struct xr_placement placement;
    struct rk_pairing *pairs; /* [hosts.n], by rank of the host; NULL: not needed */
};

/*
 * Collect the hosts: from --host, --hostfile, a resource manager, or this one. *n: ranks, or 0 if not given; it
 * becomes 1 unless slots or the request give the number. On failure err holds a text. Clear the plan in any
 * case.
 */
rank_status_t xr_plan_make(const struct xr_policy *where, uint32_t *n, struct xr_plan *out, char *err,
                           size_t errlen);
void xr_plan_clear(struct xr_plan *plan);

/* Return how many hosts, from the first, n ranks (0: not given) may need. */
uint32_t xr_plan_needed(const struct xr_plan *plan, uint32_t n);

/* Return whether there is a host other than this one. */
bool xr_plan_remote(const struct xr_plan *plan);
/* Return whether topologies are needed with n ranks on a host. */
bool xr_plan_wants_topology(const struct xr_plan *plan, uint32_t n, uint32_t units);
/* Takes ownership of topology. */
rank_status_t xr_plan_keep(struct xr_plan *plan, hwloc_topology_t topology);

/* Place n ranks (0: as many as the request gives). Call when all hosts are known. */
rank_status_t xr_plan_place(struct xr_plan *plan, uint32_t n, char *err, size_t errlen);

/*
 * Return how many ranks the hosts take, after the placement: slots, or cores if no slots are given. At least the
 * number of ranks.
 */
uint32_t xr_plan_universe(const struct xr_plan *plan);

/* Return the name of host i to show. */
const char *xr_plan_name(const struct xr_plan *plan, uint32_t i);

/* show_map.c: return the program of a rank: ranks of a program are contiguous. */
uint32_t xr_plan_program_of(const struct xr_plan *plan, uint32_t rank);
/* Show the placement as a table and a drawing of each host, and as JSON. */
void xr_plan_show(const struct xr_plan *plan, FILE *to);
rank_status_t xr_plan_json(const struct xr_plan *plan, const char *path, char *err, size_t errlen);

/* plan_devices.c: return whether GPUs and NICs of the hosts are needed: ranks are given some, or a map is shown. */
bool xr_plan_wants_devices(const struct xr_plan *plan);
/* Takes ownership of what m holds. Returns NULL without memory. */
struct rk_machine *xr_plan_keep_machine(struct xr_plan *plan, struct rk_machine *m);
/*
 * Pair the placed ranks with devices. No-op if these are not needed. Returns RANK_ERR_ARG, and one line in err, if a
 * host does not have what is requested.
 */
rank_status_t xr_plan_pair(struct xr_plan *plan, char *err, size_t errlen);
/* Return the devices of a rank, and the machine that they are of; NULL: not known. */
const struct rk_pair_rank *xr_plan_devices(const struct xr_plan *plan, uint32_t rank, const struct rk_machine **m);
/* Show the GPU and NIC of each rank, on hosts that have a GPU or give NICs. */
void xr_plan_show_devices(const struct xr_plan *plan, FILE *to);
void xr_plan_clear_devices(struct xr_plan *plan);
/*
 * Print the machine of --xml, or this one, and the GPU, NIC and cores of n ranks (0: one a GPU). visible: on this one
 * CUDA_VISIBLE_DEVICES of each program. On failure prints nothing, and writes one line into err.
 */
rank_status_t xr_policy_show_topology(const struct xr_policy *where, uint32_t n, const char *const *visible, uint32_t nvisible,
                                      FILE *to, char *err, size_t errlen);

#endif
