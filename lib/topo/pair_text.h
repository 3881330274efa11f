/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair_text.h: write the devices of a rank as one line of text, for a variable.
 *
 *   numa=N;cpus=0-3,8;gpu=NUMBER|NUMA|PCI|UUID|NAME|PATH|REASON;nic=RDMA|NUMA|PCI|NAME|NETDEV|PATH|REASON;...
 *
 * NUMBER is CUDA's in PCI order among all GPUs, or -1. RDMA is 1 or 0. A NUMA node that is not known is -1.
 */
#ifndef RK_TOPO_PAIR_TEXT_H
#define RK_TOPO_PAIR_TEXT_H

#include "lib/topo/pair.h"

/* The variable by which xrun gives it to a rank. */
#define RK_PAIR_VARIABLE "XRUN_DEVICES"

/* Returns NULL without memory. Caller frees. */
char *rk_pair_text(const struct rk_machine *m, const struct rk_pair_rank *rank);

#endif
