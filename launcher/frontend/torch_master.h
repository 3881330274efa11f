/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * torch_master.h: set the variables by which PyTorch finds rank 0.
 */
#ifndef XR_LAUNCHER_FRONTEND_TORCH_MASTER_H
#define XR_LAUNCHER_FRONTEND_TORCH_MASTER_H

#include "launcher/map/plan.h"

#include <stdbool.h>

/*
 * Put MASTER_ADDR and MASTER_PORT into env, unless it has them. All ranks are placed. Returns false if out of memory.
 */
bool xr_torch_place(char ***env, const struct xr_plan *plan);

#endif
