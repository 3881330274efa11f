/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * partial_lookup.c: pass the values of a partly successful lookup to the client.
 *
 * libpmix:  4.2.2.
 * Symptom:  the client drops the values of a lookup whose status is not PMIX_SUCCESS.
 * Upstream: openpmix/openpmix#3364, fixed in June 2024, and openpmix/openpmix#4044, merged in July 2026.
 * Retire:   when the oldest supported libpmix has both changes.
 *
 * The status becomes PMIX_SUCCESS; the client counts the values.
 */
#include "launcher/pmix/pmix_internal.h"

pmix_status_t xr_partial_lookup_status(pmix_status_t status, uint32_t nfound)
{
    return status == PMIX_ERR_PARTIAL_SUCCESS && nfound > 0 ? PMIX_SUCCESS : status;
}
