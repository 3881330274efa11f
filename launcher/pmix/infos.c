/* SPDX-License-Identifier: BSD-3-Clause */
/* infos.c: read attributes of calls of clients. See pmix_internal.h. */
#include "launcher/pmix/pmix_internal.h"

bool xr_infos_lost_client(const pmix_info_t info[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_LOCAL_COLLECTIVE_STATUS) && info[i].value.type == PMIX_STATUS)
            return info[i].value.data.status != PMIX_SUCCESS;
    }
    return false;
}

static uint32_t within_u32(int64_t n)
{
    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

uint32_t xr_value_number(const pmix_value_t *v)
{
    switch (v->type) {
    case PMIX_INT:
        return within_u32(v->data.integer);
    case PMIX_INT16:
        return within_u32(v->data.int16);
    case PMIX_INT32:
        return within_u32(v->data.int32);
    case PMIX_INT64:
        return within_u32(v->data.int64);
    case PMIX_UINT:
        return v->data.uint;
    case PMIX_UINT16:
        return v->data.uint16;
    case PMIX_UINT32:
        return v->data.uint32;
    case PMIX_UINT64:
        return v->data.uint64 > UINT32_MAX ? UINT32_MAX : (uint32_t)v->data.uint64;
    case PMIX_SIZE:
        return v->data.size > UINT32_MAX ? UINT32_MAX : (uint32_t)v->data.size;
    default:
        return 0;
    }
}

uint32_t xr_infos_timeout(const pmix_info_t info[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT))
            return xr_value_number(&info[i].value);
    }
    return 0;
}
