/* SPDX-License-Identifier: BSD-3-Clause */
/* local_alias.c: see local_alias.h. */
#include "launcher/alloc/local_alias.h"

#include <stdlib.h>
#include <string.h>

/* full: the first name of this host that has a domain, or NULL. */
static bool is_own(struct xr_local_host *here, const char *full, const char *name)
{
    return xr_local_host_is(here, name) && !(full && xr_local_host_differ(full, name));
}

rank_status_t xr_local_alias_merge(struct xr_hostlist *hosts, struct xr_local_host *here)
{
    struct xr_hostlist merged = {.source = hosts->source};
    uint32_t own = XR_NO_HOST, others = 0;
    const char *full = NULL;
    rank_status_t st = RANK_OK;

    for (uint32_t i = 0; i < hosts->n; i++) {
        const char *name = hosts->host[i].name;
        if (!is_own(here, full, name))
            continue;
        if (!full && xr_local_host_domain(name))
            full = name;
        others += own != XR_NO_HOST;
        own = own == XR_NO_HOST ? i : own;
    }
    if (!others)
        return RANK_OK;
    for (uint32_t i = 0; !st && i < hosts->n; i++) {
        const struct xr_hostspec *h = &hosts->host[is_own(here, full, hosts->host[i].name) ? own : i];
        st = xr_hostlist_add(&merged, h->name, strlen(h->name), hosts->host[i].slots);
        xr_hostlist_limit(&merged, h->name, hosts->host[i].most);
    }
    if (st) {
        xr_hostlist_clear(&merged);
        return st;
    }
    xr_hostlist_clear(hosts);
    *hosts = merged;
    return RANK_OK;
}
