/* SPDX-License-Identifier: BSD-3-Clause */
/* module_core.c: keep the core's services, forward a module's log to the core. */
#include "config.h"

#include "lib/channel/module_core.h"
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>

const struct rk_services *rk_core;
int rk_log_threshold;

bool rk_module_begin(const struct rk_services *services)
{
    if (!rk_services_match(services))
        return false;
    rk_core = services;
    rk_log_threshold = *services->log_threshold;
    return true;
}

void rk_log_write(int level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    rk_core->log_text(level, text);
}
