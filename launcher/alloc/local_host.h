/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local_host.h: recognise names of this host, and identify machines.
 */
#ifndef XR_LAUNCHER_ALLOC_LOCAL_HOST_H
#define XR_LAUNCHER_ALLOC_LOCAL_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct ifaddrs;

struct xr_local_host {
    char name[256]; /* the host's own name */
    /* Return whether the name belongs to another host, by a resolver. NULL: not checked. */
    bool (*elsewhere)(struct xr_local_host *here, const char *name);
    struct ifaddrs *addresses; /* loaded when first needed */
};

void xr_local_host_find(struct xr_local_host *here);
/* No-op if NULL. */
void xr_local_host_clear(struct xr_local_host *here);

/*
 * Return whether a name or address is this host's. Blocks for a resolver only if the name equals this host's
 * except for a domain that is not known to be its own; then it is ours unless it resolves elsewhere.
 */
bool xr_local_host_is(struct xr_local_host *here, const char *name);
/* Return what follows the first dot of a name; NULL: nothing, or it is an address. */
const char *xr_local_host_domain(const char *name);
/*
 * Return whether each may be this host by xr_local_host_is, but not both: "node1.a" and "node1.b" if the host's own
 * name is "node1".
 */
bool xr_local_host_differ(const char *a, const char *b);

/*
 * Return an id of the machine. Processes have the same id if they share machine, network and process namespaces.
 * 0: not known.
 */
uint64_t xr_local_host_machine(void);

#endif
