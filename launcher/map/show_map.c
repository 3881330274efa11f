/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show_map.c: show the map as text and as JSON. See plan.h.
 */
#include "launcher/map/plan.h"
#include "launcher/util/json_writer.h"
#include "launcher/util/shell_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- table */

uint32_t xr_plan_program_of(const struct xr_plan *p, uint32_t rank)
{
    uint32_t at = 0;

    while (at + 1 < p->nprograms && rank >= p->programs[at].n)
        rank -= p->programs[at++].n;
    return at;
}

#define PROGRAM_MAX 24 /* columns for a program's name */

/* Format a program's number, counted from 1 as in messages, and its name without folder. */
static void program_text(const struct xr_plan *p, uint32_t at, char *to, size_t len)
{
    const char *name = p->programs[at].name, *slash = strrchr(name, '/');

    snprintf(to, len, "%u %.*s", at + 1, PROGRAM_MAX, slash && slash[1] ? slash + 1 : name);
    xr_shell_words_show(to);
}

/* Return the columns for programs if there are several; else 0. */
static int program_width(const struct xr_plan *p)
{
    char text[PROGRAM_MAX + 16];
    int width = 7;

    if (p->nprograms < 2)
        return 0;
    for (uint32_t i = 0; i < p->nprograms; i++) {
        program_text(p, i, text, sizeof(text));
        width = (int)strlen(text) > width ? (int)strlen(text) : width;
    }
    return width;
}

static void table(const struct xr_plan *p, FILE *to)
{
    int width = 4, programs = program_width(p);
    char program[PROGRAM_MAX + 16] = "program";

    for (uint32_t i = 0; i < p->hosts.n; i++) {
        int len = (int)strlen(xr_plan_name(p, i));
        width = len > width ? len : width;
    }
    fprintf(to, "%6s  %-*s %6s  ", "rank", width, "host", "local");
    if (programs)
        fprintf(to, "%-*s  ", programs, program);
    fprintf(to, "cpus\n");
    for (uint32_t r = 0; r < p->placement.n; r++) {
        const struct xr_place *at = &p->placement.rank[r];
        char *cpus = NULL;
        if (at->cpus)
            hwloc_bitmap_list_asprintf(&cpus, at->cpus);
        fprintf(to, "%6u  %-*s %6u  ", r, width, xr_plan_name(p, at->host), at->local);
        if (programs) {
            program_text(p, xr_plan_program_of(p, r), program, sizeof(program));
            fprintf(to, "%-*s  ", programs, program);
        }
        fprintf(to, "%s\n", cpus ? cpus : "not bound");
        free(cpus);
    }
}

/* ------------------------------------------------------------- drawings */

/* The ranks of each host in order: host h has rank[first[h]] to rank[first[h + 1] - 1]. */
struct by_host {
    uint32_t *first, *rank;
};

static bool by_host_make(const struct xr_plan *p, struct by_host *out)
{
    uint32_t *first = calloc((size_t)p->hosts.n + 2, sizeof(*first));
    uint32_t *rank = calloc((size_t)p->placement.n + 1, sizeof(*rank));

    *out = (struct by_host){first, rank};
    if (!first || !rank)
        return false;
    /* Count two places behind, so that filling moves each start into place. */
    for (uint32_t r = 0; r < p->placement.n; r++)
        first[p->placement.rank[r].host + 2]++;
    for (uint32_t h = 2; h < p->hosts.n + 2; h++)
        first[h] += first[h - 1];
    for (uint32_t r = 0; r < p->placement.n; r++)
        rank[first[p->placement.rank[r].host + 1]++] = r;
    return true;
}

/* Format the ranks of a core, as "3", "3+4" if its threads are separate, or ".". */
static void cell(const struct xr_plan *p, const struct by_host *by, uint32_t host, hwloc_obj_t core, FILE *to)
{
    const char *sep = "";

    fprintf(to, " ");
    for (uint32_t i = by->first[host]; i < by->first[host + 1]; i++) {
        uint32_t r = by->rank[i];
        const struct xr_place *at = &p->placement.rank[r];
        if (at->cpus && hwloc_bitmap_intersects(at->cpus, core->cpuset)) {
            fprintf(to, "%s%u", sep, r);
            sep = "+";
        }
    }
    if (!*sep)
        fprintf(to, ".");
}

/* Return the smallest object around several cores: these are drawn side by side. */
static hwloc_obj_t group_of(hwloc_topology_t t, hwloc_obj_t core)
{
    hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_L3CACHE, core), numa = NULL;

    if (l3)
        return l3;
    while ((numa = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, numa))) {
        if (hwloc_bitmap_isincluded(core->cpuset, numa->cpuset))
            return numa;
    }
    return NULL;
}

static void drawing(const struct xr_plan *p, const struct by_host *by, uint32_t host, FILE *to)
{
    hwloc_topology_t t = p->known[host].topology;
    hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    hwloc_obj_t core = NULL, package = NULL, group = NULL;
    bool first = true;

    while ((core = hwloc_get_next_obj_by_type(t, type, core))) {
        hwloc_obj_t in = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, core);
        hwloc_obj_t near = group_of(t, core);
        if (first || in != package)
            fprintf(to, "%s  package %u |", first ? "" : " |\n", in ? in->logical_index : 0);
        else if (near != group)
            fprintf(to, " |");
        first = false;
        package = in;
        group = near;
        cell(p, by, host, core, to);
    }
    fprintf(to, "%s", first ? "" : " |\n");
}

