/* SPDX-License-Identifier: BSD-3-Clause */
/* draw_topology.h: draw a machine and the pairs of its ranks as SVG. */
#ifndef RK_TOPO_DRAW_TOPOLOGY_H
#define RK_TOPO_DRAW_TOPOLOGY_H

#include "lib/topo/pair.h"

#include <stdio.h>

/* Write one SVG document. Returns false without memory; the caller checks to for errors. */
bool rk_topo_draw(FILE *to, const struct rk_machine *m, const struct rk_pairing *p, const char *title);

#endif
