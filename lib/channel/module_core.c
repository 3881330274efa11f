/* SPDX-License-Identifier: BSD-3-Clause */
/* module_core.c: keep the core's services, forward log lines and errors to it. */
#include "config.h"

#include "lib/base/arg_error.h"
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

static RK_PRINTF(3, 0) rank_status_t forward_failure(rank_status_t st, bool prints, const char *fmt, va_list ap)
{
    char text[1024];

    vsnprintf(text, sizeof(text), fmt, ap);
    return rk_core->fail_text(st, prints, text);
}

rank_status_t rk_fail(rank_status_t st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    st = forward_failure(st, true, fmt, ap);
    va_end(ap);
    return st;
}

rank_status_t rk_fail_silent(rank_status_t st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    st = forward_failure(st, false, fmt, ap);
    va_end(ap);
    return st;
}
