/* SPDX-License-Identifier: BSD-3-Clause */
/* arg_error.c: report the errors of public calls. */
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
    bool printed;
    char text[512];
} last;

static _Thread_local bool background;
static _Atomic bool applies, auto_is_quiet;

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

void rk_errors_apply(void)
{
    atomic_store(&applies, true);
}

void rk_errors_quiet(void)
{
    atomic_store(&auto_is_quiet, true);
}

void rk_errors_background(void)
{
    background = true;
}

/* Before rank_init the configuration is not loaded: the environment alone counts. */
static int report_mode(void)
{
    const char *mode = atomic_load(&rk_life) == RK_LIFE_OUT ? rk_env("RANK_ERRORS") : NULL;
    int errors = !mode                         ? rk_conf.errors
                 : strcmp(mode, "quiet") == 0  ? RK_CONF_ERRORS_QUIET
                 : strcmp(mode, "abort") == 0  ? RK_CONF_ERRORS_ABORT
                 : strcmp(mode, "report") == 0 ? RK_CONF_ERRORS_REPORT
                                               : RK_CONF_ERRORS_AUTO;

    if (errors != RK_CONF_ERRORS_AUTO)
        return errors;
    return atomic_load(&auto_is_quiet) ? RK_CONF_ERRORS_QUIET : RK_CONF_ERRORS_REPORT;
}

/* Make the line of an error, which rank_status_reason returns. */
static RK_PRINTF(3, 0) void keep_line(rank_status_t st, const char *call, const char *fmt, va_list ap)
{
    int saved = errno, n = call ? snprintf(last.text, sizeof(last.text), "%s: ", call) : 0;

    errno = saved; /* for %m */
    vsnprintf(last.text + n, sizeof(last.text) - (size_t)n, fmt, ap);
    last.status = st;
    last.printed = false;
    errno = saved;
}

static void print_error_line(void)
{
    if (!last.printed)
        rk_error("%s", last.text);
    last.printed = true;
}

static void abort_by_line(void)
{
    print_error_line();
    if (rk_arg_abort)
        rk_arg_abort(1, last.text);
    else
        exit(EXIT_FAILURE);
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
    keep_line(st, *call ? call : NULL, fmt, ap);
    va_end(ap);
    if (mode == RK_CONF_ERRORS_ABORT)
        abort_by_line();
    else if (mode == RK_CONF_ERRORS_REPORT && is_first_report(call, fmt))
        print_error_line();
}

static void print_failure(void)
{
    if (background || !atomic_load(&applies) || report_mode() != RK_CONF_ERRORS_QUIET)
        print_error_line();
}

void rk_call_report(rank_status_t st, const char *call, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    keep_line(st, call, fmt, ap);
    va_end(ap);
    print_failure();
}

rank_status_t rk_fail(rank_status_t st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    keep_line(st, NULL, fmt, ap);
    va_end(ap);
    print_failure();
    return st;
}

rank_status_t rk_fail_silent(rank_status_t st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    keep_line(st, NULL, fmt, ap);
    va_end(ap);
    return st;
}

static bool is_expected(rank_status_t st)
{
    return st == RANK_ERR_TIMED_OUT || st == RANK_ERR_AGAIN || st == RANK_ERR_CANCELED || st == RANK_ERR_PEER_DEAD ||
           st == RANK_ERR_CLOSED;
}

rank_status_t rk_call_returns(const char *call, rank_status_t st)
{
    if (is_expected(st))
        return st;
    if (last.status != st)
        rk_fail_silent(st, "%s%s%s", call ? call : "", call ? ": " : "", rank_status_string(st));
    if (report_mode() == RK_CONF_ERRORS_ABORT)
        abort_by_line();
    return st;
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
        rk_arg_report(RANK_ERR_STATE, call, "it was called in a forked child, which is not a rank; call it in the parent");
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
        rk_arg_report(RANK_ERR_HANDLE, call, "the %s %p does not exist, or is freed already", what, handle);
    else
        rk_arg_report(RANK_ERR_HANDLE, call, "the %s is a null handle", what);
    return true;
}

RK_PUBLIC(rank_status_reason);
