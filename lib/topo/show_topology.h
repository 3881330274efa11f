/* SPDX-License-Identifier: BSD-3-Clause */
/* show_topology.h: print a machine, and the GPU and NIC of each of its ranks. */
#ifndef RK_TOPO_SHOW_TOPOLOGY_H
#define RK_TOPO_SHOW_TOPOLOGY_H

#include "lib/topo/pair_request.h"

#include <stdio.h>

struct rk_topo_view {
    const char *xml; /* hwloc's XML of another machine; NULL: this one */
    const char *svg; /* a file to draw it to; or NULL */
    bool pairs;      /* print GPU, NIC and cores of each rank, too */
    uint32_t ranks;  /* 0: as many as the GPUs allow, or one a NUMA node */
    struct rk_pair_words words;
};

/*
 * Print cores, memory, GPUs and NICs, and the pairs of ranks. On failure prints nothing, and writes one line into err.
 */
rank_status_t rk_topo_show(FILE *out, const struct rk_topo_view *view, char *err, size_t errlen);

#endif
