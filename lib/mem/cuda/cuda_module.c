/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_module.c: export the module's symbol. */
#include "lib/channel/module_core.h"
#include "lib/mem/cuda/kind_cuda.h"

const void *rank_module(const struct rk_services *services)
{
    return rk_module_begin(services) ? &rk_kind_cuda : NULL;
}
