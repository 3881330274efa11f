/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo_module.h: read the topology in a module: the library does not load hwloc.
 */
#ifndef RK_TOPO_MODULE_TOPO_MODULE_H
#define RK_TOPO_MODULE_TOPO_MODULE_H

#include "lib/node/affinity.h"

#include <stddef.h>
#include <stdint.h>

/* The ranks of this host. */
struct rk_topo_query {
    uint32_t index, nlocal;     /* index: of this rank among them */
    const struct rk_affinity *cores; /* [nlocal]: the usable cores of each; NULL: not known */
    const char *visible;        /* CUDA_VISIBLE_DEVICES, or NULL */
};

/* What the module librank-topo.so returns. */
struct rk_topo_ops {
    /* Return the devices of the rank as pair_text.h has them, or NULL with one line in err. Caller frees. */
    char *(*describe)(const struct rk_topo_query *query, char *err, size_t errlen);
};

#endif
