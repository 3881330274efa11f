/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine_load.c: read cores and PCI of a machine by hwloc. See topo_machine.h.
 *
 * No plugin of hwloc for a GPU's driver is used, as that would start the driver in this process. PCI classes suffice.
 */
#include "lib/topo/machine_devices.h"
#include "lib/topo/topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_FLAGS HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED /* so that each device is beside its cores */

#define FOREIGN "it is not of hwloc 1.x or 2.x, or damaged"

static const char *const driver_plugins[] = {"cuda", "nvml", "rsmi", "opencl", "levelzero", "gl"};

/* ---------------------------------------------------------------- cores */

static bool read_cores(struct rk_machine_loader *l)
{
    struct rk_machine *m = l->m;
    hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(l->t, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int n = hwloc_get_nbobjs_by_type(l->t, type);
    int last = hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(l->t));
    hwloc_const_bitmap_t cpuset = hwloc_topology_get_allowed_cpuset(l->t);
    unsigned cpu;

    if (n < 1 || last < 0)
        return false;
    m->memory = hwloc_get_root_obj(l->t)->total_memory;
    m->ncores = (uint32_t)n;
    m->ncpus = (uint32_t)last + 1;
    m->core = calloc(m->ncores, sizeof(*m->core));
    m->core_of_cpu = malloc(m->ncpus * sizeof(*m->core_of_cpu));
    l->cores = calloc(m->ncores, sizeof(*l->cores));
    if (!m->core || !m->core_of_cpu || !l->cores)
        return false;
    memset(m->core_of_cpu, 0xff, m->ncpus * sizeof(*m->core_of_cpu));
    for (uint32_t i = 0; i < m->ncores; i++) {
        l->cores[i] = hwloc_get_obj_by_type(l->t, type, i);
        m->core[i] = (struct rk_core){.cpu = (uint32_t)hwloc_bitmap_first(l->cores[i]->cpuset),
                                      .numa = RK_TOPO_NONE,
                                      .package = RK_TOPO_NONE,
                                      .cpuset = hwloc_bitmap_intersects(l->cores[i]->cpuset, cpuset),
                                      .allowed = hwloc_bitmap_intersects(l->cores[i]->cpuset, l->allowed)};
        hwloc_bitmap_foreach_begin(cpu, l->cores[i]->cpuset)
            m->core_of_cpu[cpu] = i;
        hwloc_bitmap_foreach_end();
    }
    return true;
}

/* A node belongs to those cores that no smaller node has. */
static void claim_cores(struct rk_machine *m, uint32_t node)
{
    struct rk_core_range near = m->numa[node].near;

    for (uint32_t i = near.first; i < near.first + near.n; i++) {
        uint32_t *of = &m->core[i].numa;
        if (*of == RK_TOPO_NONE || m->numa[*of].near.n > near.n)
            *of = node;
    }
}

static bool same_cores(const struct rk_machine *m, struct rk_core_range near)
{
    for (uint32_t i = 0; i < m->nnumas; i++) {
        if (m->numa[i].near.first == near.first && m->numa[i].near.n == near.n)
            return true;
    }
    return false;
}

static bool read_nodes(struct rk_machine_loader *l)
{
    struct rk_machine *m = l->m;
    int nodes = hwloc_get_nbobjs_by_type(l->t, HWLOC_OBJ_NUMANODE);
    int packages = hwloc_get_nbobjs_by_type(l->t, HWLOC_OBJ_PACKAGE);
    hwloc_obj_t o = NULL;

    m->numa = calloc(nodes > 0 ? (size_t)nodes : 1, sizeof(*m->numa));
    m->package = calloc(packages > 0 ? (size_t)packages : 1, sizeof(*m->package));
    if (!m->numa || !m->package)
        return false;
    while (nodes > 0 && (o = hwloc_get_next_obj_by_type(l->t, HWLOC_OBJ_NUMANODE, o))) {
        struct rk_core_range near = rk_machine_range(l, o->cpuset);
        if (!near.n || same_cores(m, near))
            continue;
        m->numa[m->nnumas] = (struct rk_numa){o->os_index, near};
        claim_cores(m, m->nnumas++);
    }
    o = NULL;
    while (packages > 0 && (o = hwloc_get_next_obj_by_type(l->t, HWLOC_OBJ_PACKAGE, o))) {
        struct rk_core_range near = rk_machine_range(l, o->cpuset);
        for (uint32_t i = near.first; i < near.first + near.n; i++)
            m->core[i].package = m->npackages;
        if (near.n)
            m->package[m->npackages++] = near;
    }
    return true;
}

/* ------------------------------------------------------------------ hwloc */

static void without_drivers(hwloc_topology_t t)
{
    for (size_t i = 0; i < sizeof(driver_plugins) / sizeof(*driver_plugins); i++)
        hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, driver_plugins[i]);
}

