/* SPDX-License-Identifier: BSD-3-Clause */
/* torch_env.c: see torch_env.h. */
#include "launcher/job/torch_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[XR_TORCH_VARS] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
                                                 "LOCAL_WORLD_SIZE"};

bool xr_torch_own(const char *s)
{
    size_t len = strcspn(s, "=");

    for (int i = 0; i < XR_TORCH_VARS; i++) {
        if (strlen(names[i]) == len && memcmp(s, names[i], len) == 0)
            return true;
    }
    return false;
}

void xr_torch_job(char **env)
{
    char **to = env;

    for (char **from = env; *from; from++) {
        if (xr_torch_own(*from))
            free(*from);
        else
            *to++ = *from;
    }
    *to = NULL;
}

void xr_torch_rank(uint32_t rank, uint32_t size, uint32_t local_rank, uint32_t local_size,
                   char *const out[XR_TORCH_VARS])
{
    const uint32_t values[XR_TORCH_VARS] = {rank, size, local_rank, local_size};

    for (int i = 0; i < XR_TORCH_VARS; i++)
        snprintf(out[i], 32, "%s=%u", names[i], values[i]);
}
