/*
 * local_host.h: which names are this host's, and what tells one machine from another.
 */
#ifndef XR_LAUNCHER_ALLOC_LOCAL_HOST_H
#define XR_LAUNCHER_ALLOC_LOCAL_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct ifaddrs;

struct xr_here {
    char name[256]; /* as the host calls itself */
    /* Does the name belong to another host, as far as a resolver can tell? NULL: nobody is asked. */
    bool (*elsewhere)(struct xr_here *here, const char *name);
    struct ifaddrs *addresses; /* looked up when a name asks for them */
};

void xr_here_look(struct xr_here *here);
/* NULL is fine. */
void xr_here_clear(struct xr_here *here);

/* By name, or by an address. A resolver is asked, and xrun waits for it, only of a name that is this host's but for a
 * domain that this host does not say to be its own: then it is ours unless it leads elsewhere. */
bool xr_here_is(struct xr_here *here, const char *name);
/* What is behind the first dot of a name; NULL: nothing, or it is an address. */
const char *xr_here_domain(const char *name);
/* Each may be this host's by xr_here_is, but not both: "node1.a" and "node1.b" where the host calls itself "node1". */
bool xr_here_differ(const char *a, const char *b);

/*
 * A number for the machine that this process sees: processes have the same if they are on one machine and share its
 * network and its processes. 0: not known.
 */
uint64_t xr_here_machine(void);

#endif
