/* SPDX-License-Identifier: BSD-3-Clause */
/* pair_text.c: write the devices of a rank as text. See pair_text.h. */
#include "lib/topo/pair_text.h"
#include "lib/topo/core_list.h"

#include <stdio.h>
#include <stdlib.h>

/* Write a name without the characters that separate fields. */
static void put_field(FILE *to, const char *text, char end)
{
    for (; *text; text++)
        fputc(*text == '|' || *text == ';' || (unsigned char)*text < ' ' ? '_' : *text, to);
    fputc(end, to);
}

/* Return the kernel's number of the node of all cores, or -1. */
static int node_of_cores(const struct rk_machine *m, const uint32_t *core, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (m->core[core[i]].numa == RK_TOPO_NONE || m->core[core[i]].numa != m->core[core[0]].numa)
            return -1;
    }
    return n ? (int)m->numa[m->core[core[0]].numa].os : -1;
}

static int node_of_device(const struct rk_machine *m, const struct rk_device *d)
{
    uint32_t numa = d->near.n ? m->core[d->near.first].numa : RK_TOPO_NONE;

    for (uint32_t i = 1; i < d->near.n; i++) {
        if (m->core[d->near.first + i].numa != numa)
            return -1;
    }
    return numa == RK_TOPO_NONE ? -1 : (int)m->numa[numa].os;
}

/* Write the hardware threads of cores, as "0-3,8". A rank without a list is not bound: it has all. */
static bool put_cpus(FILE *to, const struct rk_machine *m, const uint32_t *core, uint32_t n)
{
    bool *of = calloc((size_t)m->ncores + 1, sizeof(*of));
    char *text = NULL;

    for (uint32_t i = 0; of && i < (n ? n : m->ncores); i++)
        of[n ? core[i] : i] = true;
    if (of)
        text = rk_core_list_text(m, of);
    fprintf(to, "%s", text ? text : "");
    free(of);
    free(text);
    return text != NULL;
}

/* Return CUDA's number of a GPU, or -1. */
static int cuda_number(const struct rk_machine *m, uint32_t gpu)
{
    int number = 0;

    for (uint32_t i = 0; i < gpu; i++)
        number += m->gpu[i].nvidia;
    return m->gpu[gpu].nvidia ? number : -1;
}

static void put_link(FILE *to, const struct rk_pair_link *link)
{
    put_field(to, rk_path_name(link->path), '|');
    put_field(to, rk_pair_reason_text(link->reason), ';');
}

char *rk_pair_text(const struct rk_machine *m, const struct rk_pair_rank *rank)
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    bool ok;

    if (!to)
        return NULL;
    fprintf(to, "numa=%d;cpus=", node_of_cores(m, rank->core, rank->ncores));
    ok = put_cpus(to, m, rank->core, rank->ncores);
    fputc(';', to);
    for (uint32_t i = 0; i < rank->ngpus; i++) {
        const struct rk_device *d = &m->gpu[rank->gpu[i].device];
        fprintf(to, "gpu=%d|%d|", cuda_number(m, rank->gpu[i].device), node_of_device(m, d));
        put_field(to, d->pci, '|');
        put_field(to, d->uuid, '|');
        put_field(to, d->name, '|');
        put_link(to, &rank->gpu[i]);
    }
    for (uint32_t i = 0; i < rank->nnics; i++) {
        const struct rk_device *d = &m->nic[rank->nic[i].device];
        fprintf(to, "nic=%d|%d|", d->kind != RK_NIC_ETHERNET, node_of_device(m, d));
        put_field(to, d->pci, '|');
        put_field(to, d->name, '|');
        put_field(to, d->netdev, '|');
        put_link(to, &rank->nic[i]);
    }
    if (fclose(to) == 0 && ok)
        return text;
    free(text);
    return NULL;
}
