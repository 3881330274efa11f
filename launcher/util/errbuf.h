/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errbuf.h: report a parse error of the user's input.
 */
#ifndef XR_LAUNCHER_UTIL_ERRBUF_H
#define XR_LAUNCHER_UTIL_ERRBUF_H

#include "lib/base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

static inline bool fail(char *err, size_t errlen, const char *fmt, ...) RK_PRINTF(3, 4);

/* Format the reason into err. Always returns false. */
static inline bool fail(char *err, size_t errlen, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, errlen, fmt, ap);
    va_end(ap);
    return false;
}

#endif
