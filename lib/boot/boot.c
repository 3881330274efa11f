/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.c: choose the provider of identity and addresses. */
#include "lib/boot/boot.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct rk_boot_provider *const providers[] = {&rk_boot_pmix, &rk_boot_alone};

static void name_host(struct rk_boot *boot)
{
    if (gethostname(boot->host, sizeof(boot->host) - 1) < 0)
        snprintf(boot->host, sizeof(boot->host), "unknown");
    boot->host[strcspn(boot->host, ".")] = '\0';
}

rank_status_t rk_boot_open(struct rk_boot **out)
{
    rank_status_t st = RANK_ERR_UNREACHABLE;

    for (size_t i = 0; i < RK_ARRAY_LEN(providers) && st == RANK_ERR_UNREACHABLE; i++)
        st = providers[i]->open(out);
    if (st)
        return st;
    if ((*out)->alone)
        rk_boot_alone_warn();
    name_host(*out);
    return RANK_OK;
}

rank_status_t rk_boot_open_alone(struct rk_boot **out)
{
    rank_status_t st = rk_boot_alone.open(out);

    if (!st)
        name_host(*out);
    return st;
}

void rk_boot_close(struct rk_boot *boot)
{
    if (boot)
        boot->ops->close(boot);
}
