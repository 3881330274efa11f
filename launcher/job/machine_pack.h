/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_pack.h: send the cores, GPUs and NICs of a host to xrun. */
#ifndef XR_LAUNCHER_JOB_MACHINE_PACK_H
#define XR_LAUNCHER_JOB_MACHINE_PACK_H

#include "launcher/util/pack.h"
#include "lib/topo/topo_machine.h"

void xr_machine_pack(const struct rk_machine *m, struct xr_packer *p);
/* Checks all indices. Free *out with rk_machine_free whatever is returned. */
rank_status_t xr_machine_unpack(struct xr_unpacker *u, struct rk_machine *out);

#endif
