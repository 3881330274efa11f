/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_pack.c: pack a machine. See machine_pack.h. */
#include "launcher/job/machine_pack.h"

#include <stdlib.h>
#include <string.h>

/* Packed bytes of an element, at least: a count beyond what that allows is malformed. */
enum { CORE_MIN = 16, NUMA_MIN = 12, RANGE_MIN = 8, BRIDGE_MIN = 12, CPU_MIN = 4, DEVICE_MIN = 64 };

/* Rates are sent in units of 1 kB/s. */
#define RATE_UNITS 1e6
enum { RATE_MAX = 1 << 30 };

static void pack_range(const struct rk_core_range *range, struct xr_packer *p)
{
    xr_pack_u32(p, range->first);
    xr_pack_u32(p, range->n);
}

static void pack_rate(double gbs, struct xr_packer *p)
{
    double units = gbs * RATE_UNITS + 0.5;

    xr_pack_u32(p, units > 0 && units < RATE_MAX ? (uint32_t)units : 0);
}

static void pack_devices(const struct rk_device *d, uint32_t n, struct xr_packer *p)
{
    xr_pack_u32(p, n);
    for (uint32_t i = 0; i < n; i++, d++) {
        xr_pack_string(p, d->name);
        xr_pack_string(p, d->netdev);
        xr_pack_string(p, d->model);
        xr_pack_string(p, d->uuid);
        xr_pack_string(p, d->pci);
        xr_pack_u32(p, d->nvidia);
        xr_pack_u64(p, d->address);
        xr_pack_u32(p, d->bridge);
        pack_range(&d->near, p);
        pack_rate(d->link_gbs, p);
        pack_rate(d->port_gbs, p);
        xr_pack_u32(p, (uint32_t)d->kind);
    }
}

void xr_machine_pack(const struct rk_machine *m, struct xr_packer *p)
{
    xr_pack_u64(p, m->memory);
    xr_pack_u32(p, m->ncores);
    for (uint32_t i = 0; i < m->ncores; i++) {
        xr_pack_u32(p, m->core[i].cpu);
        xr_pack_u32(p, m->core[i].numa);
        xr_pack_u32(p, m->core[i].package);
        xr_pack_u32(p, m->core[i].allowed);
    }
    xr_pack_u32(p, m->nnumas);
    for (uint32_t i = 0; i < m->nnumas; i++) {
        xr_pack_u32(p, m->numa[i].os);
        pack_range(&m->numa[i].near, p);
    }
    xr_pack_u32(p, m->npackages);
    for (uint32_t i = 0; i < m->npackages; i++)
        pack_range(&m->package[i], p);
    xr_pack_u32(p, m->nbridges);
    for (uint32_t i = 0; i < m->nbridges; i++) {
        xr_pack_u32(p, m->bridge[i].up);
        xr_pack_u32(p, m->bridge[i].host);
        xr_pack_u32(p, m->bridge[i].own);
    }
    xr_pack_u32(p, m->ncpus);
    for (uint32_t i = 0; i < m->ncpus; i++)
        xr_pack_u32(p, m->core_of_cpu[i]);
    pack_devices(m->gpu, m->ngpus, p);
    pack_devices(m->nic, m->nnics, p);
}

/* ----------------------------------------------------------------- unpack */

/* Allocate an array of a received count. Returns NULL, and marks the failure, for a count that cannot be true. */
static void *unpack_array(struct xr_unpacker *u, uint32_t *n, size_t size, size_t packed)
{
    uint32_t count = xr_unpack_u32(u);
    void *array = !u->failed && count <= u->left / packed ? calloc((size_t)count + 1, size) : NULL;

    *n = array ? count : 0;
    if (!array)
        u->failed = true;
    return array;
}

static enum rk_nic_kind unpack_kind(struct xr_unpacker *u)
{
    uint32_t kind = xr_unpack_u32(u);

    if (kind > RK_NIC_ETHERNET)
        u->failed = true;
    return u->failed ? RK_NIC_ETHERNET : (enum rk_nic_kind)kind;
}

static bool unpack_flag(struct xr_unpacker *u)
{
    uint32_t flag = xr_unpack_u32(u);

    if (flag > 1)
        u->failed = true;
    return flag == 1;
}

/* Read an index below n, or RK_TOPO_NONE. */
static uint32_t unpack_index(struct xr_unpacker *u, uint32_t n)
{
    uint32_t index = xr_unpack_u32(u);

    if (index != RK_TOPO_NONE && index >= n)
        u->failed = true;
    return u->failed ? RK_TOPO_NONE : index;
}

