/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_map.c: pack the map of hosts, also with names that libpmix cannot encode.
 *
 * libpmix:  4.2.2 (preg_native.c).
 * Symptom:  PMIx_generate_regex copies the letters that a host name begins with into 50 bytes without a check, and reads
 *           its digits into an int. The agent ends by "stack smashing detected".
 * Upstream: openpmix/openpmix#3659, open since August 2025; open-mpi/ompi#13358 reports it.
 * Retire:   when the oldest supported libpmix checks the length.
 */
#include "launcher/pmix/pmix_internal.h"

#include <ctype.h>
#include <pmix.h>
#include <stdio.h>
#include <string.h>

#define NAME_LETTERS 49
#define NAME_DIGITS 9

static bool fits_regex(const char *name)
{
    size_t letters = 0, digits;

    while (isalpha((unsigned char)name[letters]))
        letters++;
    digits = strspn(name + letters, "0123456789");
    return letters <= NAME_LETTERS && digits <= NAME_DIGITS;
}

pmix_status_t xr_pack_host_map(const struct xr_server_job *job, const char *hosts, char **out)
{
    for (uint32_t i = 0; i < job->nhosts; i++) {
        if (!fits_regex(job->hosts[i]))
            return asprintf(out, "raw:%s", hosts) < 0 ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
    }
    return PMIx_generate_regex(hosts, out);
}
