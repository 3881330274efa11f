/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show_topology.c: print a machine, and the GPU and NIC of each of its ranks.
 */
#include "lib/base/log.h"
#include "lib/topo/pair.h"
#include "lib/topo/topo.h"
#include "tools/rankinfo/draw_topology.h"
#include "tools/rankinfo/info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 160, MOST_DEVICES = 32 }; /* the table of ways has at most so many columns */

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* Format the hardware threads of cores as "0-3,8". of: a flag for each core. */
static const char *threads_text(const struct rk_machine *m, const bool *of, char text[TEXT])
{
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t cpu = 0, next; cpu < m->ncpus && len < TEXT - 24; cpu = next) {
        next = cpu + 1;
        if (m->core_of_cpu[cpu] == RK_TOPO_NONE || !of[m->core_of_cpu[cpu]])
            continue;
        while (next < m->ncpus && m->core_of_cpu[next] != RK_TOPO_NONE && of[m->core_of_cpu[next]])
            next++;
        len += (size_t)snprintf(text + len, TEXT - len, "%s%u", len ? "," : "", cpu);
        if (next > cpu + 1)
            len += (size_t)snprintf(text + len, TEXT - len, "-%u", next - 1);
    }
    if (len >= TEXT - 24)
        snprintf(text + len, TEXT - len, ",...");
    return *text ? text : "none";
}

static const char *range_text(const struct rk_machine *m, struct rk_core_range near, char text[TEXT])
{
    bool *of = calloc(m->ncores, sizeof(*of));

    for (uint32_t i = near.first; of && i < near.first + near.n; i++)
        of[i] = true;
    if (of)
        threads_text(m, of, text);
    free(of);
    return of ? text : "?";
}

static const char *list_text(const struct rk_machine *m, const uint32_t *core, uint32_t n, char text[TEXT])
{
    bool *of = calloc(m->ncores, sizeof(*of));

    for (uint32_t i = 0; of && i < n; i++)
        of[core[i]] = true;
    if (of)
        threads_text(m, of, text);
    free(of);
    return of ? text : "?";
}

/* ---------------------------------------------------------------- machine */

static void print_cores(FILE *out, const struct rk_machine *m, bool live)
{
    uint32_t threads = 0;
    char text[TEXT];

    for (uint32_t i = 0; i < m->ncpus; i++)
        threads += m->core_of_cpu[i] != RK_TOPO_NONE;
    fprintf(out, "  cores    %u (%u hardware threads) in %u package%s, %u NUMA node%s, %.1f GiB\n", m->ncores, threads,
            m->npackages, plural(m->npackages), m->nnumas, plural(m->nnumas), (double)m->memory / (1 << 30));
    if (live) {
        char *list = rk_topo_units_list();
        fprintf(out, "  allowed  cpus %s\n", list ? list : "unknown");
        free(list);
    }
    for (uint32_t i = 0; i < m->nnumas && m->nnumas > 1; i++)
        fprintf(out, "  NUMA %-4ucpus %s\n", m->numa[i].os, range_text(m, m->numa[i].near, text));
}

static void print_device(FILE *out, const struct rk_machine *m, const char *kind, uint32_t i, const struct rk_device *d)
{
    char text[TEXT];

    fprintf(out, "  %s %-5u%s%s%s", kind, i, d->pci, *d->pci && *d->name ? " " : "", d->name);
    if (*d->netdev && strcmp(d->netdev, d->name) != 0)
        fprintf(out, " (%s)", d->netdev);
    if (*d->model)
        fprintf(out, ", %s", d->model);
    if (*kind == 'N')
        fprintf(out, ", %s", d->kind == RK_NIC_FABRIC ? "RDMA" : "Ethernet");
    if (d->link_gbs > 0)
        fprintf(out, ", PCIe %.1f GB/s", d->link_gbs);
    if (d->port_gbs > 0)
        fprintf(out, ", port %.1f GB/s", d->port_gbs);
    fprintf(out, ", near cpus %s\n", range_text(m, d->near, text));
}

