/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h: declare the devices of a rank. Part of rank.h. */
#ifndef RANK_DEVICE_H
#define RANK_DEVICE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------- rank_device: GPU and NIC of a rank */

#define RANK_DEVICE_MAX 8 /* elements of the arrays below */

/* A GPU. Texts that are not known are empty. A NUMA node that is not known is -1. */
typedef struct rank_device_gpu {
    int32_t ordinal;  /* for cudaSetDevice in this process; -1: CUDA_VISIBLE_DEVICES hides it, or CUDA does not use it */
    int32_t number;   /* CUDA's in PCI order among all GPUs of the host, or -1 */
    int32_t numa;     /* the kernel's number of its NUMA node */
    char pci[20];     /* as 0000:18:00.0 */
    char uuid[48];    /* as GPU-029490c8-a116-638b-7018-1a6b7a9002ef */
    char name[32];    /* the driver's, as cuda0 */
    char path[8];     /* from the cores of the rank: NODE or SYS */
    char reason[64];  /* why the rank has it, for people */
} rank_device_gpu_t;

/* A NIC. */
typedef struct rank_device_nic {
    int32_t rdma;     /* 1: RDMA or Slingshot; 0: Ethernet */
    int32_t numa;
    char pci[20];
    char name[32];    /* as mlx5_0 */
    char netdev[32];  /* its network interface, as ib0 */
    char path[8];     /* from the GPU of the rank, or else its cores: PIX, PXB, PHB, NODE or SYS, as nvidia-smi names them */
    char reason[64];
} rank_device_nic_t;

typedef struct rank_device {
    size_t size;      /* set by RANK_DEVICE_INIT */
    int32_t ngpus;    /* GPUs of the rank; the array has the first RANK_DEVICE_MAX */
    int32_t nnics;    /* the same for NICs */
    int32_t numa;     /* the kernel's number of the NUMA node of all cores of the rank, or -1 */
    int32_t reserved; /* 0 */
    /*
     * Cores of the rank as hardware threads, as "0-5,48-53"; if no rank is bound, those that suit it. A longer list ends
     * behind the last item that fits.
     */
    char cpus[256];
    rank_device_gpu_t gpu[RANK_DEVICE_MAX];
    rank_device_nic_t nic[RANK_DEVICE_MAX];
} rank_device_t;
#define RANK_DEVICE_INIT {sizeof(rank_device_t), 0, 0, 0, 0, "", {{0, 0, 0, "", "", "", "", ""}}, {{0, 0, "", "", "", "", ""}}}

/*
 * Get the GPU, NIC and cores that suit this rank, with the paths between them and the reasons. The call is local.
 * With options of xrun about GPUs or NICs these are the devices that it gave to the rank, else those that xrun
 * --topo would choose. A rank may have no GPU and no NIC. If CUDA_VISIBLE_DEVICES is set, only those GPUs of NVIDIA
 * are chosen that it names.
 * RANK_ERR_ARG: out is NULL, or its size is too small.
 * RANK_ERR_SYSTEM: the topology cannot be read.
 * RANK_ERR_NOT_SUPPORTED: the module librank-topo.so is missing.
 */
RANK_API rank_status_t rank_device_query(rank_device_t *out);

#ifdef __cplusplus
}
#endif

#endif
