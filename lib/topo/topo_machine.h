/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo_machine.h: describe cores, GPUs and NICs of a machine as plain arrays.
 *
 * Room: the machine's topology, by hwloc.
 * Callers: lib/topo/module/topo_module.c, launcher/{agent,job,map}, tools.
 * Never: loads a driver; keeps state.
 * Tests: tests/unit/machine_test.c, tests/unit/pair_test.c.
 *
 * hwloc fills the arrays from this machine or from its XML. No type of hwloc is in them, so that tests make machines.
 */
#ifndef RK_TOPO_TOPO_MACHINE_H
#define RK_TOPO_TOPO_MACHINE_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RK_TOPO_NONE UINT32_MAX

/* Cores with consecutive indices. Each NUMA node, package and bridge of hwloc's tree is beside one such range. */
struct rk_core_range {
    uint32_t first, n;
};

struct rk_core {
    uint32_t cpu;     /* the kernel's number of its first hardware thread */
    uint32_t numa;    /* index, or RK_TOPO_NONE */
    uint32_t package; /* index, or RK_TOPO_NONE */
    bool cpuset;      /* in the cpuset of this process, or of the XML; xrun does not send it */
    bool allowed;     /* there, and in the affinity of this process */
};

/* Nodes with cores. Further memory of the same cores, and memory without cores, is not listed. */
struct rk_numa {
    uint32_t os; /* the kernel's number */
    struct rk_core_range near;
};

struct rk_bridge {
    uint32_t up; /* index of the bridge above, or RK_TOPO_NONE */
    bool host;   /* from the CPU to PCI */
    bool own;    /* inside an AMD GPU: not counted as a switch */
};

enum rk_nic_kind {
    RK_NIC_FABRIC, /* InfiniBand, Slingshot, EFA */
    RK_NIC_ROCE,   /* RDMA by a PCI device of class Ethernet with a network interface */
    RK_NIC_ETHERNET
};

/* A GPU or a NIC. */
struct rk_device {
    char name[32];      /* such as "cuda0" or "mlx5_0"; "" without a driver */
    char netdev[32];    /* a NIC's network interface, or "" */
    char model[64];     /* or "" */
    char uuid[48];      /* as the driver writes it, or "" */
    char pci[20];       /* "0000:13:00.0", or "" */
    bool nvidia;        /* a GPU that CUDA may use */
    uint64_t address;   /* orders devices as PCI does */
    uint32_t bridge;    /* index, or RK_TOPO_NONE */
    struct rk_core_range near;
    double link_gbs;    /* GB/s of the PCIe link of the device itself; 0: unknown */
    double port_gbs;    /* GB/s of a NIC's port, on this machine only; 0: unknown */
    enum rk_nic_kind kind; /* of a NIC */
};

struct rk_machine {
    struct rk_core *core;
    struct rk_numa *numa;
    struct rk_core_range *package;
    struct rk_bridge *bridge;
    struct rk_device *gpu, *nic; /* in PCI order */
    uint32_t ncores, nnumas, npackages, nbridges, ngpus, nnics;
    uint32_t *core_of_cpu; /* by the kernel's number of the hardware thread; RK_TOPO_NONE: no such one */
    uint32_t ncpus;
    uint64_t memory; /* bytes */
    bool live;       /* the machine of this process, not a recorded one */
    uint8_t *nvlinks; /* ngpus x ngpus links between GPUs, from a driver; NULL: unknown */
};

/*
 * Read a machine: this one if xml is NULL, else a file of hwloc's XML 1.x or 2.x.
 * On failure writes one line into err. Free with rk_machine_free.
 */
rank_status_t rk_machine_load(const char *xml, struct rk_machine *out, char *err, size_t errlen);
/* Keep only the GPUs that CUDA may use, so that their indices are its numbers. */
void rk_machine_keep_nvidia(struct rk_machine *m);
/* No-op for a zeroed machine. */
void rk_machine_free(struct rk_machine *m);

/* Ways between two devices, nearest first, as nvidia-smi names them. */
enum rk_path {
    RK_PATH_NVL,  /* NVLink */
    RK_PATH_PIX,  /* one PCIe switch */
    RK_PATH_PXB,  /* several PCIe switches */
    RK_PATH_PHB,  /* the CPU's PCIe host bridge */
    RK_PATH_NODE, /* host bridges of one NUMA node */
    RK_PATH_SYS   /* between NUMA nodes, also of one package */
};

const char *rk_path_name(enum rk_path path);
enum rk_path rk_path_devices(const struct rk_machine *m, const struct rk_device *a, const struct rk_device *b);
/* As rk_path_devices, or RK_PATH_NVL if the machine has links between the two. */
enum rk_path rk_path_gpus(const struct rk_machine *m, uint32_t a, uint32_t b);
/* Return the package that holds all cores of a range, or RK_TOPO_NONE. */
uint32_t rk_package_of(const struct rk_machine *m, struct rk_core_range near);
/* Order ways finer than their names: SYS inside one package is nearer than between packages. Less is nearer. */
uint32_t rk_path_distance(const struct rk_machine *m, const struct rk_device *a, const struct rk_device *b);

/* Return what a NIC can move in MB/s: the lesser of port and PCIe link; 1 if both are unknown. */
uint64_t rk_nic_rate(const struct rk_device *nic);

#endif
