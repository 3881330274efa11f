/* SPDX-License-Identifier: BSD-3-Clause */
/* module_core.h: in a module, keep the core's services and write to its log. */
#ifndef RK_CHANNEL_MODULE_CORE_H
#define RK_CHANNEL_MODULE_CORE_H

#include "lib/channel/services.h"

/* The core's functions, configuration and log; set once. */
extern const struct rk_services *rk_core;

/* Keep them, for rk_core and rk_log_write. Returns false if the module was not built for these services. */
bool rk_module_begin(const struct rk_services *services);

/* The only symbol that a module exports; each has its own. */
__attribute__((visibility("default"))) const void *rank_module(const struct rk_services *services);

#endif
