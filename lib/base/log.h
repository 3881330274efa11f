/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h: write a line a message to stderr, with level and origin.
 *
 * The code that detects a fault logs its cause and what the user can do; callers only pass on the status.
 */
#ifndef RK_BASE_LOG_H
#define RK_BASE_LOG_H

#include "lib/base/compiler.h"

#include <errno.h>

enum rk_log_level { RK_LOG_ERROR, RK_LOG_WARN, RK_LOG_INFO, RK_LOG_DEBUG };

extern int rk_log_threshold;

/* Origin of the lines: the program's name, and the rank once known (-1: none). host may be NULL. */
void rk_log_identity(const char *program, int rank, const char *host);

/* Start of each line, such as "librank: rank 3 (host)". */
const char *rk_log_prefix(void);

/* Writes the line by one write(2), so that lines of several ranks do not mix. Keeps errno. */
void rk_log_write(int level, const char *fmt, ...) RK_PRINTF(2, 3);

/* Remedy to append to a message, if error may be that of a filter of system calls (seccomp). Else empty. */
RK_INLINE const char *rk_refusal_remedy(int error)
{
    return error == EPERM || error == ENOSYS ? "; does the container's seccomp profile allow it?" : "";
}

#define rk_log(level, ...)                                                                         \
    do {                                                                                           \
        if (rk_unlikely((level) <= rk_log_threshold))                                              \
            rk_log_write(level, __VA_ARGS__);                                                      \
    } while (0)

#define rk_error(...) rk_log(RK_LOG_ERROR, __VA_ARGS__)
#define rk_warn(...) rk_log(RK_LOG_WARN, __VA_ARGS__)
#define rk_info(...) rk_log(RK_LOG_INFO, __VA_ARGS__)
#define rk_debug(...) rk_log(RK_LOG_DEBUG, __VA_ARGS__)

#endif
