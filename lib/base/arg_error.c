/* SPDX-License-Identifier: BSD-3-Clause */
/* arg_error.c: report rejected arguments of public calls. */
#include "lib/base/arg_error.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS_MAX = 8 };

_Atomic int rk_life;
_Atomic int rk_contexts;
_Atomic bool rk_forked;
void (*rk_arg_abort)(int code, const char *text);

/* A kind of report: the public function, and the text of the check. */
struct site {
    _Atomic(const char *) call, fmt;
};

static struct site sites[REPORTS_MAX];
static _Atomic int nsites;

/* The last error of this thread that has a text. */
static _Thread_local struct {
    rank_status_t status; /* RANK_OK: it has been returned, or there was none */
    char text[256];
} last;

/* Is it the first of its kind, and is there room? Racing threads report at most once each. A text made elsewhere has no kind. */
static bool is_first_report(const char *call, const char *fmt)
{
    int n = atomic_load(&nsites);

    if (strcmp(fmt, "%s") == 0)
        return true;
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

/* Keep the text for rank_status_reason. */
static RK_PRINTF(3, 0) void keep_reason(rank_status_t st, const char *call, const char *fmt, va_list ap)
{
    int n = snprintf(last.text, sizeof(last.text), "%s: ", call);

    vsnprintf(last.text + n, sizeof(last.text) - (size_t)n, fmt, ap);
    last.status = st;
}

const char *rank_status_reason(rank_status_t status)
{
    if (status == RANK_OK || status != last.status)
        return rank_status_string(status);
    last.status = RANK_OK;
    return last.text;
}

void rk_arg_report(rank_status_t st, const char *call, const char *fmt, ...)
{
    int mode = report_mode();
    va_list ap;

    if (!call)
        return;
    va_start(ap, fmt);
    keep_reason(st, call, fmt, ap);
    va_end(ap);
    if (mode == RK_CONF_ERRORS_QUIET || (mode == RK_CONF_ERRORS_REPORT && !is_first_report(call, fmt)))
        return;
    rk_error("%s", last.text);
    if (mode == RK_CONF_ERRORS_ABORT && rk_arg_abort)
        rk_arg_abort(1, last.text);
    else if (mode == RK_CONF_ERRORS_ABORT)
        exit(EXIT_FAILURE);
}

void rk_call_report(rank_status_t st, const char *call, const char *fmt, ...)
{
    int saved = errno; /* for %m */
    va_list ap;

    va_start(ap, fmt);
    errno = saved;
    keep_reason(st, call, fmt, ap);
    va_end(ap);
    rk_error("%s", last.text);
}

void rk_arg_report_null(const char *call, const char *name)
{
    rk_arg_report(RANK_ERR_ARG, call, "%s is NULL", name);
}

void rk_arg_report_life(const char *call)
{
    switch (atomic_load(&rk_life)) {
    case RK_LIFE_LEFT:
        rk_arg_report(RANK_ERR_STATE, call, "it was called after rank_finalize");
        break;
    case RK_LIFE_FORKED:
        rk_arg_report(RANK_ERR_STATE, call, "it was called in a forked child, which is no rank; call it in the parent");
        break;
    default:
        if (atomic_load(&rk_forked))
            rk_arg_report(RANK_ERR_STATE, call, "it was called in a forked child, for what the parent has opened");
        else
            rk_arg_report(RANK_ERR_STATE, call, "it was called before rank_init");
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
        rk_arg_report(RANK_ERR_HANDLE, call, "the %s %p is none, or is freed already", what, handle);
    else
        rk_arg_report(RANK_ERR_HANDLE, call, "the %s is a null handle", what);
    return true;
}

RK_PUBLIC(rank_status_reason);
