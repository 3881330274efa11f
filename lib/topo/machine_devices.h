/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_devices.h: share the state of loading a machine. */
#ifndef RK_TOPO_MACHINE_DEVICES_H
#define RK_TOPO_MACHINE_DEVICES_H

#include "lib/topo/topo_machine.h"

#include <hwloc.h>

struct rk_machine_loader {
    struct rk_machine *m;
    hwloc_topology_t t;
    bool live; /* this machine: sysfs has what XML lacks */
    hwloc_bitmap_t allowed;
    hwloc_obj_t *cores, *bridges; /* by index */
};

struct rk_core_range rk_machine_range(const struct rk_machine_loader *l, hwloc_const_cpuset_t set);
/* Fill bridges, GPUs and NICs, after the cores. Returns false without memory. */
bool rk_machine_load_devices(struct rk_machine_loader *l);

#endif
