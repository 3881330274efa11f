/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show_topology.c: print a machine, and the GPU and NIC of each of its ranks.
 */
#include "lib/topo/show_topology.h"
#include "lib/topo/core_list.h"
#include "lib/topo/draw_topology.h"
#include "lib/topo/topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 160, MOST_DEVICES = 32 }; /* the table of ways has at most so many columns */

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* Format the hardware threads of cores. of: a flag for each core; NULL: no memory. A long list is cut. Frees of. */
static const char *threads_text(const struct rk_machine *m, bool *of, char text[TEXT])
{
    char *whole = of ? rk_core_list_text(m, of) : NULL;
    size_t len = whole ? strlen(whole) : 0;

    free(of);
    if (!whole)
        return "?";
    if (len >= TEXT) {
        len = TEXT - sizeof(",...");
        while (len && whole[len] != ',')
            len--;
        snprintf(text, TEXT, "%.*s,...", (int)len, whole);
    } else {
        snprintf(text, TEXT, "%s", len ? whole : "none");
    }
    free(whole);
    return text;
}

static const char *range_text(const struct rk_machine *m, struct rk_core_range near, char text[TEXT])
{
    bool *of = calloc(m->ncores, sizeof(*of));

    for (uint32_t i = near.first; of && i < near.first + near.n; i++)
        of[i] = true;
    return threads_text(m, of, text);
}

static const char *list_text(const struct rk_machine *m, const uint32_t *core, uint32_t n, char text[TEXT])
{
    bool *of = calloc(m->ncores, sizeof(*of));

    for (uint32_t i = 0; of && i < n; i++)
        of[core[i]] = true;
    return threads_text(m, of, text);
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
        fprintf(out, ", %s", d->kind == RK_NIC_ETHERNET ? "Ethernet" : d->kind == RK_NIC_ROCE ? "RDMA on Ethernet" : "RDMA");
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

static const char *machine_name(const struct rk_topo_view *view)
{
    return view->xml ? view->xml : "this machine";
}

/* Write the drawing to a file. */
static rank_status_t draw_pairs(const struct rk_machine *m, const struct rk_pairing *p, const struct rk_topo_view *view,
                                char *err, size_t errlen)
{
    FILE *to = fopen(view->svg, "we");
    int error = errno;

    if (to) {
        if (!rk_topo_draw(to, m, p, machine_name(view)))
            error = ENOMEM;
        else if (ferror(to))
            error = EIO;
        else
            error = 0;
        if (fclose(to) && !error)
            error = errno;
    }
    if (to && !error)
        return RANK_OK;
    snprintf(err, errlen, "cannot write %s: %s", view->svg, strerror(error));
    return RANK_ERR_SYSTEM;
}

/* Return the number of ranks to show, if it is not given. */
static uint32_t default_ranks(const struct rk_machine *m, const struct rk_topo_view *view, const bool *hidden)
{
    uint32_t each = view->words.gpus_per_rank ? view->words.gpus_per_rank : 1, gpus = 0, all;

    for (uint32_t i = 0; i < m->ngpus; i++)
        gpus += !hidden || !hidden[i];
    all = gpus ? gpus / each : m->nnumas;
    return all ? all : 1;
}

static rank_status_t make_pairs(struct rk_machine *m, const struct rk_topo_view *view, struct rk_pairing *p, char *err,
                                size_t errlen)
{
    struct rk_pair_prepared prepared;
    rank_status_t st = rk_pair_request_make(&view->words, machine_name(view), m, &prepared, err, errlen);

    prepared.rq.ranks = view->ranks ? view->ranks : default_ranks(m, view, prepared.rq.gpus.hidden);
    if (!st)
        st = rk_pair(m, &prepared.rq, p, err, errlen);
    rk_pair_request_clear(&prepared);
    return !st && view->svg ? draw_pairs(m, p, view, err, errlen) : st;
}

static void print_pairs(FILE *out, const struct rk_machine *m, const struct rk_pairing *p)
{
    fprintf(out, "pairs of %u rank%s, without --map-by and --bind\n", p->ranks, plural(p->ranks));
    for (uint32_t r = 0; r < p->ranks; r++) {
        char text[TEXT];
        fprintf(out, "  rank %-4ucpus %s", r, list_text(m, p->rank[r].core, p->rank[r].ncores, text));
        print_links(out, "GPU", p->rank[r].gpu, p->rank[r].ngpus);
        print_links(out, "NIC", p->rank[r].nic, p->rank[r].nnics);
        fprintf(out, "\n");
    }
}

rank_status_t rk_topo_show(FILE *out, const struct rk_topo_view *view, char *err, size_t errlen)
{
    struct rk_pairing pairs = {.ranks = 0};
    struct rk_machine m;
    rank_status_t st = rk_machine_load(view->xml, &m, err, errlen);

    if (st)
        return st;
    if (view->pairs)
        st = make_pairs(&m, view, &pairs, err, errlen);
    if (!st) {
        fprintf(out, "topology%s%s\n", view->xml ? " of " : "", view->xml ? view->xml : "");
        print_machine(out, &m, !view->xml);
        if (view->pairs)
            print_pairs(out, &m, &pairs);
    }
    rk_pair_free(&pairs);
    rk_machine_free(&m);
    return st;
}
