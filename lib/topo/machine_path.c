/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine_path.c: find the way between two devices. See topo_machine.h.
 *
 * A PCIe switch is one bridge towards the CPU and one for each device below it. Two devices of one switch meet in the
 * former, with at most one bridge on either side.
 */
#include "lib/topo/topo_machine.h"

static const char *const path_names[] = {"NVL", "PIX", "PXB", "PHB", "NODE", "SYS"};

const char *rk_path_name(enum rk_path path)
{
    return path_names[path];
}

/* Return the lowest bridge above both, or RK_TOPO_NONE. */
static uint32_t common_bridge(const struct rk_machine *m, uint32_t a, uint32_t b)
{
    for (; a != RK_TOPO_NONE; a = m->bridge[a].up) {
        for (uint32_t at = b; at != RK_TOPO_NONE; at = m->bridge[at].up) {
            if (at == a)
                return a;
        }
    }
    return RK_TOPO_NONE;
}

/* Count bridges from one up to, without, another one. */
static uint32_t bridges_below(const struct rk_machine *m, uint32_t from, uint32_t top)
{
    uint32_t n = 0;

    for (; from != top; from = m->bridge[from].up)
        n += !m->bridge[from].own;
    return n;
}

static bool ranges_meet(struct rk_core_range a, struct rk_core_range b)
{
    return a.first < b.first + b.n && b.first < a.first + a.n;
}

enum rk_path rk_path_devices(const struct rk_machine *m, const struct rk_device *a, const struct rk_device *b)
{
    uint32_t top = common_bridge(m, a->bridge, b->bridge);

    if (top == RK_TOPO_NONE)
        return ranges_meet(a->near, b->near) ? RK_PATH_NODE : RK_PATH_SYS;
    if (m->bridge[top].host)
        return RK_PATH_PHB;
    return bridges_below(m, a->bridge, top) < 2 && bridges_below(m, b->bridge, top) < 2 ? RK_PATH_PIX
                                                                                        : RK_PATH_PXB;
}

enum rk_path rk_path_gpus(const struct rk_machine *m, uint32_t a, uint32_t b)
{
    if (m->nvlinks && m->nvlinks[(size_t)a * m->ngpus + b])
        return RK_PATH_NVL;
    return rk_path_devices(m, &m->gpu[a], &m->gpu[b]);
}

uint32_t rk_package_of(const struct rk_machine *m, struct rk_core_range near)
{
    uint32_t package = near.n ? m->core[near.first].package : RK_TOPO_NONE;

    return near.n && m->core[near.first + near.n - 1].package == package ? package : RK_TOPO_NONE;
}

uint32_t rk_path_distance(const struct rk_machine *m, const struct rk_device *a, const struct rk_device *b)
{
    enum rk_path path = rk_path_devices(m, a, b);
    uint32_t package = rk_package_of(m, a->near);

    return path < RK_PATH_SYS                                                     ? (uint32_t)path
           : package != RK_TOPO_NONE && package == rk_package_of(m, b->near) ? RK_PATH_SYS
                                                                                  : RK_PATH_SYS + 1;
}

uint64_t rk_nic_rate(const struct rk_device *nic)
{
    double gbs = nic->link_gbs;

    if (nic->port_gbs > 0 && (gbs <= 0 || nic->port_gbs < gbs))
        gbs = nic->port_gbs;
    return gbs > 0.001 ? (uint64_t)(gbs * 1000) : 1;
}
