/*
 * local_alias.h: two names of one machine among the hosts of a job.
 *
 * Names of xrun's own host are known without asking anybody and are made one
 * in the list. Whether others are names of one machine only their agents can
 * see (local_host.h), when they are there.
 */
#ifndef XR_LAUNCHER_ALLOC_LOCAL_ALIAS_H
#define XR_LAUNCHER_ALLOC_LOCAL_ALIAS_H

#include "launcher/alloc/local_host.h"
#include "launcher/alloc/hostlist.h"

/* All names of this host become the first of them, which gets the slots of all. Of names that only differ in their
 * networks (node1.a, node1.b) the first is this host's. */
rank_status_t xr_twins_merge(struct xr_hostlist *hosts, struct xr_here *here);

#endif
