/*
 * errbuf.h: what a parser of the user's words returns when they make no sense.
 */
#ifndef XR_LAUNCHER_UTIL_ERRBUF_H
#define XR_LAUNCHER_UTIL_ERRBUF_H

#include "lib/base/compiler.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

static inline bool fail(char *err, size_t errlen, const char *fmt, ...) RK_PRINTF(3, 4);

/* Put the reason into err. False, always. */
static inline bool fail(char *err, size_t errlen, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, errlen, fmt, ap);
    va_end(ap);
    return false;
}

#endif
