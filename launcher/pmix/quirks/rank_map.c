/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_map.c: pack the map of ranks without libpmix's quadratic search.
 *
 * libpmix:  4.2.2.
 * Symptom:  PMIx_generate_ppn takes quadratic time: 22 s for 128 ranks on each of 1,000 hosts. Where the ranks of a host
 *           are not consecutive, its result is the same plain list.
 * Upstream: openpmix/openpmix#1791, closed in July 2020.
 * Retire:   when PMIx_generate_ppn of the oldest supported libpmix takes less than 0.1 s for that map.
 */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdio.h>

pmix_status_t xr_pack_rank_map(const struct xr_server_job *job, const char *ranks, char **out)
{
    if (job->runs)
        return PMIx_generate_ppn(ranks, out);
    return asprintf(out, "raw:%s", ranks) < 0 ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}
