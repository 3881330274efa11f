/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.c: choose the provider of identity and addresses. */
#include "lib/boot/boot.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct rk_boot_provider *const providers[] = {&rk_boot_pmix, &rk_boot_alone};

rank_status_t rk_boot_open(struct rk_boot **out)
{
    rank_status_t st = RANK_ERR_UNREACHABLE;

    for (size_t i = 0; i < RK_ARRAY_LEN(providers) && st == RANK_ERR_UNREACHABLE; i++)
        st = providers[i]->open(out);
    if (st)
        return st;
    if (gethostname((*out)->host, sizeof((*out)->host) - 1) < 0)
        snprintf((*out)->host, sizeof((*out)->host), "unknown");
    (*out)->host[strcspn((*out)->host, ".")] = '\0';
    return RANK_OK;
}

void rk_boot_close(struct rk_boot *boot)
{
    if (boot)
        boot->ops->close(boot);
}
