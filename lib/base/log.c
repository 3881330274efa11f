/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c: write log lines. */
#include "lib/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int rk_log_threshold = RK_LOG_WARN;

static char speaker[160] = "librank";

void rk_log_identity(const char *program, int rank, const char *host)
{
    if (rank < 0)
        snprintf(speaker, sizeof(speaker), "%s", program);
    else
        snprintf(speaker, sizeof(speaker), "%s: rank %d%s%s%s", program, rank, host ? " (" : "",
                 host ? host : "", host ? ")" : "");
}

const char *rk_log_prefix(void)
{
    return speaker;
}

void rk_log_write(int level, const char *fmt, ...)
{
    static const char *const name[] = {"error", "warning", "info", "debug"};
    char line[2048];
    int saved = errno, n, m;
    va_list ap;

    n = snprintf(line, sizeof(line), "%s: %s: ", speaker, name[level]);
    va_start(ap, fmt);
    errno = saved; /* for %m */
    m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (m > 0)
        n += m;
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    /* A full or closed stderr must not stop the program. */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        errno = saved;
    errno = saved;
}
