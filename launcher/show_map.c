/* show_map.c: who runs where, for people and for programs. See plan.h. */
#include "launcher/plan.h"
#include "launcher/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the table */

static void table(const struct rk_plan *p, FILE *to)
{
    int width = 4;

    for (uint32_t i = 0; i < p->hosts.n; i++) {
        int len = (int)strlen(rk_plan_name(p, i));
        width = len > width ? len : width;
    }
    fprintf(to, "%6s  %-*s %6s  %s\n", "rank", width, "host", "local", "cpus");
    for (uint32_t r = 0; r < p->placement.n; r++) {
        const struct rk_place *at = &p->placement.rank[r];
        char *cpus = NULL;
        if (at->cpus)
            hwloc_bitmap_list_asprintf(&cpus, at->cpus);
        fprintf(to, "%6u  %-*s %6u  %s\n", r, width, rk_plan_name(p, at->host), at->local,
                cpus ? cpus : "not bound");
        free(cpus);
    }
}

/* ---------------------------------------------------------------- the drawings */

/* The ranks of each host, in their order: those of host h are rank[first[h]] to rank[first[h + 1] - 1]. */
struct by_host {
    uint32_t *first, *rank;
};

static bool by_host_make(const struct rk_plan *p, struct by_host *out)
{
    uint32_t *first = calloc((size_t)p->hosts.n + 2, sizeof(*first));
    uint32_t *rank = calloc((size_t)p->placement.n + 1, sizeof(*rank));

    *out = (struct by_host){first, rank};
    if (!first || !rank)
        return false;
    /* Counted two behind, so that filling in moves each to where it belongs. */
    for (uint32_t r = 0; r < p->placement.n; r++)
        first[p->placement.rank[r].host + 2]++;
    for (uint32_t h = 2; h < p->hosts.n + 2; h++)
        first[h] += first[h - 1];
    for (uint32_t r = 0; r < p->placement.n; r++)
        rank[first[p->placement.rank[r].host + 1]++] = r;
    return true;
}

/* The ranks of a core, as "3", "3+4" where its threads are apart, or "." */
static void cell(const struct rk_plan *p, const struct by_host *by, uint32_t host, hwloc_obj_t core, FILE *to)
{
    hwloc_const_cpuset_t usable = p->known[host].usable;
    const char *sep = "";

    if (usable && !hwloc_bitmap_intersects(usable, core->cpuset)) {
        fprintf(to, " x");
        return;
    }
    fprintf(to, " ");
    for (uint32_t i = by->first[host]; i < by->first[host + 1]; i++) {
        uint32_t r = by->rank[i];
        const struct rk_place *at = &p->placement.rank[r];
        if (at->cpus && hwloc_bitmap_intersects(at->cpus, core->cpuset)) {
            fprintf(to, "%s%u", sep, r);
            sep = "+";
        }
    }
    if (!*sep)
        fprintf(to, ".");
}

/* The smallest thing that keeps several cores together: they are drawn side by side. */
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

static void drawing(const struct rk_plan *p, const struct by_host *by, uint32_t host, FILE *to)
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

void rk_plan_show(const struct rk_plan *p, FILE *to)
{
    struct by_host by;
    bool drawn = by_host_make(p, &by);

    table(p, to);
    for (uint32_t h = 0; h < p->hosts.n; h++) {
        const struct rk_placed_host *at = &p->placement.host[h];
        fprintf(to, "\n%s: %u rank%s on %u %s%s%s\n", rk_plan_name(p, h), at->ranks,
                rk_plural(at->ranks), at->units, rk_placed_unit(at), rk_plural(at->units),
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

static void json_string(FILE *to, const char *s)
{
    fputc('"', to);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(to, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(to, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, to);
    }
    fputc('"', to);
}

static void json_cpus(FILE *to, hwloc_const_bitmap_t cpus)
{
    const char *sep = "";
    unsigned cpu;

    if (!cpus) {
        fprintf(to, "null");
        return;
    }
    fprintf(to, "[");
    hwloc_bitmap_foreach_begin(cpu, cpus)
        fprintf(to, "%s%u", sep, cpu);
        sep = ",";
    hwloc_bitmap_foreach_end();
    fprintf(to, "]");
}

rank_status_t rk_plan_json(const struct rk_plan *p, const char *path, char *err, size_t errlen)
{
    FILE *to = fopen(path, "we");
    int error;

    if (!to) {
        snprintf(err, errlen, "--json-map %s: %s", path, strerror(errno));
        return RANK_ERR_SYSTEM;
    }
    fprintf(to, "{\"hosts\":[");
    for (uint32_t h = 0; h < p->hosts.n; h++) {
        fprintf(to, "%s\n  {\"name\":", h ? "," : "");
        json_string(to, rk_plan_name(p, h));
        fprintf(to, ",\"slots\":%u,\"cores\":%u,\"ranks\":%u,\"oversubscribed\":%s}",
                p->hosts.host[h].slots, p->placement.host[h].units, p->placement.host[h].ranks,
                p->placement.host[h].oversubscribed ? "true" : "false");
    }
    fprintf(to, "],\n \"ranks\":[");
    for (uint32_t r = 0; r < p->placement.n; r++) {
        const struct rk_place *at = &p->placement.rank[r];
        fprintf(to, "%s\n  {\"rank\":%u,\"host\":%u,\"local_rank\":%u,\"cpus\":", r ? "," : "", r,
                at->host, at->local);
        json_cpus(to, at->cpus);
        fprintf(to, "}");
    }
    fprintf(to, "]}\n");
    error = ferror(to) ? EIO : 0;
    if (fclose(to))
        error = errno;
    if (!error)
        return RANK_OK;
    snprintf(err, errlen, "--json-map %s: %s", path, strerror(error));
    return RANK_ERR_SYSTEM;
}
