/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_module.c: export the module's symbol, forward its log to the core. */
#include "config.h"

#include "lib/base/log.h"
#include "lib/channel/services.h"
#include "lib/mem/cuda/kind_cuda.h"

#include <stdarg.h>
#include <stdio.h>

/* The core's log; set once. */
static const struct rk_services *core;
int rk_log_threshold;

__attribute__((visibility("default"))) const void *rank_module(const struct rk_services *services);

const void *rank_module(const struct rk_services *services)
{
    if (!rk_services_match(services))
        return NULL;
    core = services;
    rk_log_threshold = *services->log_threshold;
    return &rk_kind_cuda;
}

void rk_log_write(int level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    core->log_text(level, text);
}