void xr_plan_show(const struct xr_plan *p, FILE *to)
{
    struct by_host by;
    bool drawn = by_host_make(p, &by);

    table(p, to);
    for (uint32_t h = 0; h < p->hosts.n; h++) {
        const struct xr_placed_host *at = &p->placement.host[h];
        fprintf(to, "\n%s: %u rank%s on %u %s%s%s\n", xr_plan_name(p, h), at->ranks,
                xr_plural(at->ranks), at->units, xr_placed_unit(at), xr_plural(at->units),
                at->oversubscribed && at->pinned ? ", of which some are shared"
                : at->oversubscribed             ? ", not bound because they are more"
                : at->fewer        ? ", fewer for each than --cpus-per-rank"
                                   : "");
        if (p->known[h].topology && drawn)
            drawing(p, &by, h, to);
    }
    free(by.first);
    free(by.rank);
}

/* ------------------------------------------------------------------------ JSON */

static void json_cpus(struct xr_json *j, hwloc_const_bitmap_t cpus)
{
    unsigned cpu;

    if (!cpus) {
        xr_json_null(j, "cpus");
        return;
    }
    xr_json_flat_array(j, "cpus");
    hwloc_bitmap_foreach_begin(cpu, cpus)
        xr_json_int(j, NULL, cpu);
    hwloc_bitmap_foreach_end();
    xr_json_end(j);
}

static void json_host(struct xr_json *j, const struct xr_plan *p, uint32_t h)
{
    const struct xr_placed_host *at = &p->placement.host[h];

    xr_json_flat_object(j, NULL);
    xr_json_text(j, "name", xr_plan_name(p, h));
    xr_json_int(j, "slots", p->hosts.host[h].slots);
    xr_json_int(j, "cores", at->units);
    xr_json_int(j, "ranks", at->ranks);
    xr_json_bool(j, "oversubscribed", at->oversubscribed);
    xr_json_end(j);
}

static void json_link(struct xr_json *j, const struct rk_device *d, const struct rk_pair_link *link)
{
    xr_json_flat_object(j, NULL);
    xr_json_int(j, "number", link->device);
    xr_json_text(j, "name", d->name);
    if (*d->netdev)
        xr_json_text(j, "interface", d->netdev);
    xr_json_text(j, "pci", d->pci);
    if (*d->uuid)
        xr_json_text(j, "uuid", d->uuid);
    xr_json_text(j, "path", rk_path_name(link->path));
    xr_json_text(j, "reason", rk_pair_reason_text(link->reason));
    xr_json_end(j);
}

static void json_links(struct xr_json *j, const char *name, const struct rk_device *all, const struct rk_pair_link *link,
                       uint32_t n)
{
    if (!all && !link) {
        xr_json_null(j, name);
        return;
    }
    xr_json_flat_array(j, name);
    for (uint32_t i = 0; i < n; i++)
        json_link(j, &all[link[i].device], &link[i]);
    xr_json_end(j);
}

static void json_rank(struct xr_json *j, const struct xr_plan *p, uint32_t r)
{
    const struct xr_place *at = &p->placement.rank[r];
    const struct rk_machine *m = NULL;
    const struct rk_pair_rank *devices = xr_plan_devices(p, r, &m);

    xr_json_flat_object(j, NULL);
    xr_json_int(j, "rank", r);
    xr_json_int(j, "program", xr_plan_program_of(p, r));
    xr_json_int(j, "host", at->host);
    xr_json_int(j, "local_rank", at->local);
    json_cpus(j, at->cpus);
    json_links(j, "gpus", devices ? m->gpu : NULL, devices ? devices->gpu : NULL, devices ? devices->ngpus : 0);
    json_links(j, "nics", devices ? m->nic : NULL, devices ? devices->nic : NULL, devices ? devices->nnics : 0);
    xr_json_end(j);
}

rank_status_t xr_plan_json(const struct xr_plan *p, const char *path, char *err, size_t errlen)
{
    FILE *to = fopen(path, "we");
    struct xr_json json;
    int error;

    if (!to) {
        snprintf(err, errlen, "--json-map %s: %s", path, strerror(errno));
        return RANK_ERR_SYSTEM;
    }
    xr_json_begin(&json, to);
    xr_json_array(&json, "programs");
    for (uint32_t i = 0; i < p->nprograms; i++)
        xr_json_text(&json, NULL, p->programs[i].name);
    xr_json_end(&json);
    xr_json_array(&json, "hosts");
    for (uint32_t h = 0; h < p->hosts.n; h++)
        json_host(&json, p, h);
    xr_json_end(&json);
    xr_json_array(&json, "ranks");
    for (uint32_t r = 0; r < p->placement.n; r++)
        json_rank(&json, p, r);
    xr_json_finish(&json);
    error = ferror(to) ? EIO : 0;
    if (fclose(to))
        error = errno;
    if (!error)
        return RANK_OK;
    snprintf(err, errlen, "--json-map %s: %s", path, strerror(error));
    return RANK_ERR_SYSTEM;
}