/* As nvidia-smi's topo -m: GPUs by GPUs and NICs. */
static void print_ways(FILE *out, const struct rk_machine *m)
{
    if (!m->ngpus || m->ngpus + m->nnics < 2 || m->ngpus + m->nnics > MOST_DEVICES)
        return;
    fprintf(out, "  %-7s", "ways");
    for (uint32_t i = 0; i < m->ngpus; i++)
        fprintf(out, "  GPU%-2u", i);
    for (uint32_t i = 0; i < m->nnics; i++)
        fprintf(out, "  NIC%-2u", i);
    fprintf(out, "\n");
    for (uint32_t g = 0; g < m->ngpus; g++) {
        fprintf(out, "  GPU%-4u", g);
        for (uint32_t i = 0; i < m->ngpus; i++)
            fprintf(out, "  %-5s", i == g ? "X" : rk_path_name(rk_path_gpus(m, g, i)));
        for (uint32_t i = 0; i < m->nnics; i++)
            fprintf(out, "  %-5s", rk_path_name(rk_path_devices(m, &m->gpu[g], &m->nic[i])));
        fprintf(out, "\n");
    }
}

static void print_machine(FILE *out, const struct rk_machine *m, bool live)
{
    print_cores(out, m, live);
    for (uint32_t i = 0; i < m->ngpus; i++)
        print_device(out, m, "GPU", i, &m->gpu[i]);
    if (!m->ngpus)
        fprintf(out, "  GPUs     none\n");
    for (uint32_t i = 0; i < m->nnics; i++)
        print_device(out, m, "NIC", i, &m->nic[i]);
    if (!m->nnics)
        fprintf(out, "  NICs     none on PCI\n");
    print_ways(out, m);
}

/* ------------------------------------------------------------------ pairs */

static void print_links(FILE *out, const char *kind, const struct rk_pair_link *link, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "; %s %u %s, %s", kind, link[i].device, rk_path_name(link[i].path),
                rk_pair_reason_text(link[i].reason));
}

/* Write the drawing to a file. */
static bool draw_pairs(const struct rk_machine *m, const struct rk_pairing *p, const struct info_topology *asked)
{
    FILE *to = fopen(asked->svg, "we");
    bool ok = to != NULL;
    int error = errno;

    if (ok) {
        if (!info_draw_topology(to, m, p, asked->xml ? asked->xml : "this machine"))
            error = ENOMEM;
        else if (ferror(to))
            error = EIO;
        else
            error = 0;
        if (fclose(to) && !error)
            error = errno;
        ok = error == 0;
    }
    if (!ok)
        rk_error("cannot write %s: %s", asked->svg, strerror(error));
    return ok;
}

static bool print_pairs(FILE *out, const struct rk_machine *m, const struct info_topology *asked)
{
    struct rk_pair_request rq = {.ranks = asked->ranks, .gpus = {.per_rank = asked->gpus}, .nics = {.per_rank = asked->nics}};
    struct rk_pairing p;
    char err[256];
    bool ok;

    if (!rq.ranks)
        rq.ranks = asked->gpus && m->ngpus >= asked->gpus ? m->ngpus / asked->gpus : m->ngpus ? m->ngpus : m->nnumas;
    if (!rq.ranks)
        rq.ranks = 1;
    if (rk_pair(m, &rq, &p, err, sizeof(err))) {
        rk_error("%s", err);
        return false;
    }
    fprintf(out, "pairs of %u rank%s, without --map-by and --bind\n", p.ranks, plural(p.ranks));
    for (uint32_t r = 0; r < p.ranks; r++) {
        char text[TEXT];
        fprintf(out, "  rank %-4ucpus %s", r, list_text(m, p.rank[r].core, p.rank[r].ncores, text));
        print_links(out, "GPU", p.rank[r].gpu, p.rank[r].ngpus);
        print_links(out, "NIC", p.rank[r].nic, p.rank[r].nnics);
        fprintf(out, "\n");
    }
    ok = !asked->svg || draw_pairs(m, &p, asked);
    rk_pair_free(&p);
    return ok;
}

bool info_print_topology(FILE *out, const struct info_topology *asked)
{
    struct rk_machine m;
    char err[512];
    bool ok = true;

    if (rk_machine_load(asked->xml, &m, err, sizeof(err))) {
        rk_error("%s", err);
        return false;
    }
    if (asked->xml)
        fprintf(out, "topology of %s\n", asked->xml);
    else
        fprintf(out, "topology\n");
    print_machine(out, &m, !asked->xml);
    if (asked->pairs)
        ok = print_pairs(out, &m, asked);
    rk_machine_free(&m);
    return ok;
}
