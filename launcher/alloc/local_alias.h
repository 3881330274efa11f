/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local_alias.h: merge names of this machine in a list of hosts.
 *
 * Names of xrun's own host are known without a query. Whether other names are one
 * machine is known only to their agents (local_host.h).
 */
#ifndef XR_LAUNCHER_ALLOC_LOCAL_ALIAS_H
#define XR_LAUNCHER_ALLOC_LOCAL_ALIAS_H

#include "launcher/alloc/local_host.h"
#include "launcher/alloc/hostlist.h"

/*
 * Merge all names of this host into the first of them, which gets all slots. Of names that differ only in their
 * networks (node1.a, node1.b) the first is this host's.
 */
rank_status_t xr_local_alias_merge(struct xr_hostlist *hosts, struct xr_local_host *here);

#endif
