/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c: map status codes of rank.h to texts. */
#include "lib/base/clock.h"
#include "lib/rank.h"

#define STR2(x) #x
#define STR(x) STR2(x)

const char *rank_status_string(rank_status_t status)
{
    switch (status) {
#define RANK_STATUS_CASE(code, name, text)                                                         \
    case RANK_##name:                                                                              \
        return text;
        RANK_STATUS_MAP(RANK_STATUS_CASE)
#undef RANK_STATUS_CASE
    }
    return "unknown status";
}

double rank_wtime(void)
{
    return (double)rk_clock_ns() * 1e-9;
}

const char *rank_version(void)
{
    return STR(RANK_VERSION_MAJOR) "." STR(RANK_VERSION_MINOR) "." STR(RANK_VERSION_PATCH);
}

RK_PUBLIC(rank_status_string); RK_PUBLIC(rank_wtime); RK_PUBLIC(rank_version);