static struct rk_core_range unpack_range(struct xr_unpacker *u, uint32_t ncores)
{
    struct rk_core_range range;

    range.first = xr_unpack_u32(u);
    range.n = xr_unpack_u32(u);
    if (u->failed || range.first > ncores || range.n > ncores - range.first) {
        u->failed = true;
        range = (struct rk_core_range){0, 0};
    }
    return range;
}

static void unpack_text(struct xr_unpacker *u, char *to, size_t len)
{
    const char *text = xr_unpack_string(u);

    if (!text || strlen(text) >= len)
        u->failed = true;
    else
        memcpy(to, text, strlen(text) + 1);
}

static double unpack_rate(struct xr_unpacker *u)
{
    return (double)xr_unpack_u32(u) / RATE_UNITS;
}

static void unpack_devices(struct xr_unpacker *u, const struct rk_machine *m, struct rk_device **all, uint32_t *n)
{
    *all = unpack_array(u, n, sizeof(**all), DEVICE_MIN);
    for (uint32_t i = 0; i < *n && !u->failed; i++) {
        struct rk_device *d = &(*all)[i];
        unpack_text(u, d->name, sizeof(d->name));
        unpack_text(u, d->netdev, sizeof(d->netdev));
        unpack_text(u, d->model, sizeof(d->model));
        unpack_text(u, d->uuid, sizeof(d->uuid));
        unpack_text(u, d->pci, sizeof(d->pci));
        d->nvidia = unpack_flag(u);
        d->address = xr_unpack_u64(u);
        d->bridge = unpack_index(u, m->nbridges);
        d->near = unpack_range(u, m->ncores);
        d->link_gbs = unpack_rate(u);
        d->port_gbs = unpack_rate(u);
        d->kind = unpack_kind(u);
    }
}

/* Cores come before the arrays that their indices refer to: check them when these are there. */
static bool cores_fit(const struct rk_machine *m)
{
    for (uint32_t i = 0; i < m->ncores; i++) {
        if ((m->core[i].numa != RK_TOPO_NONE && m->core[i].numa >= m->nnumas) ||
            (m->core[i].package != RK_TOPO_NONE && m->core[i].package >= m->npackages))
            return false;
    }
    return m->ncores > 0;
}

rank_status_t xr_machine_unpack(struct xr_unpacker *u, struct rk_machine *out)
{
    memset(out, 0, sizeof(*out));
    out->memory = xr_unpack_u64(u);
    out->core = unpack_array(u, &out->ncores, sizeof(*out->core), CORE_MIN);
    for (uint32_t i = 0; i < out->ncores && !u->failed; i++) {
        out->core[i].cpu = xr_unpack_u32(u);
        out->core[i].numa = xr_unpack_u32(u);
        out->core[i].package = xr_unpack_u32(u);
        out->core[i].allowed = unpack_flag(u);
    }
    out->numa = unpack_array(u, &out->nnumas, sizeof(*out->numa), NUMA_MIN);
    for (uint32_t i = 0; i < out->nnumas && !u->failed; i++) {
        out->numa[i].os = xr_unpack_u32(u);
        out->numa[i].near = unpack_range(u, out->ncores);
    }
    out->package = unpack_array(u, &out->npackages, sizeof(*out->package), RANGE_MIN);
    for (uint32_t i = 0; i < out->npackages && !u->failed; i++)
        out->package[i] = unpack_range(u, out->ncores);
    out->bridge = unpack_array(u, &out->nbridges, sizeof(*out->bridge), BRIDGE_MIN);
    for (uint32_t i = 0; i < out->nbridges && !u->failed; i++) {
        out->bridge[i].up = unpack_index(u, i); /* a bridge follows the one above: there is no circle */
        out->bridge[i].host = unpack_flag(u);
        out->bridge[i].own = unpack_flag(u);
    }
    out->core_of_cpu = unpack_array(u, &out->ncpus, sizeof(*out->core_of_cpu), CPU_MIN);
    for (uint32_t i = 0; i < out->ncpus && !u->failed; i++)
        out->core_of_cpu[i] = unpack_index(u, out->ncores);
    unpack_devices(u, out, &out->gpu, &out->ngpus);
    unpack_devices(u, out, &out->nic, &out->nnics);
    return xr_unpack_done(u) && cores_fit(out) ? RANK_OK : RANK_ERR_ARG;
}