static bool filter_objects(hwloc_topology_t t)
{
    return !hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) &&
           !hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) &&
           !hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) &&
           !hwloc_topology_set_type_filter(t, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) &&
           !hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
}

static rank_status_t refuse(const char *xml, const char *why, char *err, size_t errlen)
{
    if (xml)
        snprintf(err, errlen, "cannot read %s as a machine in hwloc's XML: %s", xml, why);
    else
        snprintf(err, errlen, "cannot read this machine's topology: %s", why);
    return xml ? RANK_ERR_ARG : RANK_ERR_SYSTEM;
}

/* Set a file as the source, after a check that gives a better reason than hwloc. */
static rank_status_t set_source(const char *xml, hwloc_topology_t t, char *err, size_t errlen)
{
    FILE *file = xml ? fopen(xml, "re") : NULL;
    int first = file ? fgetc(file) : 0;
    int error = xml && (!file || ferror(file)) ? errno : 0;

    if (file)
        fclose(file);
    if (error)
        return refuse(xml, strerror(error), err, errlen);
    if (first == EOF)
        return refuse(xml, "it is empty", err, errlen);
    if (!xml && rk_topo_affinity_refused())
        return refuse(xml, "the system call sched_getaffinity is refused", err, errlen);
    if (xml ? hwloc_topology_set_xml(t, xml) : hwloc_topology_set_flags(t, LIVE_FLAGS))
        return refuse(xml, xml ? FOREIGN : strerror(errno), err, errlen);
    return RANK_OK;
}

static rank_status_t open_topology(const char *xml, hwloc_topology_t t, char *err, size_t errlen)
{
    rank_status_t st;

    without_drivers(t);
    st = set_source(xml, t, err, errlen);
    if (!st && (!filter_objects(t) || hwloc_topology_load(t)))
        st = refuse(xml, xml ? FOREIGN : strerror(errno), err, errlen);
    return st;
}

rank_status_t rk_topo_load_xml(const char *xml, hwloc_topology_t *out, char *err, size_t errlen)
{
    rank_status_t st;
    hwloc_topology_t t;

    if (hwloc_topology_init(&t)) {
        snprintf(err, errlen, "out of memory for the machine's topology");
        return RANK_ERR_NO_MEMORY;
    }
    st = set_source(xml, t, err, errlen);
    if (!st && (hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) ||
                hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) ||
                hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) ||
                hwloc_topology_set_type_filter(t, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) ||
                hwloc_topology_set_cache_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL) || hwloc_topology_load(t)))
        st = refuse(xml, FOREIGN, err, errlen);
    if (st)
        hwloc_topology_destroy(t);
    else
        *out = t;
    return st;
}

/* Allowed: in the cpuset, and in the affinity of this process. */
static void find_allowed(struct rk_machine_loader *l)
{
    hwloc_bitmap_t mine = l->live ? hwloc_bitmap_alloc() : NULL;

    hwloc_bitmap_copy(l->allowed, hwloc_topology_get_allowed_cpuset(l->t));
    if (mine && hwloc_get_cpubind(l->t, mine, HWLOC_CPUBIND_PROCESS) == 0 && !hwloc_bitmap_iszero(mine))
        hwloc_bitmap_and(l->allowed, l->allowed, mine);
    hwloc_bitmap_free(mine);
}

rank_status_t rk_machine_load(const char *xml, struct rk_machine *out, char *err, size_t errlen)
{
    struct rk_machine_loader l = {.m = out, .allowed = hwloc_bitmap_alloc()};
    rank_status_t st;

    memset(out, 0, sizeof(*out));
    if (!l.allowed || hwloc_topology_init(&l.t)) {
        hwloc_bitmap_free(l.allowed);
        snprintf(err, errlen, "out of memory for the machine's topology");
        return RANK_ERR_NO_MEMORY;
    }
    st = open_topology(xml, l.t, err, errlen);
    if (!st) {
        l.live = out->live = hwloc_topology_is_thissystem(l.t);
        find_allowed(&l);
        if (!read_cores(&l))
            st = refuse(xml, "it has no cores", err, errlen);
        else if (!read_nodes(&l) || !rk_machine_load_devices(&l))
            st = refuse(xml, "out of memory", err, errlen);
    }
    free(l.cores);
    free(l.bridges);
    hwloc_bitmap_free(l.allowed);
    hwloc_topology_destroy(l.t);
    if (st)
        rk_machine_free(out);
    return st;
}

void rk_machine_keep_nvidia(struct rk_machine *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->ngpus; i++) {
        if (m->gpu[i].nvidia)
            m->gpu[n++] = m->gpu[i];
    }
    m->ngpus = n;
}

void rk_machine_free(struct rk_machine *m)
{
    free(m->core);
    free(m->numa);
    free(m->package);
    free(m->bridge);
    free(m->gpu);
    free(m->nic);
    free(m->core_of_cpu);
    free(m->nvlinks);
    memset(m, 0, sizeof(*m));
}
