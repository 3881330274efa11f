/* SPDX-License-Identifier: BSD-3-Clause */
/* arg_error.c: report rejected arguments of public calls. */
#include "lib/base/arg_error.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS_MAX = 8 };

_Atomic int rk_life;
_Atomic int rk_contexts;
void (*rk_arg_abort)(int code, const char *text);

/* A kind of report: the public function, and the text of the check. */
struct site {
    _Atomic(const char *) call, fmt;
};

static struct site sites[REPORTS_MAX];
static _Atomic int nsites;

/* Is it the first of its kind, and is there room? Racing threads report at most once each. */
static bool is_first_report(const char *call, const char *fmt)
{
    int n = atomic_load(&nsites);

    for (int i = 0; i < n && i < REPORTS_MAX; i++) {
        if (atomic_load(&sites[i].call) == call && atomic_load(&sites[i].fmt) == fmt)
            return false;
    }
    if (n >= REPORTS_MAX || (n = atomic_fetch_add(&nsites, 1)) >= REPORTS_MAX)
        return false;
    atomic_store(&sites[n].call, call);
    atomic_store(&sites[n].fmt, fmt);
    return true;
}

/* Before rank_init the configuration is not loaded: the environment alone counts. */
static int report_mode(void)
{
    const char *mode = atomic_load(&rk_life) == RK_LIFE_OUT ? rk_env("RANK_ERRORS") : NULL;

    if (!mode)
        return rk_conf.errors;
    return strcmp(mode, "quiet") == 0   ? RK_CONF_ERRORS_QUIET
           : strcmp(mode, "abort") == 0 ? RK_CONF_ERRORS_ABORT
                                        : RK_CONF_ERRORS_REPORT;
}

void rk_arg_report(const char *call, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    int n, mode = report_mode();

    if (!call || mode == RK_CONF_ERRORS_QUIET)
        return;
    if (mode == RK_CONF_ERRORS_REPORT && !is_first_report(call, fmt))
        return;
    n = snprintf(text, sizeof(text), "%s: ", call);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    rk_error("%s", text);
    if (mode == RK_CONF_ERRORS_ABORT && rk_arg_abort)
        rk_arg_abort(1, text);
    else if (mode == RK_CONF_ERRORS_ABORT)
        exit(EXIT_FAILURE);
}

void rk_arg_report_null(const char *call, const char *name)
{
    rk_arg_report(call, "%s is NULL", name);
}

void rk_arg_report_life(const char *call)
{
    switch (atomic_load(&rk_life)) {
    case RK_LIFE_LEFT:
        rk_arg_report(call, "it was called after rank_finalize");
        break;
    case RK_LIFE_FORKED:
        rk_arg_report(call, "it was called in a forked child, which is no rank; call it in the parent");
        break;
    default:
        rk_arg_report(call, "it was called before rank_init");
    }
}

/* Returns false if the library is not initialized. */
bool rk_arg_report_handle(const char *call, const char *what, const void *handle)
{
    int life = atomic_load(&rk_life);

    if (life != RK_LIFE_IN && life != RK_LIFE_JOINING && atomic_load(&rk_contexts) == 0) {
        rk_arg_report_life(call);
        return false;
    }
    if (handle)
        rk_arg_report(call, "the %s %p is none, or is freed already", what, handle);
    else
        rk_arg_report(call, "the %s is a null handle", what);
    return true;
}
